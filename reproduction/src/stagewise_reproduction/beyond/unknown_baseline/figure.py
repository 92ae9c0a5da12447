"""Regret and cost, one column a policy, one curve for each state of knowledge."""

from typing import Any

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.unknown_baseline.plan import KNOWN, POLICIES, THRESHOLD, name_of
from stagewise_reproduction.drawing import cost, legend_below, panels, regret


def draw(_: str, results: dict[str, Result]) -> Any:
    """Draw regrets above, costs below."""
    figure, grid = panels(2, len(POLICIES))
    for column, policy in enumerate(POLICIES):
        curves = {known: results[name_of(policy, known)] for known in KNOWN}
        regret(grid[0, column], curves)
        cost(grid[1, column], curves, THRESHOLD)
        grid[0, column].set_title(policy)
    legend_below(figure, grid[0, 0])
    return figure
