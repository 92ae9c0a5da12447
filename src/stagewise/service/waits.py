"""Decisions whose outcomes are not all in, as tables: what was played, each signal's value and standing, and when.

Every signal is a queue of its own, learned and counted in the order of the decisions (docs/theory/order.md): its head
is the first decision that lacks it, and what came in behind the head is held. Whoever took what comes first would see
clicks before he sees that there were none.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.policies.agent.e_process import BLOCK
from stagewise.problem.declared import Limit, Reward
from stagewise.service.records import SHOWN

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

    def __init__(
        self,
        width: int,
        declared: Mapping[str, Reward | Limit],
        unit: Callable[[str, float], float] = lambda _, told: told,
    ) -> None:
        """Begin before the first decision.

        Args:
            width: Numbers that are kept of each decision.
            declared: The signals by name, with their windows.
            unit: How a signal's value is written down; left out: as it was told.
        """
        self.names, self.unit, signals = tuple(declared), unit, len(declared)
        windows = [(k, name, signal.waits) for k, (name, signal) in enumerate(declared.items())]
        self.spans = tuple(
            Span(k, round(window.seconds * 1e6), math.nan if window.drops else unit(name, float(window.missing)))
            for k, name, window in windows
            if window is not None
        )
        self.longest = max((span.length for span in self.spans), default=0)
        self.open = [k for k, _, window in windows if window is None]
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
        low = self._low()
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

    def lay(self, rows: Floats | Sequence[Sequence[float]], dates: Sequence[int], deferred: Sequence[bool]) -> None:
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

    def told(self, place: int, values: Mapping[str, float], due: list[tuple[int, int]]) -> list[str]:
        """Take in an outcome, each signal by itself; return those that are new, and came before their window closed.

        Values of signals that nobody declared are left alone. `due`: as for `passed`.
        """
        if values.get(SHOWN, 1.0) == 0.0:
            self._withdraw(place)
        elif SHOWN in values and place >= self.base:
            self.deferred[place - self.base] = 0
        new = []
        for signal, name in enumerate(self.names):
            if name in values and self._put(place, signal, self.unit(name, values[name])):
                new.append(name)
            if self.heads[signal] == place:
                self._move(signal, due)
        return new

    def _put(self, place: int, signal: int, value: float) -> bool:
        """Write down a value that came; say whether it is new, and came before its window had closed."""
        if place < self.closed[signal] or place < self.heads[signal]:
            self.late[signal] += 1
            return False
        i = place - self.base
        if self.standing[i, signal] != MISSING:
            return False
        self.values[i, signal], self.standing[i, signal] = value, HELD
        return True

    def _withdraw(self, place: int) -> None:
        """Give up all signals of a decision that were not learned yet: it was not carried out."""
        for signal, head in enumerate(self.heads):
            if place >= head:
                self.standing[place - self.base, signal] = DROPPED

    def passed(self, now: int, due: list[tuple[int, int]]) -> None:
        """Let time pass, and append (place, signal) of all that is learned from now on."""
        for signal in self._closing(now):
            self._move(signal, due)

    def _closing(self, now: int) -> list[int]:
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

    def _move(self, signal: int, due: list[tuple[int, int]]) -> None:
        """Move a queue's head behind all that is learned now."""
        head, base, standing = self.heads[signal], self.base, self.standing
        while head < self.end:
            told = standing[head - base, signal]
            if told == MISSING or (told == HELD and self.deferred[head - base]):
                break
            if told == HELD:
                due.append((head, signal))
            head += 1
        self.heads[signal] = head

    @property
    def waiting(self) -> list[int]:
        """How many decisions each signal is missing of."""
        return self._count(MISSING)

    @property
    def held(self) -> list[int]:
        """How many values of each signal are known and not learned yet."""
        return self._count(HELD)

    def _count(self, standing: int) -> list[int]:
        last = self.end - self.base
        queues = [self.standing[head - self.base : last, k] for k, head in enumerate(self.heads)]
        return [int((queue == standing).sum()) for queue in queues]

    @property
    def oldest(self) -> list[int | None]:
        """When the oldest decision was made that each signal is waited for of; None: there is none."""
        return [self.date(head) if head < self.end else None for head in self.heads]

    def date(self, place: int) -> int:
        """Return when a decision was made."""
        return int(self.dates[place - self.base])

    def closes(self) -> int | None:
        """Return when the next window closes; None: none is open."""
        first = [(self.closed[span.signal], span.length) for span in self.spans]
        return min((self.date(place) + length for place, length in first if place < self.end), default=None)

    def _low(self) -> int:
        """Return where the block begins that holds the first decision that something is waited for of."""
        low = min([self.end, *self.heads, *(self.closed[span.signal] for span in self.spans)])
        return low - low % BLOCK

    def plain(self) -> dict[str, Any]:
        """Return what waits, for a snapshot."""
        low = self._low()
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
