"""Regret, cost and reward of OPB from left to right, one row a threshold."""

from typing import Any

from stagewise.experiments.drawing import cost, legend_below, panels, regret, reward
from stagewise.experiments.four_arms.plan import name_of
from stagewise.reports.result import Result


def draw(results: dict[str, Result], preset: str, thresholds: tuple[float, ...]) -> Any:
    """Draw the paper's two rows."""
    figure, grid = panels(len(thresholds), 3)
    for row, threshold in enumerate(thresholds):
        curves = {"OPB": results[name_of(preset, threshold)]}
        regret(grid[row, 0], curves)
        cost(grid[row, 1], curves, threshold)
        reward(grid[row, 2], curves)
        grid[row, 0].set_title(f"threshold τ = {threshold:g}", loc="left")
    legend_below(figure, grid[0, 0])
    return figure
