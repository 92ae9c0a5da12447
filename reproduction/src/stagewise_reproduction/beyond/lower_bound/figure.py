"""Measured regret against the gap, with the lower bound."""

from typing import Any

from stagewise.reports.result import Result
from stagewise.reports.style import STYLES, format_axes
from stagewise_reproduction.beyond.lower_bound.claims import compute_safe_regret, get_worse_regret
from stagewise_reproduction.beyond.lower_bound.plan import (
    GAPS,
    INFORMED,
    INSTANCES,
    POLICIES,
    build_name,
    compute_bound,
)
from stagewise_reproduction.claim import compute_final_regret
from stagewise_reproduction.drawing import add_legend_below, make_panels


def draw(_: str, results: dict[str, Result]) -> Any:
    """Draw both policies on both instances on logarithmic scales."""
    figure, grid = make_panels(1, 1, width=7.0, height=4.0)
    axes = grid[0, 0]
    for style, (policy, which) in enumerate([(p, i) for p in POLICIES for i in INSTANCES]):
        colour, dashes = STYLES[style]
        values = [compute_final_regret(results[build_name(policy, gap, which)]) for gap in GAPS]
        axes.loglog(GAPS, values, marker="o", color=colour, linestyle=dashes, label=f"{policy} on {which}")
    axes.loglog(GAPS, [compute_bound(gap) for gap in GAPS], color="black", marker="_", label="lower bound B")
    format_axes(axes, x="gap τ − c₀", y="regret after 8e/(τ − c₀)² rounds")
    informed = get_worse_regret(INFORMED, GAPS[-1], results)
    axes.loglog(
        GAPS[-1:], [informed], "*", color="black", markersize=9, label="knowing all but one cost, worse instance"
    )
    safe_regret = [compute_safe_regret(gap, results) for gap in GAPS]
    axes.loglog(GAPS, safe_regret, color="grey", linestyle=":", label="never leaving the safe arm")
    axes.set(xticks=GAPS, xticklabels=map(str, GAPS))
    axes.minorticks_off()
    add_legend_below(figure, axes, 2)
    return figure
