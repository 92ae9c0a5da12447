"""Regret in five and ten dimensions, and the paired difference between the policies."""

from typing import Any

from stagewise.reports.result import Result
from stagewise_reproduction.drawing import add_legend_below, draw_band, draw_regret, format_panel, make_panels
from stagewise_reproduction.paper.figure_2.plan import DIMENSIONS, POLICIES, build_name


def draw(preset: str, results: dict[str, Result]) -> Any:
    """Draw the paper's two panels, and the differences below."""
    figure, grid = make_panels(2, len(DIMENSIONS), width=4.4)
    for column, dimension in enumerate(DIMENSIONS):
        curves = {policy: results[build_name(preset, policy, dimension)] for policy in POLICIES}
        draw_regret(grid[0, column], curves)
        grid[0, column].set_title(f"unit sphere, d = {dimension}")
        first, second = curves.values()
        draw_band(grid[1, column], first.rounds, second.regret - first.regret, "Safe-LTS minus LC-LUCB", 2)
        format_panel(grid[1, column], "regret")
        grid[1, column].set_ylabel("difference of regrets, paired")
        grid[1, column].axhline(0.0, color="black", linewidth=0.8)
    add_legend_below(figure, grid[0, 0])
    return figure
