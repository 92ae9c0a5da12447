"""Regret, one panel a problem."""

from typing import Any

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.as_printed.plan import OURS, PRINTED, PROBLEMS, SAME, name_of
from stagewise_reproduction.drawing import legend_below, panels, regret


def draw(_: str, results: dict[str, Result]) -> Any:
    """Draw every problem's curves, the printed form's first."""
    figure, grid = panels(2, 3, by_row=True)
    for axes, problem in zip(grid.ravel(), PROBLEMS, strict=True):
        found = {player: results.get(name_of(problem, player)) for player in (PRINTED, OURS, SAME)}
        axes.set_title(problem)
        regret(axes, {player: result for player, result in found.items() if result is not None})
    legend_below(figure, grid[0, 0])
    return figure
