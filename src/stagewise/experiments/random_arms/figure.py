"""Regret of OPB, one panel a number of arms."""

from typing import Any

from stagewise.experiments.drawing import legend_below, panels, regret
from stagewise.experiments.random_arms.plan import ARMS, THRESHOLDS, name_of
from stagewise.reports.result import Result


def draw(results: dict[str, Result], preset: str) -> Any:
    """Draw the paper's three panels."""
    figure, grid = panels(1, len(ARMS))
    for column, count in enumerate(ARMS):
        regret(grid[0, column], {f"τ = {t:g}": results[name_of(preset, count, t)] for t in THRESHOLDS})
        grid[0, column].set_title(f"OPB, K = {count} arms")
    legend_below(figure, grid[0, 0])
    return figure
