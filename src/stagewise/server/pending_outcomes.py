"""Tables of decisions with pending outcomes: action, time, and the value and status of each signal.

Each signal is a queue that is learned in the order of decisions (docs/theory/order.md). Its head is the first
decision without the signal, and later values are buffered. Learning in the order of arrival would be biased: clicks
arrive before their absence is known.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.agent.outcome_queue import BLOCK
from stagewise.engine.compile import Floats
from stagewise.problem.signals import Limit, Reward
from stagewise.server.event_log import SHOWN

MISSING, BUFFERED, DROPPED = 0, 1, 2  # status of a signal: not reported; reported and not learned yet; never learned
INITIAL_CAPACITY = 1024
ARRAYS = ("rows", "values", "status", "dates", "deferred")


class SignalWindow(NamedTuple):
    """The window of a signal."""

    signal: int
    length: int
    """In microseconds."""
    value: float
    """The scaled value that a missing signal counts as; NaN: it is dropped."""


class PendingOutcomes:
    """The decisions `base` to `end` − 1, and the queue of each signal."""

    def __init__(
        self,
        width: int,
        declared: Mapping[str, Reward | Limit],
        unit: Callable[[str, float], float] = lambda _, value: value,
    ) -> None:
        """Create empty tables.

        Args:
            width: Number of values kept of each decision.
            declared: The signals by name, with their windows.
            unit: Scales a reported value; default: unchanged.
        """
        self.names, self.unit, signals = tuple(declared), unit, len(declared)
        windows = [(k, name, signal.waits) for k, (name, signal) in enumerate(declared.items())]
        self.spans = tuple(
            SignalWindow(
                k, round(window.seconds * 1e6), math.nan if window.drops else unit(name, float(window.missing))
            )
            for k, name, window in windows
            if window is not None
        )
        self.longest = max((span.length for span in self.spans), default=0)
        self.open = [k for k, _, window in windows if window is None]
        self.base = self.end = 0
        self.heads = [0] * signals  # all decisions before it are learned or dropped
        self.closed = [0] * signals  # the windows of all decisions before it are closed
        self.late = [0] * signals
        self.rows = np.empty((INITIAL_CAPACITY, width))
        self.values = np.empty((INITIAL_CAPACITY, signals))
        self.status = np.zeros((INITIAL_CAPACITY, signals), dtype=np.uint8)
        self.dates = np.empty(INITIAL_CAPACITY, dtype=np.int64)
        self.deferred = np.zeros(INITIAL_CAPACITY, dtype=np.uint8)  # 1: not reported as shown, so not learned

    def reserve(self, count: int) -> None:
        """Make room for more decisions: drop learned ones, then grow the tables."""
        used, size = self.end - self.base, len(self.dates)
        if used + count <= size:
            return
        low = self._first_block()
        remaining, capacity = self.end - low, size
        while remaining + count > capacity // 2:
            capacity *= 2
        start = low - self.base
        for name in ARRAYS:
            old: Any = getattr(self, name)
            new = np.zeros((capacity, *old.shape[1:]), dtype=old.dtype)
            new[:remaining] = old[start : start + remaining]
            setattr(self, name, new)
        self.base = low

    def stage(self, rows: Floats | Sequence[Sequence[float]], dates: Sequence[int], deferred: Sequence[bool]) -> None:
        """Write the next decisions to the tables; `add` makes each one count."""
        self.reserve(len(rows))
        part = slice(self.end - self.base, self.end - self.base + len(rows))
        self.rows[part], self.dates[part], self.deferred[part] = rows, dates, deferred
        self.values[part], self.status[part] = math.nan, MISSING

    def add(self) -> Floats:
        """Count the next staged decision and return its row."""
        self.end += 1
        row: Floats = self.rows[self.end - 1 - self.base]
        return row

    def record_outcome(self, decision_index: int, values: Mapping[str, float], due: list[tuple[int, int]]) -> list[str]:
        """Record an outcome; return the signals that are new and in time.

        Undeclared signals are ignored. `due` is as for `advance`.
        """
        if values.get(SHOWN, 1.0) == 0.0:
            self._drop(decision_index)
        elif SHOWN in values and decision_index >= self.base:
            self.deferred[decision_index - self.base] = 0
        new = []
        for signal, name in enumerate(self.names):
            if name in values and self._store_value(decision_index, signal, self.unit(name, values[name])):
                new.append(name)
            if self.heads[signal] == decision_index:
                self._advance_head(signal, due)
        return new

    def _store_value(self, decision_index: int, signal: int, value: float) -> bool:
        """Store a reported value; return whether it is new and in time."""
        if decision_index < self.closed[signal] or decision_index < self.heads[signal]:
            self.late[signal] += 1
            return False
        i = decision_index - self.base
        if self.status[i, signal] != MISSING:
            return False
        self.values[i, signal], self.status[i, signal] = value, BUFFERED
        return True

    def _drop(self, decision_index: int) -> None:
        """Drop all signals of a decision that are not learned yet, because it was not carried out."""
        for signal, head in enumerate(self.heads):
            if decision_index >= head:
                self.status[decision_index - self.base, signal] = DROPPED

    def advance(self, now: int, due: list[tuple[int, int]]) -> None:
        """Advance the time, and append (decision index, signal) of all that can be learned to `due`."""
        for signal in self._close_windows(now):
            self._advance_head(signal, due)

    def _close_windows(self, now: int) -> list[int]:
        """Close windows: a missing signal counts as declared; return the affected signals.

        A deferred decision without `shown` is dropped then. Its signals without a window are dropped with the longest
        window; otherwise they would block all that follow.
        """
        touched = []
        for signal, length, value in self.spans:
            first = decision_index = self.closed[signal]
            while decision_index < self.end and self.dates[decision_index - self.base] + length <= now:
                i = decision_index - self.base
                if self.deferred[i]:
                    self.status[i, signal] = DROPPED
                    if length == self.longest:
                        self.status[i, self.open] = DROPPED
                        touched += self.open
                elif self.status[i, signal] == MISSING:
                    self.values[i, signal], self.status[i, signal] = value, BUFFERED if value == value else DROPPED
                decision_index += 1
            if decision_index > first:
                self.closed[signal] = decision_index
                touched.append(signal)
        return touched if len(touched) < 2 else sorted(set(touched))

    def _advance_head(self, signal: int, due: list[tuple[int, int]]) -> None:
        """Move the head of a queue past all that can be learned."""
        head, base = self.heads[signal], self.base
        while head < self.end:
            status = self.status[head - base, signal]
            if status == MISSING or (status == BUFFERED and self.deferred[head - base]):
                break
            if status == BUFFERED:
                due.append((head, signal))
            head += 1
        self.heads[signal] = head

    @property
    def pending_count(self) -> list[int]:
        """By signal: number of decisions without it."""
        return self._count(MISSING)

    @property
    def buffered_count(self) -> list[int]:
        """By signal: number of reported values that are not learned yet."""
        return self._count(BUFFERED)

    def _count(self, status: int) -> list[int]:
        last = self.end - self.base
        queues = [self.status[head - self.base : last, k] for k, head in enumerate(self.heads)]
        return [int((queue == status).sum()) for queue in queues]

    @property
    def oldest(self) -> list[int | None]:
        """By signal: time of the oldest pending decision, or None."""
        return [self.date(head) if head < self.end else None for head in self.heads]

    def date(self, decision_index: int) -> int:
        """Return the time of a decision."""
        return int(self.dates[decision_index - self.base])

    def closes(self) -> int | None:
        """Return when the next window closes; None if none is open."""
        first = [(self.closed[span.signal], span.length) for span in self.spans]
        return min(
            (self.date(decision_index) + length for decision_index, length in first if decision_index < self.end),
            default=None,
        )

    def _first_block(self) -> int:
        """Return the start of the block with the first pending decision."""
        low = min([self.end, *self.heads, *(self.closed[span.signal] for span in self.spans)])
        return low - low % BLOCK

    def to_dict(self) -> dict[str, Any]:
        """Return the pending rows for a snapshot."""
        low = self._first_block()
        part = slice(low - self.base, self.end - self.base)
        tables = {name: getattr(self, name)[part].tobytes() for name in ARRAYS}
        return {"base": low, "end": self.end, "heads": self.heads, "closed": self.closed, "late": self.late, **tables}

    def restore(self, content: dict[str, Any]) -> None:
        """Restore the state that `to_dict` returned."""
        self.base, self.end = content["base"], content["base"]
        self.heads, self.closed, self.late = list(content["heads"]), list(content["closed"]), list(content["late"])
        count = content["end"] - content["base"]
        capacity = max(INITIAL_CAPACITY, 2 * count)
        for name in ARRAYS:
            old: Any = getattr(self, name)
            new = np.zeros((capacity, *old.shape[1:]), dtype=old.dtype)
            new[:count] = np.frombuffer(content[name], dtype=old.dtype).reshape(count, *old.shape[1:])
            setattr(self, name, new)
        self.end = content["end"]
