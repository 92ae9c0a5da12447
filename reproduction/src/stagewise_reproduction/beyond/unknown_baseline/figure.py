"""Regret and cost, one column per policy, one curve per state of knowledge."""

from typing import Any

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.unknown_baseline.plan import KNOWN, POLICIES, THRESHOLD, build_name
from stagewise_reproduction.drawing import add_legend_below, draw_cost, draw_regret, make_panels


def draw(_: str, results: dict[str, Result]) -> Any:
    """Draw regrets above, costs below."""
    figure, grid = make_panels(2, len(POLICIES))
    for column, policy in enumerate(POLICIES):
        curves = {known: results[build_name(policy, known)] for known in KNOWN}
        draw_regret(grid[0, column], curves)
        draw_cost(grid[1, column], curves, THRESHOLD)
        grid[0, column].set_title(policy)
    add_legend_below(figure, grid[0, 0])
    return figure
