"""Regret for one, two and three constraints, one panel per policy; below, the costs with three constraints."""

from typing import Any

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.multi_constraint.plan import ARM_THRESHOLDS, COUNTS, POLICIES, THRESHOLDS, build_name
from stagewise_reproduction.drawing import add_legend_below, draw_band, draw_regret, format_panel, make_panels


def draw(_: str, results: dict[str, Result]) -> Any:
    """Draw regrets above and, as shares of their thresholds, the three costs below."""
    figure, grid = make_panels(2, len(POLICIES), width=2.8)
    for column, policy in enumerate(POLICIES):
        draw_regret(grid[0, column], {f"m = {count}": results[build_name(policy, count)] for count in COUNTS})
        grid[0, column].set_title(policy)
        most = results[build_name(policy, COUNTS[-1])]
        limits = ARM_THRESHOLDS if policy == "OPB" else THRESHOLDS
        for j, limit in enumerate(limits):
            draw_band(grid[1, column], most.rounds, most.cost[:, :, j] / limit, f"cost {j + 1}", j)
        grid[1, column].axhline(1.0, color="black", linestyle="--", linewidth=1)
        format_panel(grid[1, column], "cost / threshold, m = 3")
        grid[1, column].set_ylim(min(0.0, grid[1, column].get_ylim()[0]), 1.2)
        grid[1, column].legend(frameon=False, fontsize=8)
    add_legend_below(figure, grid[0, 0])
    return figure
