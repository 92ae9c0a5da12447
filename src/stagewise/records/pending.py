"""Pending outcomes, signal by signal."""

from collections.abc import Iterator
from typing import Any, NamedTuple


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
