"""Regret of OPB, one panel a number of arms."""

from typing import Any

from stagewise.reports.result import Result
from stagewise_reproduction.drawing import legend_below, panels, regret
from stagewise_reproduction.paper.figure_3.plan import curves, name_of


def draw(preset: str, results: dict[str, Result]) -> Any:
    """Draw the paper's three panels, or the one of the public code."""
    shown = curves(preset)
    counts = sorted({count for count, _ in shown})
    figure, grid = panels(1, len(counts), width=3.3 if len(counts) > 1 else 6.0)
    word = "τ at least" if preset == "authors" else "τ ="
    for column, count in enumerate(counts):
        own = {f"{word} {t:g}": results[name_of(preset, k, t)] for k, t in shown if k == count}
        regret(grid[0, column], own)
        grid[0, column].set_title(f"OPB, K = {count} arms")
    legend_below(figure, grid[0, 0])
    return figure
