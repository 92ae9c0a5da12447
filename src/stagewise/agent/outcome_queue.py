"""The outcome queue: decisions without a complete outcome, and outcomes whose turn has not come.

Signals that are learned together form a queue: one for all of them, or one each if the policy learns them separately.
In every queue, rows are learned in the order of the decisions (docs/theory/order.md).
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

import numpy as np

Order = Literal["decision", "arrival"]
ORDERS = get_args(Order)
MISSING, BUFFERED, DROPPED, DONE = 0, 1, 2, 3  # the status of a signal of a row
HEADS_DIFFER = -1  # instead of the oldest round: the queues are at different rounds


class QueuedRow:
    """A decision with a partly known outcome: the played action, and the value and status of each signal."""

    __slots__ = ("played", "status", "values")

    def __init__(self, played: Any, values: Any, status: bytearray) -> None:
        self.played, self.values, self.status = played, values, status

    def clone(self) -> "QueuedRow":
        """Return an independent copy."""
        values = list(self.values) if isinstance(self.values, list) else self.values
        return QueuedRow(self.played, values, bytearray(self.status))

    def is_ready(self, signals: Sequence[int]) -> bool:
        """Return whether none of these signals is missing."""
        return all(self.status[k] != MISSING for k in signals)

    def is_learnable(self, signals: Sequence[int]) -> bool:
        """Return whether all of these signals are buffered."""
        return all(self.status[k] == BUFFERED for k in signals)

    def select(self, signals: Sequence[int]) -> Any:
        """Return the values of these signals, NaN for the others."""
        if not isinstance(self.values, list):
            return self.values
        if len(signals) == len(self.values):
            return np.array(self.values)
        return np.array([value if k in signals else math.nan for k, value in enumerate(self.values)])


class OutcomeQueue:
    """Pending decisions and buffered outcomes; complete outcomes in order use only `open` and `oldest`."""

    def __init__(self, names: Sequence[str], separate_models: bool, at_once: bool) -> None:
        self.names = tuple(names)
        self.queues = tuple((k,) for k in range(len(names))) if separate_models else (tuple(range(len(names))),)
        self.at_once = at_once  # order="arrival"
        self.open: dict[int, Any] = {}  # by round: the played action, if no outcome is known
        self.rows: dict[int, QueuedRow] = {}  # by round: decisions with some signals that are not all learned
        self.oldest = 0  # the round of every queue: all before it is learned or given up; or HEADS_DIFFER
        self.heads = [0] * len(self.queues)  # the round of each queue, while they differ
        self.touched: list[int] = []  # rows that may be due at once
        self.missing_count = 0  # rows with a missing signal
        self.buffered_count = 0  # rows with a buffered signal

    def clone(self) -> "OutcomeQueue":
        """Return an independent copy."""
        other = OutcomeQueue.__new__(OutcomeQueue)
        vars(other).update(vars(self))
        other.open, other.rows = dict(self.open), {round_: row.clone() for round_, row in self.rows.items()}
        other.heads, other.touched = list(self.heads), list(self.touched)
        return other

    def played(self, round_: int) -> Any:
        """Return the played action of a pending round, or None."""
        row = self.rows.get(round_)
        return self.open.get(round_) if row is None else row.played

    def is_missing(self, round_: int, signal: int) -> bool:
        """Return whether a signal of a pending round is missing."""
        row = self.rows.get(round_)
        return round_ in self.open if row is None else row.status[signal] == MISSING

    def put(self, round_: int, values: Sequence[float], given: Sequence[int]) -> None:
        """Buffer the values of some missing signals."""
        row = self.row(round_)
        self.count(row, -1)
        for k in given:
            row.values[k], row.status[k] = values[k], BUFFERED
        self.count(row, +1)

    def put_whole(self, round_: int, outcome: Any) -> None:
        """Buffer a complete outcome of any type."""
        row = QueuedRow(self.open.pop(round_), outcome, bytearray([BUFFERED] * len(self.names)))
        self.rows[round_] = row
        self.touched.append(round_)
        self.count(row, +1)

    def close(self, round_: int, signal: int, value: float) -> bool:
        """Buffer the value of a missing signal, or drop it if NaN; return whether it was missing."""
        if not self.is_missing(round_, signal):
            return False
        row = self.row(round_)
        self.count(row, -1)
        row.values[signal], row.status[signal] = value, BUFFERED if value == value else DROPPED
        self.count(row, +1)
        return True

    def give_up(self, before: int) -> int:
        """Give up the missing signals of all rounds below `before`; return the number of rounds."""
        rounds = [r for r in self.open if r < before]
        for round_ in rounds:
            del self.open[round_]
        rows = [r for r, row in self.rows.items() if r < before and MISSING in row.status]
        for round_ in rows:
            for signal in range(len(self.names)):
                self.close(round_, signal, math.nan)
        return len(rounds) + len(rows)

    def cancel(self, round_: int) -> Any:
        """Remove a round without any outcome, and return its decision; None if it has one."""
        return self.open.pop(round_, None)

    def iter_due(self, end: int) -> Iterator[tuple[Any, Any]]:
        """Yield played actions and outcomes to be learned now; each is done when the next one is requested."""
        if self.at_once:
            yield from self.iter_touched()
            return
        if self.oldest != HEADS_DIFFER:
            self.heads = [self.oldest] * len(self.queues)
        self.oldest, heads = HEADS_DIFFER, self.heads
        for queue, signals in enumerate(self.queues):
            while heads[queue] < end and heads[queue] not in self.open:
                row = self.rows.get(heads[queue])
                if row is not None:
                    if not row.is_ready(signals):
                        break
                    if row.is_learnable(signals):
                        yield row.played, row.select(signals)
                    self.finish(heads[queue], row, signals)
                heads[queue] += 1
        self.touched.clear()
        if min(heads) == max(heads):
            self.oldest = heads[0]

    def iter_touched(self) -> Iterator[tuple[Any, Any]]:
        """Yield the outcomes of rows that were touched."""
        while self.touched:
            row = self.rows.get(self.touched[-1])
            for signals in self.queues if row is not None else ():
                if row is not None and row.is_ready(signals):
                    if row.is_learnable(signals):
                        yield row.played, row.select(signals)
                    self.finish(self.touched[-1], row, signals)
            self.touched.pop()

    def finish(self, round_: int, row: QueuedRow, signals: Sequence[int]) -> None:
        """Mark these signals of a row as done."""
        self.count(row, -1)
        for k in signals:
            row.status[k] = DONE
        if row.status.count(DONE) < len(row.status):
            self.count(row, +1)
        else:
            del self.rows[round_]

    def row(self, round_: int) -> QueuedRow:
        """Return the row of a pending round."""
        row = self.rows.get(round_)
        if row is None:
            size = len(self.names)
            row = self.rows[round_] = QueuedRow(self.open.pop(round_), [math.nan] * size, bytearray(size))
            self.missing_count += 1
        self.touched.append(round_)
        return row

    def count(self, row: QueuedRow, change: int) -> None:
        """Add a row to the counts, or remove it."""
        self.missing_count += change * (MISSING in row.status)
        self.buffered_count += change * (BUFFERED in row.status)
