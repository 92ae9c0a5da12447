"""Reported costs of decisions whose windows are open; an unreported cost counts as zero so far.

The mean of these costs, and the nearer end of its interval, never exceed those of all outcomes: the interval holds at
all times for outcomes in the order of decisions, and each of them can only raise it (docs/theory/stops.md).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from stagewise.problem.signals import Limit
from stagewise.server.confidence_intervals import RunningMean
from stagewise.server.log_statistics import LogStatistics
from stagewise.server.pending_outcomes import BUFFERED, DROPPED

EMPTY = RunningMean()


class PendingCosts(NamedTuple):
    """Pending decisions of one limit with their reported costs, by several groupings."""

    all: RunningMean
    """Since the limit last changed."""
    actions: Mapping[str, RunningMean]
    buckets: Mapping[int, RunningMean]


def compute_pending_costs(statistics: LogStatistics) -> dict[str, PendingCosts]:
    """Return the pending costs of every limit."""
    limits = {} if statistics.problem is None else statistics.problem.limits
    return {name: compute_pending_cost(statistics, name, limit) for name, limit in limits.items()}


def compute_pending_cost(statistics: LogStatistics, name: str, limit: Limit) -> PendingCosts:
    """Return the pending costs of one limit."""
    pending, k = statistics.pending_outcomes, statistics.pending_outcomes.names.index(name)
    indices = np.arange(pending.heads[k], pending.end)
    rows = slice(pending.heads[k] - pending.base, pending.end - pending.base)
    status, reported, dates = pending.status[rows, k], pending.values[rows, k], pending.dates[rows]
    counts = (status != DROPPED) & (pending.deferred[rows] == 0)
    values = np.where(status == BUFFERED, reported, limit.high if limit.at_least else limit.low)[counts]
    actions, indices, dates = pending.rows[rows, 0][counts].astype(np.int64), indices[counts], dates[counts]
    is_current = indices >= statistics.limit_change_index.get(name, 0)
    by_action = group_means(actions, values)
    moments = (dates - (statistics.buckets.origin or 0)) // statistics.buckets.width
    return PendingCosts(
        RunningMean(int(is_current.sum()), float(values[is_current].sum())),
        {statistics.names[action]: mean for action, mean in by_action.items()},
        group_means(moments, values),
    )


def group_means(indices: Any, values: Any) -> dict[int, RunningMean]:
    """Return counts and sums of values by index.

    >>> means = group_means(np.array([2, 0, 2]), np.array([0.5, 1.0, 0.5]))
    >>> sorted(means), means[2].count, means[2].total
    ([0, 2], 2, 1.0)
    """
    if not len(indices):
        return {}
    counts, totals = np.bincount(indices), np.bincount(indices, weights=values)
    return {int(index): RunningMean(int(counts[index]), float(totals[index])) for index in np.flatnonzero(counts)}


def compute_safe_costs(statistics: LogStatistics) -> dict[str, tuple[int, float]]:
    """Return by limit the number of safe-action decisions and their mean reported cost in [0, 1]."""
    with statistics.lock:
        costs = dict[str, tuple[int, float]]()
        if statistics.problem is None:
            return costs
        safe = statistics.problem.safe
        for name, limit in statistics.problem.limits.items():
            mean = statistics.observed_mean.get((safe, name), EMPTY).merge(
                compute_pending_cost(statistics, name, limit).actions.get(safe, EMPTY)
            )
            if mean.mean is not None:
                cost = (mean.mean - limit.low) / (limit.high - limit.low)
                costs[name] = mean.count, 1.0 - cost if limit.at_least else cost
        return costs
