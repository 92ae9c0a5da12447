"""Regret in five and in ten dimensions, and the paired difference, which the spread over instances hides otherwise."""

from typing import Any

from stagewise.reports.result import Result
from stagewise_reproduction.drawing import band, finish, legend_below, panels, regret
from stagewise_reproduction.paper.figure_2.plan import DIMENSIONS, POLICIES, name_of


def draw(preset: str, results: dict[str, Result]) -> Any:
    """Draw the paper's two panels, and the differences below."""
    figure, grid = panels(2, len(DIMENSIONS), width=4.4)
    for column, dimension in enumerate(DIMENSIONS):
        curves = {policy: results[name_of(preset, policy, dimension)] for policy in POLICIES}
        regret(grid[0, column], curves)
        grid[0, column].set_title(f"unit sphere, d = {dimension}")
        first, second = curves.values()
        band(grid[1, column], first.rounds, second.regret - first.regret, "Safe-LTS minus LC-LUCB", 2)
        finish(grid[1, column], "regret")
        grid[1, column].set_ylabel("difference of regrets, paired")
        grid[1, column].axhline(0.0, color="black", linewidth=0.8)
    legend_below(figure, grid[0, 0])
    return figure
