"""Regret at the horizon against the horizon, on logarithmic scales, beside lines of slope 2/3 and 1/2."""

from typing import Any

import numpy as np

from stagewise.reports.result import Result
from stagewise.reports.style import STYLES, format_axes
from stagewise_reproduction.beyond.safe_lucb.claims import group_by_horizon
from stagewise_reproduction.beyond.safe_lucb.plan import POLICIES
from stagewise_reproduction.claim import compute_final_regret
from stagewise_reproduction.drawing import add_legend_below, make_panels


def draw(_: str, results: dict[str, Result]) -> Any:
    """Draw every run as a point and the means as lines."""
    figure, grid = make_panels(1, 1, width=7.0, height=4.2)
    axes = grid[0, 0]
    for style, policy in enumerate(POLICIES):
        colour, dashes = STYLES[style]
        curves = group_by_horizon(results, policy)
        axes.loglog(
            list(curves),
            [compute_final_regret(one) for one in curves.values()],
            color=colour,
            linestyle=dashes,
            label=policy,
        )
        for horizon, one in curves.items():
            axes.plot(np.full(len(one.runs), horizon), one.regret[:, -1], "o", color=colour, markersize=4)
    horizons = np.array(list(group_by_horizon(results, POLICIES[0])), dtype=float)
    first = compute_final_regret(group_by_horizon(results, POLICIES[0])[int(horizons[0])])
    for slope, words, side in ((2.0 / 3.0, "slope 2/3", "bottom"), (0.5, "slope 1/2", "top")):
        end = first * (horizons[-1] / horizons[0]) ** slope
        axes.plot(horizons, first * (horizons / horizons[0]) ** slope, ":", color="grey", linewidth=1.0)
        axes.annotate(words, (horizons[-1], end), xytext=(6, 0), textcoords="offset points", fontsize=8, va=side)
    format_axes(axes, x="horizon T", y="regret after T rounds")
    axes.set(xticks=horizons, xticklabels=[f"{int(one):,}" for one in horizons])
    low, high = axes.get_ylim()
    marks = [mark for mark in (10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000) if low <= mark <= high]
    axes.set(yticks=marks, yticklabels=[f"{mark:,}" for mark in marks])
    axes.minorticks_off()
    add_legend_below(figure, axes, 3)
    return figure
