"""Measured regret against the gap, above the bound that no algorithm can beat on both instances."""

from typing import Any

from stagewise.reports.result import Result
from stagewise.reports.style import STYLES, plain_axes
from stagewise_reproduction.beyond.lower_bound.claims import staying, worse_of
from stagewise_reproduction.beyond.lower_bound.plan import GAPS, INFORMED, INSTANCES, POLICIES, bound, name_of
from stagewise_reproduction.claim import final
from stagewise_reproduction.drawing import legend_below, panels


def draw(_: str, results: dict[str, Result]) -> Any:
    """Draw both policies on both instances on logarithmic scales."""
    figure, grid = panels(1, 1, width=7.0, height=4.0)
    axes = grid[0, 0]
    for style, (policy, which) in enumerate([(p, i) for p in POLICIES for i in INSTANCES]):
        colour, dashes = STYLES[style]
        values = [final(results[name_of(policy, gap, which)]) for gap in GAPS]
        axes.loglog(GAPS, values, marker="o", color=colour, linestyle=dashes, label=f"{policy} on {which}")
    axes.loglog(GAPS, [bound(gap) for gap in GAPS], color="black", marker="_", label="lower bound B")
    plain_axes(axes, x="gap τ − c₀", y="regret after 8e/(τ − c₀)² rounds")
    known = worse_of(INFORMED, GAPS[-1], results)
    axes.loglog(GAPS[-1:], [known], "*", color="black", markersize=9, label="knowing all but one cost, worse instance")
    stay = [staying(gap, results) for gap in GAPS]
    axes.loglog(GAPS, stay, color="grey", linestyle=":", label="never leaving the safe arm")
    axes.set(xticks=GAPS, xticklabels=map(str, GAPS))
    axes.minorticks_off()
    legend_below(figure, axes, 2)
    return figure
