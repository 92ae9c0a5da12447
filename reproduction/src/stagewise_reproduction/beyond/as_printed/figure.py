"""Regret, one panel per problem."""

from typing import Any

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.as_printed.plan import OURS, PRINTED, PROBLEMS, SAME_SETS, build_name
from stagewise_reproduction.drawing import add_legend_below, draw_regret, make_panels


def draw(_: str, results: dict[str, Result]) -> Any:
    """Draw every problem's curves, the printed form's first."""
    figure, grid = make_panels(2, 3, by_row=True)
    for axes, problem in zip(grid.ravel(), PROBLEMS, strict=True):
        curves = {player: results.get(build_name(problem, player)) for player in (PRINTED, OURS, SAME_SETS)}
        axes.set_title(problem)
        draw_regret(axes, {player: result for player, result in curves.items() if result is not None})
    add_legend_below(figure, grid[0, 0])
    return figure
