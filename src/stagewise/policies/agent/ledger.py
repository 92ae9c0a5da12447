"""What waits: decisions without all of their outcomes, and outcomes whose turn has not come.

Signals that are learned together form a queue: one for all of them, or one each where the policy keeps them apart. In
every queue rows are learned in the order of the decisions (docs/theory/order.md).
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

import numpy as np

Order = Literal["decision", "arrival"]
ORDERS = get_args(Order)
MISSING, HELD, DROPPED, DONE = 0, 1, 2, 3  # a signal of a row: not in; in, and not learned; given up; past
SEVERAL = -1  # in the place of the oldest: queues stand at different rounds


class Row:
    """A decision of which something is known: what was played, and each signal's value and standing."""

    __slots__ = ("played", "standing", "values")

    def __init__(self, played: Any, values: Any, standing: bytearray) -> None:
        self.played, self.values, self.standing = played, values, standing

    def copied(self) -> "Row":
        """Return an independent copy."""
        values = list(self.values) if isinstance(self.values, list) else self.values
        return Row(self.played, values, bytearray(self.standing))

    def ready(self, signals: Sequence[int]) -> bool:
        """Say whether none of these signals is missing."""
        return all(self.standing[k] != MISSING for k in signals)

    def learned_from(self, signals: Sequence[int]) -> bool:
        """Say whether these signals are all there to be learned."""
        return all(self.standing[k] == HELD for k in signals)

    def only(self, signals: Sequence[int]) -> Any:
        """Return the values of these signals, NaN for the others."""
        if not isinstance(self.values, list):
            return self.values
        if len(signals) == len(self.values):
            return np.array(self.values)
        return np.array([value if k in signals else math.nan for k, value in enumerate(self.values)])


class Ledger:
    """Open decisions and held outcomes. Whoever only ever gives whole outcomes in order touches `open` and `oldest`."""

    def __init__(self, names: Sequence[str], apart: bool, at_once: bool) -> None:
        self.names = tuple(names)
        self.queues = tuple((k,) for k in range(len(names))) if apart else (tuple(range(len(names))),)
        self.at_once = at_once  # order="arrival"
        self.open: dict[int, Any] = {}  # by round: what was played, where no outcome is known
        self.rows: dict[int, Row] = {}  # by round: where some are, and not all were learned
        self.oldest = 0  # every queue stands here: all before it is learned or given up; or SEVERAL
        self.heads = [0] * len(self.queues)  # where each queue stands, while they differ
        self.touched: list[int] = []  # rows that may be due at once
        self.lacking = 0  # rows with a signal missing
        self.holding = 0  # rows with a signal held

    def copied(self) -> "Ledger":
        """Return an independent copy."""
        other = Ledger.__new__(Ledger)
        vars(other).update(vars(self))
        other.open, other.rows = dict(self.open), {round_: row.copied() for round_, row in self.rows.items()}
        other.heads, other.touched = list(self.heads), list(self.touched)
        return other

    def played(self, round_: int) -> Any:
        """Return what was played in a round that waits, or nothing."""
        row = self.rows.get(round_)
        return self.open.get(round_) if row is None else row.played

    def missing(self, round_: int, signal: int) -> bool:
        """Say whether a signal of a round that waits is not in yet."""
        row = self.rows.get(round_)
        return round_ in self.open if row is None else row.standing[signal] == MISSING

    def put(self, round_: int, values: Sequence[float], given: Sequence[int]) -> None:
        """Write down the values of some signals that are missing."""
        row = self.row(round_)
        self.count(row, -1)
        for k in given:
            row.values[k], row.standing[k] = values[k], HELD
        self.count(row, +1)

    def put_whole(self, round_: int, outcome: Any) -> None:
        """Write down a whole outcome, of whatever kind."""
        row = Row(self.open.pop(round_), outcome, bytearray([HELD] * len(self.names)))
        self.rows[round_] = row
        self.touched.append(round_)
        self.count(row, +1)

    def close(self, round_: int, signal: int, value: float) -> bool:
        """Write down what a missing signal counts as; NaN: it is given up. Say whether it was missing."""
        if not self.missing(round_, signal):
            return False
        row = self.row(round_)
        self.count(row, -1)
        row.values[signal], row.standing[signal] = value, HELD if value == value else DROPPED
        self.count(row, +1)
        return True

    def give_up(self, before: int) -> int:
        """Give up what is missing in all rounds below `before`; return in how many."""
        rounds = [r for r in self.open if r < before]
        for round_ in rounds:
            del self.open[round_]
        rows = [r for r, row in self.rows.items() if r < before and MISSING in row.standing]
        for round_ in rows:
            for signal in range(len(self.names)):
                self.close(round_, signal, math.nan)
        return len(rounds) + len(rows)

    def withdraw(self, round_: int) -> Any:
        """Let go of a round of which nothing came, and return what was decided there; nothing: something came."""
        return self.open.pop(round_, None)

    def due(self, end: int) -> Iterator[tuple[Any, Any]]:
        """Yield what was played and seen, to be learned now; each is done once the next is asked for."""
        if self.at_once:
            yield from self.due_at_once()
            return
        if self.oldest != SEVERAL:
            self.heads = [self.oldest] * len(self.queues)
        self.oldest, heads = SEVERAL, self.heads
        for queue, signals in enumerate(self.queues):
            while heads[queue] < end and heads[queue] not in self.open:
                row = self.rows.get(heads[queue])
                if row is not None:
                    if not row.ready(signals):
                        break
                    if row.learned_from(signals):
                        yield row.played, row.only(signals)
                    self.finish(heads[queue], row, signals)
                heads[queue] += 1
        self.touched.clear()
        if min(heads) == max(heads):
            self.oldest = heads[0]

    def due_at_once(self) -> Iterator[tuple[Any, Any]]:
        """Yield what has come in rows that were touched."""
        while self.touched:
            row = self.rows.get(self.touched[-1])
            for signals in self.queues if row is not None else ():
                if row is not None and row.ready(signals):
                    if row.learned_from(signals):
                        yield row.played, row.only(signals)
                    self.finish(self.touched[-1], row, signals)
            self.touched.pop()

    def finish(self, round_: int, row: Row, signals: Sequence[int]) -> None:
        """Write down that these signals of a row are past."""
        self.count(row, -1)
        for k in signals:
            row.standing[k] = DONE
        if row.standing.count(DONE) < len(row.standing):
            self.count(row, +1)
        else:
            del self.rows[round_]

    def row(self, round_: int) -> Row:
        """Return the row of a round that waits."""
        row = self.rows.get(round_)
        if row is None:
            size = len(self.names)
            row = self.rows[round_] = Row(self.open.pop(round_), [math.nan] * size, bytearray(size))
            self.lacking += 1
        self.touched.append(round_)
        return row

    def count(self, row: Row, change: int) -> None:
        """Count a row in, or out."""
        self.lacking += change * (MISSING in row.standing)
        self.holding += change * (HELD in row.standing)
