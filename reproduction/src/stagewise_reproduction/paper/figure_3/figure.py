"""Regret of OPB, one panel per number of arms."""

from typing import Any

from stagewise.reports.result import Result
from stagewise_reproduction.drawing import add_legend_below, draw_regret, make_panels
from stagewise_reproduction.paper.figure_3.plan import build_name, list_curves


def draw(preset: str, results: dict[str, Result]) -> Any:
    """Draw the paper's three panels, or the one of the public code."""
    curves = list_curves(preset)
    counts = sorted({count for count, _ in curves})
    figure, grid = make_panels(1, len(counts), width=3.3 if len(counts) > 1 else 6.0)
    word = "τ at least" if preset == "authors" else "τ ="
    for column, count in enumerate(counts):
        panel_curves = {f"{word} {t:g}": results[build_name(preset, k, t)] for k, t in curves if k == count}
        draw_regret(grid[0, column], panel_curves)
        grid[0, column].set_title(f"OPB, K = {count} arms")
    add_legend_below(figure, grid[0, 0])
    return figure
