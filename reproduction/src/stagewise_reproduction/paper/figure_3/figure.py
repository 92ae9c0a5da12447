"""Regret of OPB, one panel a number of arms."""

from typing import Any

from stagewise.reports.result import Result
from stagewise_reproduction.drawing import legend_below, panels, regret
from stagewise_reproduction.paper.figure_3.plan import ARMS, THRESHOLDS, name_of


def draw(preset: str, results: dict[str, Result]) -> Any:
    """Draw the paper's three panels."""
    figure, grid = panels(1, len(ARMS))
    for column, count in enumerate(ARMS):
        regret(grid[0, column], {f"τ = {t:g}": results[name_of(preset, count, t)] for t in THRESHOLDS})
        grid[0, column].set_title(f"OPB, K = {count} arms")
    legend_below(figure, grid[0, 0])
    return figure
