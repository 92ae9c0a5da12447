"""A decision as a small table for a person."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from stagewise.records.html import html_table, page_of

ABSENT = "-"  # where there is no estimate
MARK = "* "  # before what is played


class Estimates(NamedTuple):
    """The estimated means of what a decision plays: of the mixture, or of the point on a ray."""

    reward: float
    costs: npt.NDArray[np.float64]  # (m,) in the user's own units


class Row(NamedTuple):
    """One candidate: its estimates and bounds at the step or in the mixture where it would be played."""

    label: str
    hoped: float
    dearest: tuple[float, ...]
    weight: float  # step or probability
    played: bool
    estimate: float | None = None  # of the mean reward
    cost_estimates: tuple[float | None, ...] = ()
    sampled: float | None = None  # the reward that was sampled from the posterior
    score: float | None = None  # what the sampled mixture maximises, where it is not the sampled reward


class Table(NamedTuple):
    """The leading candidates, best first, then the safe action."""

    names: tuple[str, ...]
    signs: tuple[float, ...]  # −1 where the threshold is from below
    thresholds: tuple[float, ...]
    weight_name: str
    rows: tuple[Row, ...]
    hidden: int  # how many candidates are not shown
    why: str

    @property
    def limits(self) -> list[str]:
        """The limits as they stand above their columns."""
        sides = zip(self.names, self.signs, self.thresholds, strict=True)
        return [f"{name} {'≥' if sign < 0 else '≤'} {limit:g}" for name, sign, limit in sides]

    @property
    def columns(self) -> list[tuple[str, list[str]]]:
        """The groups of columns: a title, and what stands in each."""
        reward = [name for name in ("sampled", "score") if any(getattr(row, name) is not None for row in self.rows)]
        limits = [(limit, ["estimate", "pessimistic"]) for limit in self.limits]
        return [("reward", ["estimate", *reward, "optimistic"]), *limits, ("", [self.weight_name])]

    def cells(self, row: Row) -> list[str]:
        """Return what stands in a row, column by column."""
        told = {"estimate": row.estimate, "sampled": row.sampled, "score": row.score, "optimistic": row.hoped}
        reward = [told[name] for name in self.columns[0][1]]
        costs = zip(row.cost_estimates or (None,) * len(row.dearest), row.dearest, strict=True)
        numbers = [*reward, *(value for pair in costs for value in pair), row.weight]
        return [ABSENT if number is None else f"{number:z.4f}" for number in numbers]


class Basis(Protocol):
    """What a decision is explained by, worked out when somebody asks."""

    def __call__(self) -> Table:
        """Return the table of the candidates."""

    def estimates(self) -> Estimates | None:
        """Return the estimates of what is played; None: there are none."""


class Explanation(str):
    """Text that a terminal and a notebook show as it is meant to be read."""

    _table: Table | None = None

    @classmethod
    def of(cls, text: str, table: Table | None = None) -> "Explanation":
        """Return an explanation with the table that a notebook draws."""
        self = cls(text)
        self._table = table
        return self

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the same as a table of HTML."""
        if self._table is None:
            return page_of(str(self))
        return html_of(self.partition("\n")[0], self._table)


def head_of(round_: int, fallback: str | None, table: Table) -> str:
    """Return the sentence above a table: what is played, and why."""
    played = ", ".join(row.label for row in table.rows if row.played)
    return f"round {round_}: {played}, {fallback or table.why}"


def explained(round_: int, fallback: str | None, table: Table) -> str:
    """Return the table as text.

    >>> rows = (
    ...     Row("ray 0", 1.5, (0.2,), 0.4, True, 1.1, (0.15,)), Row("safe action", 0.0, (0.0,), 0.0, False, 0.0, (0.0,))
    ... )
    >>> print(explained(3, None, Table(("cost",), (1.0,), (0.2,), "step", rows, 0, "the best of the safe")))
    round 3: ray 0, the best of the safe
                   reward                cost ≤ 0.2
                   estimate  optimistic  estimate  pessimistic    step
    * ray 0          1.1000      1.5000    0.1500       0.2000  0.4000
      safe action    0.0000      0.0000    0.0000       0.0000  0.0000
    """
    first = max([11, *(len(row.label) for row in table.rows)])
    rows = [table.cells(row) for row in table.rows]
    heads = [head for _, group in table.columns for head in group]
    wide = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    titles, at = "", 0
    for title, group in table.columns:
        room = sum(wide[at : at + len(group)]) + 2 * (len(group) - 1)
        if len(title) > room:
            wide[at] += len(title) - room
            room = len(title)
        titles, at = f"{titles}  {title:<{room}}", at + len(group)
    margin = " " * (first + len(MARK))
    lines = [f"{margin}{titles}".rstrip(), f"{margin}{joined(heads, wide)}"]
    for row, cells in zip(table.rows, rows, strict=True):
        lines.append(f"{MARK if row.played else '  '}{row.label:<{first}}{joined(cells, wide)}")
    if table.hidden:
        lines.append(f"  ... and {table.hidden} more")
    return "\n".join([head_of(round_, fallback, table), *lines])


def joined(cells: Sequence[str], wide: Sequence[int]) -> str:
    """Return cells in columns of these widths, to the right."""
    return "".join(f"  {cell:>{width}}" for cell, width in zip(cells, wide, strict=True))


def html_of(head: str, table: Table) -> str:
    """Return the table as HTML."""
    heads = [f"{title} {name}".strip() for title, group in table.columns for name in group]
    rows = [[f"{MARK if row.played else ''}{row.label}", *table.cells(row)] for row in table.rows]
    more = [f"... and {table.hidden} more"] if table.hidden else []
    return page_of(head, html_table(["", *heads], rows), *more)
