"""Decisions whose outcomes are not all learned, as tables: what was played, each signal's value and standing, and when.

Every signal is a queue of its own, learned in the order of the decisions (docs/theory/order.md): its head is the first
decision that lacks it, and what came in behind the head is held.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats

MISSING, HELD, DROPPED = 0, 1, 2  # of a signal: not in; in, and learned as soon as its turn comes; given up
FIRST_ROOM = 1024
TABLES = ("rows", "values", "standing", "dates", "deferred")


class Span(NamedTuple):
    """The window of a signal."""

    signal: int
    length: int
    """In microseconds."""
    value: float
    """What a missing one counts as, as it is learned; NaN: it is left out."""


class Waits:
    """Places `base` to `end` − 1 of the log's decisions, and where each signal's queue stands."""

    def __init__(self, width: int, signals: int, spans: Sequence[Span]) -> None:
        self.spans = tuple(spans)
        self.longest = max((span.length for span in spans), default=0)
        self.open = [k for k in range(signals) if k not in {span.signal for span in spans}]  # without a window
        self.base = self.end = 0
        self.heads = [0] * signals  # every decision before it is learned or given up
        self.closed = [0] * signals  # the windows of all decisions before it are closed
        self.late = [0] * signals
        self.rows = np.empty((FIRST_ROOM, width))
        self.values = np.empty((FIRST_ROOM, signals))
        self.standing = np.zeros((FIRST_ROOM, signals), dtype=np.uint8)
        self.dates = np.empty(FIRST_ROOM, dtype=np.int64)
        self.deferred = np.zeros(FIRST_ROOM, dtype=np.uint8)  # 1: not known to be carried out, so not learned from

    def reserve(self, count: int) -> None:
        """Make room for so many decisions more: what is learned goes, and where that is not enough tables grow."""
        held, size = self.end - self.base, len(self.dates)
        if held + count <= size:
            return
        low = min([self.end, *self.heads, *(self.closed[span.signal] for span in self.spans)])
        kept, room = self.end - low, size
        while kept + count > room // 2:
            room *= 2
        start = low - self.base
        for name in TABLES:
            old: Any = getattr(self, name)
            new = np.zeros((room, *old.shape[1:]), dtype=old.dtype)
            new[:kept] = old[start : start + kept]
            setattr(self, name, new)
        self.base = low

    def lay(self, rows: Floats, dates: Sequence[int], deferred: Sequence[bool]) -> None:
        """Write down the decisions that come next; each counts when `add` says so."""
        self.reserve(len(rows))
        part = slice(self.end - self.base, self.end - self.base + len(rows))
        self.rows[part], self.dates[part], self.deferred[part] = rows, dates, deferred
        self.values[part], self.standing[part] = math.nan, MISSING

    def add(self) -> Floats:
        """Count the next decision that was laid, and return its row."""
        self.end += 1
        row: Floats = self.rows[self.end - 1 - self.base]
        return row

    def put(self, place: int, signal: int, value: float) -> bool:
        """Write down a value that came; say whether it came in time, before its window had closed."""
        if place < self.closed[signal] or place < self.heads[signal]:
            self.late[signal] += 1
            return False
        i = place - self.base
        if self.standing[i, signal] == MISSING:
            self.values[i, signal], self.standing[i, signal] = value, HELD
        return True

    def withdraw(self, place: int) -> None:
        """Give up all signals of a decision that were not learned yet: it was not carried out."""
        for signal, head in enumerate(self.heads):
            if place >= head:
                self.standing[place - self.base, signal] = DROPPED

    def activate(self, place: int) -> None:
        """Learn from a deferred decision: it was carried out."""
        if place >= self.base:
            self.deferred[place - self.base] = 0

    def closing(self, now: int) -> list[int]:
        """Let time pass: what is missing from windows that ended counts as declared; return the signals touched.

        A deferred decision that nobody said was carried out is given up then: it tells nothing. Signals without a
        window are given up with the longest one: they would hold back all that follows, for ever.
        """
        touched = []
        for signal, length, value in self.spans:
            first = place = self.closed[signal]
            while place < self.end and self.dates[place - self.base] + length <= now:
                i = place - self.base
                if self.deferred[i]:
                    self.standing[i, signal] = DROPPED
                    if length == self.longest:
                        self.standing[i, self.open] = DROPPED
                        touched += self.open
                elif self.standing[i, signal] == MISSING:
                    self.values[i, signal], self.standing[i, signal] = value, HELD if value == value else DROPPED
                place += 1
            if place > first:
                self.closed[signal] = place
                touched.append(signal)
        return touched if len(touched) < 2 else sorted(set(touched))

    def due(self, signal: int, into: list[tuple[int, int]]) -> None:
        """Append (place, signal) of all that is learned now; the queue's head moves behind it."""
        head, base, standing = self.heads[signal], self.base, self.standing
        while head < self.end:
            told = standing[head - base, signal]
            if told == MISSING or (told == HELD and self.deferred[head - base]):
                break
            if told == HELD:
                into.append((head, signal))
            head += 1
        self.heads[signal] = head

    @property
    def waiting(self) -> list[int]:
        """How many decisions each signal is missing of."""
        held = slice(0, self.end - self.base)
        late = [max(head - self.base, 0) for head in self.heads]
        return [int((self.standing[held][late[k] :, k] == MISSING).sum()) for k in range(len(self.heads))]

    @property
    def held(self) -> list[int]:
        """How many values of each signal are known and not learned yet."""
        held = slice(0, self.end - self.base)
        late = [max(head - self.base, 0) for head in self.heads]
        return [int((self.standing[held][late[k] :, k] == HELD).sum()) for k in range(len(self.heads))]

    def closes(self) -> int | None:
        """Return when the next window closes; None: none is open."""
        ends = [
            int(self.dates[self.closed[span.signal] - self.base]) + span.length
            for span in self.spans
            if self.closed[span.signal] < self.end
        ]
        return min(ends, default=None)

    def plain(self) -> dict[str, Any]:
        """Return what waits, for a snapshot."""
        low = min([self.end, *self.heads, *(self.closed[span.signal] for span in self.spans)])
        part = slice(low - self.base, self.end - self.base)
        tables = {name: getattr(self, name)[part].tobytes() for name in TABLES}
        return {"base": low, "end": self.end, "heads": self.heads, "closed": self.closed, "late": self.late, **tables}

    def restore(self, plain: dict[str, Any]) -> None:
        """Go on from what `plain` wrote down."""
        self.base, self.end = plain["base"], plain["base"]
        self.heads, self.closed, self.late = list(plain["heads"]), list(plain["closed"]), list(plain["late"])
        count = plain["end"] - plain["base"]
        room = max(FIRST_ROOM, 2 * count)
        for name in TABLES:
            old: Any = getattr(self, name)
            new = np.zeros((room, *old.shape[1:]), dtype=old.dtype)
            new[:count] = np.frombuffer(plain[name], dtype=old.dtype).reshape(count, *old.shape[1:])
            setattr(self, name, new)
        self.end = plain["end"]
