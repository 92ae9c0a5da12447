"""A decision as a small table for a person."""

from typing import NamedTuple


class Row(NamedTuple):
    """One candidate: its bounds at the step or in the mixture where it would be played."""

    label: str
    hoped: float
    dearest: tuple[float, ...]
    weight: float  # step or probability
    played: bool


class Table(NamedTuple):
    """The leading candidates, best first, then the safe action."""

    names: tuple[str, ...]
    signs: tuple[float, ...]  # −1 where the threshold is from below
    thresholds: tuple[float, ...]
    weight_name: str
    rows: tuple[Row, ...]
    hidden: int  # how many candidates are not shown
    why: str


def explained(round_: int, fallback: str | None, table: Table) -> str:
    """Return the table as text.

    >>> rows = (Row("ray 0", 1.5, (0.2,), 0.4, True), Row("safe action", 0.0, (0.0,), 0.0, False))
    >>> print(explained(3, None, Table(("cost",), (1.0,), (0.2,), "step", rows, 0, "the best of the safe")))
    round 3: ray 0, the best of the safe
                     hoped  cost ≤ 0.2    slack     step
    * ray 0         1.5000      0.2000   0.0000   0.4000
      safe action   0.0000      0.0000   0.2000   0.0000
    """
    limits = [
        f"{name} {'≥' if sign < 0 else '≤'} {limit:g}"
        for name, sign, limit in zip(table.names, table.signs, table.thresholds, strict=True)
    ]
    first = max([11, *(len(row.label) for row in table.rows)])
    heads = ["hoped", *(head for limit in limits for head in (limit, "slack")), ""]
    least = [7, *(wide for _ in limits for wide in (8, 7)), 7]
    rows = [[f"{number:z.4f}" for number in numbers_of(row, table)] for row in table.rows]
    wide = [max(few, *map(len, column)) for few, column in zip(least, zip(heads, *rows, strict=True), strict=True)]
    told = [f"{head:>{w}}" for head, w in zip(heads[:-1], wide[:-1], strict=True)]
    lines = ["  ".join([" " * (first + 2), *told, f"{table.weight_name:>7}"])]
    for row, cells in zip(table.rows, rows, strict=True):
        mark = "*" if row.played else " "
        cells = [f"{cell:>{w}}" for cell, w in zip(cells, wide, strict=True)]
        lines.append("  ".join([f"{mark} {row.label:<{first}}", *cells]))
    if table.hidden:
        lines.append(f"  ... and {table.hidden} more")
    played = ", ".join(row.label for row in table.rows if row.played)
    return "\n".join([f"round {round_}: {played}, {fallback or table.why}", *lines])


def numbers_of(row: Row, table: Table) -> list[float]:
    """Return what a row shows: the hoped reward, each cost and the slack that it leaves, and the weight."""
    costs = zip(row.dearest, table.signs, table.thresholds, strict=True)
    return [row.hoped, *(x for cost, sign, limit in costs for x in (cost, sign * (limit - cost))), row.weight]
