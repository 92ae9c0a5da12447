"""Regret for one, two and three constraints, one panel a policy; below, LC-LUCB's and OPB's costs at three."""

from typing import Any

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.multi_constraint.plan import ARM_THRESHOLDS, COUNTS, POLICIES, THRESHOLDS, name_of
from stagewise_reproduction.drawing import band, finish, legend_below, panels, regret


def draw(_: str, results: dict[str, Result]) -> Any:
    """Draw regrets above and, as shares of their thresholds, the three costs below."""
    figure, grid = panels(2, len(POLICIES), width=2.8)
    for column, policy in enumerate(POLICIES):
        regret(grid[0, column], {f"m = {count}": results[name_of(policy, count)] for count in COUNTS})
        grid[0, column].set_title(policy)
        most = results[name_of(policy, COUNTS[-1])]
        limits = ARM_THRESHOLDS if policy == "OPB" else THRESHOLDS
        for j, limit in enumerate(limits):
            band(grid[1, column], most.rounds, most.cost[:, :, j] / limit, f"cost {j + 1}", j)
        grid[1, column].axhline(1.0, color="black", linestyle="--", linewidth=1)
        finish(grid[1, column], "cost / threshold, m = 3")
        grid[1, column].set_ylim(min(0.0, grid[1, column].get_ylim()[0]), 1.2)
        grid[1, column].legend(frameon=False, fontsize=8)
    legend_below(figure, grid[0, 0])
    return figure
