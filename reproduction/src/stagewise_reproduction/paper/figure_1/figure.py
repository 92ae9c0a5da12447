"""The paper's layouts: Figure 1 has a column per threshold, the appendix a row per threshold, with rewards."""

from typing import Any

from stagewise.reports.result import Result
from stagewise_reproduction.drawing import add_legend_below, draw_cost, draw_regret, draw_reward, draw_rows, make_panels
from stagewise_reproduction.paper.figure_1.plan import THRESHOLDS, build_name, list_policies


def select_threshold(results: dict[str, Result], preset: str, threshold: float) -> dict[str, Result]:
    """Return the curves of one threshold."""
    return {policy: results[build_name(preset, policy, threshold)] for policy in list_policies(preset)}


def draw_in_columns(preset: str, results: dict[str, Result]) -> Any:
    """Draw regret and cost, as in Figure 1, and rewards below, as in the appendix."""
    figure, grid = make_panels(3, len(THRESHOLDS))
    for column, threshold in enumerate(THRESHOLDS):
        curves = select_threshold(results, preset, threshold)
        draw_regret(grid[0, column], curves)
        draw_cost(grid[1, column], curves, threshold)
        draw_reward(grid[2, column], curves)
        grid[0, column].set_title(f"threshold τ = {threshold:g}")
    add_legend_below(figure, grid[0, 0])
    return figure


def draw_in_rows(preset: str, results: dict[str, Result]) -> Any:
    """Draw regret, cost and reward from left to right."""
    return draw_rows({threshold: select_threshold(results, preset, threshold) for threshold in THRESHOLDS})
