"""The paper's arrangements: Figure 1 has a column a threshold, the appendix a row a threshold, and rewards."""

from typing import Any

from stagewise.reports.result import Result
from stagewise_reproduction.drawing import cost, in_rows, legend_below, panels, regret, reward
from stagewise_reproduction.paper.figure_1.plan import THRESHOLDS, name_of, policies


def at(results: dict[str, Result], preset: str, threshold: float) -> dict[str, Result]:
    """Return the curves of one threshold."""
    return {policy: results[name_of(preset, policy, threshold)] for policy in policies(preset)}


def draw_in_columns(preset: str, results: dict[str, Result]) -> Any:
    """Draw regret and cost, as in Figure 1, and rewards below, as in the appendix."""
    figure, grid = panels(3, len(THRESHOLDS))
    for column, threshold in enumerate(THRESHOLDS):
        curves = at(results, preset, threshold)
        regret(grid[0, column], curves)
        cost(grid[1, column], curves, threshold)
        reward(grid[2, column], curves)
        grid[0, column].set_title(f"threshold τ = {threshold:g}")
    legend_below(figure, grid[0, 0])
    return figure


def draw_in_rows(preset: str, results: dict[str, Result]) -> Any:
    """Draw regret, cost and reward from left to right."""
    return in_rows({threshold: at(results, preset, threshold) for threshold in THRESHOLDS})
