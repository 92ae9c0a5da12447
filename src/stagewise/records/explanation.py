"""Explanations of decisions: a table of the leading candidates, as text and as a notebook's HTML."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

CELL = "padding:2px 10px;text-align:{side};font-variant-numeric:tabular-nums"
RULE = ";border-bottom:1px solid currentColor"


class Columns(NamedTuple):
    """A table: its titles, its rows, and which columns are numbers, aligned to the right."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Iterable[int] = ()


def render_html(*parts: str | Columns) -> str:
    """Return texts and tables, one below the other; a text keeps its line breaks.

    >>> render_html("a < b")
    '<div><div style="white-space:pre-wrap">a &lt; b</div></div>'
    """
    blocks = [
        f'<div style="white-space:pre-wrap">{escape(part)}</div>' if isinstance(part, str) else render_table(part)
        for part in parts
    ]
    return f"<div>{''.join(blocks)}</div>"


def render_table(table: Columns) -> str:
    right = set(table.right)
    styles = [CELL.format(side="right" if index in right else "left") for index in range(len(table.titles))]
    head = render_row("th", table.titles, [style + RULE for style in styles])
    body = "".join(render_row("td", row, styles) for row in table.rows)
    return f'<table style="border-collapse:collapse"><thead>{head}</thead><tbody>{body}</tbody></table>'


def render_row(tag: str, cells: Sequence[str], styles: Sequence[str]) -> str:
    columns = [f'<{tag} style="{style}">{escape(cell)}</{tag}>' for cell, style in zip(cells, styles, strict=True)]
    return f"<tr>{''.join(columns)}</tr>"


ABSENT = "-"  # in place of a missing estimate
MARK = "* "  # before the row that is played


class Estimates(NamedTuple):
    """The estimated means of a decision: of the mixture, or of the point on a ray."""

    reward: float
    costs: npt.NDArray[np.float64]  # (m,) in the user's units


class Row(NamedTuple):
    """One candidate with its estimates and bounds at its step or in its mixture."""

    label: str
    optimistic_reward: float
    pessimistic_cost: tuple[float, ...]
    weight: float  # step or probability
    played: bool
    estimate: float | None = None  # of the mean reward
    cost_estimates: tuple[float | None, ...] = ()
    sampled: float | None = None  # the reward that was sampled from the posterior
    score: float | None = None  # what the sampled mixture maximises, where it is not the sampled reward
    proposed: float | None = None  # the probability that the caller proposed


class Table(NamedTuple):
    """The leading candidates, best first, then the safe action."""

    names: tuple[str, ...]
    signs: tuple[float, ...]  # −1 for a lower limit
    thresholds: tuple[float, ...]
    weight_name: str
    rows: tuple[Row, ...]
    hidden: int  # number of candidates left out
    why: str
    promises: tuple[str, ...] = ()  # to whom each limit is promised

    @property
    def limits(self) -> list[str]:
        """The limits as column titles."""
        sides = zip(self.names, self.signs, self.thresholds, strict=True)
        return [f"{name} {'≥' if sign < 0 else '≤'} {limit:g}" for name, sign, limit in sides]

    @property
    def notes(self) -> list[str]:
        """To whom the limits are promised, and how many candidates are left out."""
        more = [f"... and {self.hidden} more"] if self.hidden else []
        return [*more, *(f"{limit}: {promise}" for limit, promise in zip(self.limits, self.promises, strict=False))]

    @property
    def columns(self) -> list[tuple[str, list[str]]]:
        """The groups of columns: a title and the names of the columns."""
        reward = [name for name in ("sampled", "score") if any(getattr(row, name) is not None for row in self.rows)]
        limits = [(limit, ["estimate", "pessimistic"]) for limit in self.limits]
        weights = ["proposed"] * self.shows_proposal + [self.weight_name]
        rewards = ["estimate", *reward, "optimistic"] if self.shows_reward else []
        return [("reward", rewards)] * self.shows_reward + [*limits, ("", weights)]

    @property
    def shows_reward(self) -> bool:
        """Whether there is a reward: not on a proposal where a problem learns none."""
        return any(row.optimistic_reward == row.optimistic_reward for row in self.rows)

    @property
    def shows_proposal(self) -> bool:
        """Whether the rows have proposed probabilities."""
        return any(row.proposed is not None for row in self.rows)

    def cells(self, row: Row) -> list[str]:
        values = {
            "estimate": row.estimate,
            "sampled": row.sampled,
            "score": row.score,
            "optimistic": row.optimistic_reward,
        }
        reward = [values[name] for name in self.columns[0][1]] if self.shows_reward else []
        costs = zip(row.cost_estimates or (None,) * len(row.pessimistic_cost), row.pessimistic_cost, strict=True)
        weights = [row.proposed] * self.shows_proposal + [row.weight]
        numbers = [*reward, *(value for pair in costs for value in pair), *weights]
        return [ABSENT if number is None else f"{number:z.4f}" for number in numbers]


class Basis(Protocol):
    """The data of an explanation, computed on request."""

    def __call__(self) -> Table:
        """Return the table of the candidates."""

    def estimates(self) -> Estimates | None:
        """Return the estimates of the decision; None: there are none."""


class Explanation(str):
    """Text that shows itself as it is, also where its repr is shown; a notebook shows its table."""

    _table: Table | None = None

    @classmethod
    def of(cls, text: str, table: Table | None) -> "Explanation":
        self = cls(text)
        self._table = table
        return self

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the explanation as a notebook shows it."""
        if self._table is None:
            return render_html(self)
        table, (head, *below) = self._table, self.splitlines()
        titles = ["", *(f"{title} {name}".strip() for title, group in table.columns for name in group)]
        rows = [[f"{MARK if row.played else ''}{row.label}", *table.cells(row)] for row in table.rows]
        notes = [line.strip() for line in below[2 + len(rows) :]]  # below two lines of titles and the rows
        return render_html(head, Columns(titles, rows, range(1, len(titles))), *notes)


def build_heading(round_: int, message: str | None, table: Table) -> str:
    """Return the line above a table: the action and the reason."""
    played = ", ".join(row.label for row in table.rows if row.played)
    return f"round {round_}: {played}, {message or table.why}"


def format_table(round_: int, message: str | None, table: Table) -> str:
    """Return the table as text.

    >>> rows = (
    ...     Row("ray 0", 1.5, (0.2,), 0.4, True, 1.1, (0.15,)), Row("safe action", 0.0, (0.0,), 0.0, False, 0.0, (0.0,))
    ... )
    >>> print(format_table(3, None, Table(("cost",), (1.0,), (0.2,), "step", rows, 0, "the best safe step")))
    round 3: ray 0, the best safe step
                   reward                cost ≤ 0.2
                   estimate  optimistic  estimate  pessimistic    step
    * ray 0          1.1000      1.5000    0.1500       0.2000  0.4000
      safe action    0.0000      0.0000    0.0000       0.0000  0.0000
    """
    first = max([11, *(len(row.label) for row in table.rows)])
    rows = [table.cells(row) for row in table.rows]
    heads = [head for _, group in table.columns for head in group]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    titles, start = "", 0
    for title, group in table.columns:
        width = sum(widths[start : start + len(group)]) + 2 * (len(group) - 1)
        if len(title) > width:
            widths[start] += len(title) - width
            width = len(title)
        titles, start = f"{titles}  {title:<{width}}", start + len(group)
    margin = " " * (first + len(MARK))
    lines = [f"{margin}{titles}".rstrip(), f"{margin}{join_cells(heads, widths)}"]
    for row, cells in zip(table.rows, rows, strict=True):
        lines.append(f"{MARK if row.played else '  '}{row.label:<{first}}{join_cells(cells, widths)}")
    notes = [f"  {note}" for note in table.notes]
    return "\n".join([build_heading(round_, message, table), *lines, *notes])


def join_cells(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return right-aligned cells in columns of these widths."""
    return "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
