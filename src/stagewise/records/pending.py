"""What an agent waits for, signal by signal."""

from collections.abc import Iterator
from typing import Any, NamedTuple


class Waiting(NamedTuple):
    """What is missing of one signal, and what is held back."""

    signal: str
    missing: int  # how many decisions have no outcome of it
    oldest: str | None  # the id of the first of them
    held: int  # how many outcomes of it are known and not learned
    late: int  # how many came after their window had closed
    why: str  # what is waited for


class Pending:
    """A line for each signal; as text, a table.

    >>> print(Pending([Waiting("click", 2, "7c1f-000000000003", 5, 0, "held behind 7c1f-000000000003")]))
    signal  missing  oldest             held  late  why
    click         2  7c1f-000000000003     5     0  held behind 7c1f-000000000003
    """

    def __init__(self, lines: Any) -> None:
        self.lines: tuple[Waiting, ...] = tuple(lines)

    def __iter__(self) -> Iterator[Waiting]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, signal: str) -> Waiting:
        for line in self.lines:
            if line.signal == signal:
                return line
        raise KeyError(signal)

    def plain(self) -> list[dict[str, Any]]:
        """Return the lines as values that JSON can hold."""
        return [line._asdict() for line in self.lines]

    def __str__(self) -> str:
        first = max([6, *(len(line.signal) for line in self.lines)])
        second = max([6, *(len(line.oldest or "") for line in self.lines)])
        heads = f"{'signal':<{first}}  missing  {'oldest':<{second}}  held  late  why"
        told = [
            f"{name:<{first}}  {missing:>7}  {oldest or '':<{second}}  {held:>4}  {late:>4}  {why}".rstrip()
            for name, missing, oldest, held, late, why in self.lines
        ]
        return "\n".join([heads, *told])

    __repr__ = __str__
