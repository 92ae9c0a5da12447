"""Outcomes of decisions: as given, as still pending, and what became of a row of a table."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Outcome(NamedTuple):
    """The observed reward and costs of one decision.

    Attributes:
        reward: The observed reward.
        cost: The observed costs: a number, one per constraint, or a mapping by name.

    Example:
        >>> Outcome(0.7, {"spend": 0.1})
        Outcome(reward=0.7, cost={'spend': 0.1})
    """

    reward: float
    cost: float | Sequence[float] | Mapping[str, float] | npt.NDArray[np.float64] | None = ()


class PendingSignal(NamedTuple):
    """The pending outcomes of one signal."""

    signal: str
    missing: int  # number of decisions without an outcome of it
    oldest: str | None  # the id of the first such decision
    buffered: int  # number of outcomes that are buffered and not learned yet
    late: int  # number of outcomes that arrived after their window closed
    why: str  # what the agent waits for


class Pending:
    """One line per signal; `str` is a table.

    >>> print(Pending([PendingSignal("click", 2, "7c1f-000000000003", 5, 0, "behind 7c1f-000000000003")]))
    signal  missing  oldest             buffered  late  why
    click         2  7c1f-000000000003         5     0  behind 7c1f-000000000003
    """

    def __init__(self, lines: Any) -> None:
        self.lines: tuple[PendingSignal, ...] = tuple(lines)

    def __iter__(self) -> Iterator[PendingSignal]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, signal: str) -> PendingSignal:
        for line in self.lines:
            if line.signal == signal:
                return line
        raise KeyError(signal)

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the lines as values that JSON can hold."""
        return [line._asdict() for line in self.lines]

    def __str__(self) -> str:
        first = max([6, *(len(line.signal) for line in self.lines)])
        second = max([6, *(len(line.oldest or "") for line in self.lines)])
        heads = f"{'signal':<{first}}  missing  {'oldest':<{second}}  buffered  late  why"
        rows = [
            f"{name:<{first}}  {missing:>7}  {oldest or '':<{second}}  {buffered:>8}  {late:>4}  {why}".rstrip()
            for name, missing, oldest, buffered, late, why in self.lines
        ]
        return "\n".join([heads, *rows])

    __repr__ = __str__


class RowStatus(StrEnum):
    """What became of a row that was registered or learned.

    Example:
        >>> str(RowStatus.ACCEPTED)
        'accepted'
    """

    ACCEPTED = "accepted"
    """It counts."""
    DUPLICATE = "duplicate"
    """It is already known; nothing of it counts again."""
    LATE = "late"
    """A signal arrived after its window closed; what arrived in time counts."""
    UNKNOWN = "unknown"
    """No decision of this agent has this id."""
    INVALID = "invalid"
    """A value is missing or outside its range; nothing of it counts."""
