"""The figures of an experiment for the page and the API, built from the statistics of its log."""

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from statistics import median
from typing import Any, NamedTuple

import msgspec
import numpy as np

from stagewise.agent.decision_analysis import Proposed, summarize_proposals
from stagewise.agent.outcome_queue import BUFFERED, DROPPED, MISSING
from stagewise.policies.problem import Problem
from stagewise.problem.errors import InvalidActions
from stagewise.problem.signals import Limit
from stagewise.server.confidence_intervals import RunningMean, compute_limit_interval, get_threshold
from stagewise.server.decide import Choice, PolicySnapshot, encode_context
from stagewise.server.log_statistics import Extremes, LogStatistics, is_safe_cost_unknown, iter_pessimistic_costs
from stagewise.server.messages import DecisionRequest

EMPTY = RunningMean()


class PendingCosts(NamedTuple):
    """Pending decisions of one limit with their reported costs, by several groupings.

    An unreported cost counts as zero so far. The mean of these costs, and the nearer end of its interval, never exceed
    those of all outcomes: the interval holds at all times for outcomes in the order of decisions, and each of them can
    only raise it (docs/theory/stops.md).
    """

    all: RunningMean
    """Since the limit last changed."""
    actions: Mapping[str, RunningMean]
    buckets: Mapping[int, RunningMean]


def build_figures(statistics: LogStatistics, now: int, **overrides: Any) -> dict[str, Any]:
    """Return the figures as a JSON object (docs/reference/http.md).

    Args:
        statistics: The statistics of the log.
        now: The time in microseconds by the store's clock. Windows close by the times of rows only.
        **overrides: What the log does not have, or the server knows better: mode, share, killed, version,
            snapshot_age_s, failed, alerts, warnings, health, proposals, drifting; each replaces the statistics' value.
    """
    with statistics.lock:
        problem = statistics.problem
        changes = sorted(statistics.changes, key=lambda change: -change["at"])
        pending = [] if problem is None else summarize_pending(statistics, problem, now)
        figures: dict[str, Any] = {
            "name": statistics.experiment,
            "now": now / 1e6,
            "version": statistics.version,
            "problem": None if problem is None else problem.to_dict(),
            "delta": 0.05 if problem is None else problem.delta,
            "lag_rows": max(statistics.head - statistics.seq, 0),
            "decisions": statistics.decisions,
            "offline_log_rows": statistics.offline_log_rows,
            "pending_count": max((one["pending_count"] for one in pending), default=0),
            "buffered_count": sum(one["buffered_count"] for one in pending),
            "lag_s": {name: median(lags) for name, lags in statistics.lags.items()},
            "pending": pending,
            "bucket_s": statistics.series.width / 1e6,
            "reasons": dict(statistics.reasons.most_common()),
            "controls": changes,
            "shadow": dict(statistics.shadow),
            "stops": [one for one in changes if one["what"] == "trip"],
            "last": list(reversed(statistics.last)),
            "reward": None,
            "proposals": [],
            "drifting": [],
            "limits": {},
            "actions": [],
            "series": [],
        }
        if problem is not None:
            costs = {name: compute_pending_cost(statistics, name, limit) for name, limit in problem.limits.items()}
            figures["reward"] = None if problem.needs_proposal else summarize_reward(statistics, problem)
            figures["limits"] = {name: summarize_limit(statistics, problem, name, costs[name].all) for name in costs}
            figures["actions"] = [summarize_action(statistics, problem, name, costs) for name in problem.action_names]
            figures["series"] = summarize_series(statistics, problem, costs)
    return {**figures, **overrides}


def compute_pending_cost(statistics: LogStatistics, name: str, limit: Limit) -> PendingCosts:
    queue, k = statistics.queue, statistics.queue.names.index(name)
    rows = slice(queue.heads[k] - queue.base, queue.end - queue.base)
    status, indices = queue.status[rows, k], np.arange(queue.heads[k], queue.end)
    counts = (status != DROPPED) & (queue.deferred[rows] == 0)
    values = np.where(status == BUFFERED, queue.values[rows, k], limit.high if limit.at_least else limit.low)[counts]
    is_current = indices[counts] >= statistics.limit_change_index.get(name, 0)
    actions = queue.rows[rows, 0][counts].astype(np.int64)
    moments = (queue.dates[rows][counts] - (statistics.series.origin or 0)) // statistics.series.width
    return PendingCosts(
        RunningMean(int(is_current.sum()), float(values[is_current].sum())),
        {statistics.names[action]: mean for action, mean in group_means(actions, values).items()},
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
        problem, costs = statistics.problem, dict[str, tuple[int, float]]()
        for name, limit in {} if problem is None else problem.limits.items():
            safe = "" if problem is None else problem.safe_name
            pending = compute_pending_cost(statistics, name, limit).actions.get(safe, EMPTY)
            mean = statistics.observed_mean.get((safe, name), EMPTY).merge(pending)
            if mean.mean is not None:
                cost = (mean.mean - limit.low) / (limit.high - limit.low)
                costs[name] = mean.count, 1.0 - cost if limit.at_least else cost
        return costs


def summarize_recent_proposals(snapshot: PolicySnapshot, statistics: LogStatistics) -> list[dict[str, Any]]:
    """Return what became of each action that recent requests proposed; in shadow mode, of the policy's choice."""
    with statistics.lock:
        records = list(statistics.recent)
    actions, proposed = snapshot.problem.action_names, list[Proposed]()
    for record in records:
        if "propose" not in record.request:
            continue
        with suppress(InvalidActions):  # an action was retired since
            context = encode_context(snapshot, msgspec.convert(record.request, DecisionRequest), record.time)
            if context.proposal is not None:
                played = (record.policy_choice or record).probabilities
                shares = np.array([played.get(name, 0.0) for name in actions])
                proposed.append(Proposed(snapshot.policy.rows_for(context), context.proposal.values, shares))
    summaries = summarize_proposals(snapshot.policy, snapshot.learned.state.memory, proposed, len(records))
    return [summary._asdict() for summary in summaries]


def summarize_reward(statistics: LogStatistics, problem: Problem) -> dict[str, Any]:
    """Return the recent reward of the policy and of the safe action, and their difference, with intervals."""
    signal, delta = problem.reward, problem.delta / 2.0
    now, safe = (statistics.recent_rewards[is_policy].interval(signal, delta) for is_policy in (True, False))
    gain = None
    if now.mean is not None and safe.mean is not None:
        gain = {"mean": now.mean - safe.mean, "low": now.low - safe.high, "high": now.high - safe.low}
    span = {"least": float(signal.low), "most": float(signal.high)}
    return {"name": signal.name, "now": now.to_dict(), "safe": safe.to_dict(), "gain": gain, **span}


def summarize_limit(statistics: LogStatistics, problem: Problem, name: str, pending: RunningMean) -> dict[str, Any]:
    """Return the figures of a limit: threshold, pessimistic cost of recent decisions, observed mean with interval.

    Reported costs of pending decisions count at once.
    """
    limit, rows = problem.limits[name], [row for row in statistics.recent if name in row.limits]
    closed = statistics.since_limit_change.get(name, EMPTY)
    interval = compute_limit_interval(closed, pending, limit, problem.delta)
    return {
        "threshold": rows[-1].limits[name].threshold if rows else get_threshold(limit),
        "at_most": not limit.at_least,
        "pessimistic_cost": get_worst_pessimistic_cost(statistics.recent, name, problem),
        "shadow": get_worst_pessimistic_cost(statistics.recent_shadow, name, problem),
        "safe_cost_unknown": any(is_safe_cost_unknown(row, name, problem) for row in rows),
        "observed_mean": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "count": interval.outcomes,
        "open": pending.count,
        "promise": problem.promises[name],
        "least": float(limit.low),
        "most": float(limit.high),
    }


def get_worst_pessimistic_cost(rows: Iterable[Choice], name: str, problem: Problem) -> float | None:
    """Return the worst pessimistic cost of rows; None if there is none."""
    costs = [cost for row in rows for limit, cost in iter_pessimistic_costs(row, problem) if limit == name]
    worst = min if problem.limits[name].at_least else max
    return worst(costs, default=None)


def summarize_action(
    statistics: LogStatistics, problem: Problem, name: str, pending: Mapping[str, PendingCosts]
) -> dict[str, Any]:
    """Return the figures of an action: how often it was served or chosen in shadow, and its observed means."""
    means = {signal: statistics.observed_mean.get((name, signal), EMPTY) for signal in problem.signals}
    intervals = {problem.reward.name: means[problem.reward.name].interval(problem.reward, problem.delta)}
    for signal, limit in problem.limits.items():
        costs = pending[signal].actions.get(name, EMPTY)
        intervals[signal] = compute_limit_interval(means[signal], costs, limit, problem.delta)
    return {
        "name": name,
        "safe": name == problem.safe_name,
        "decisions": statistics.actions[name],
        "share": statistics.actions[name] / max(statistics.decisions, 1),
        "recent": sum(row.action == name for row in statistics.recent) / max(len(statistics.recent), 1),
        "shadow": statistics.shadow[name] / max(statistics.shadow.total(), 1),
        "observed_mean": {signal: intervals[signal].to_dict() for signal in problem.reported},
    }


def summarize_pending(statistics: LogStatistics, problem: Problem, now: int) -> list[dict[str, Any]]:
    """Return for each signal its pending and late counts and the age of the oldest pending decision."""
    rows, queue = [], statistics.queue
    for k in queue.signals:
        name, head = queue.names[k], queue.heads[k]
        window, status = problem.windows.get(name), queue.status[head - queue.base : queue.end - queue.base, k]
        rows.append(
            {
                "signal": name,
                "pending_count": int((status == MISSING).sum()),
                "buffered_count": int((status == BUFFERED).sum()),
                "late": queue.late[k],
                "oldest_s": max(now - queue.date(head), 0) / 1e6 if head < queue.end else None,
                "window_s": None if window is None else window.seconds,
                "missing": None if window is None else window.missing,
            }
        )
    return rows


def summarize_series(
    statistics: LogStatistics, problem: Problem, pending: Mapping[str, PendingCosts]
) -> list[dict[str, Any]]:
    """Return the non-empty buckets in order, with the means of each limit in the bucket and up to it."""
    series, rows = statistics.series, []
    closed_so_far, pending_so_far = ({name: RunningMean() for name in problem.limits} for _ in range(2))
    for index, bucket in sorted(series.buckets.items()):
        if not bucket.count:
            continue
        limits = {}
        for name, limit in problem.limits.items():
            closed, costs = bucket.observed_mean.get(name, EMPTY), pending[name].buckets.get(index, EMPTY)
            closed_so_far[name] = closed_so_far[name].merge(closed)
            pending_so_far[name] = pending_so_far[name].merge(costs)
            so_far = compute_limit_interval(closed_so_far[name], pending_so_far[name], limit, problem.delta)
            interval = compute_limit_interval(closed, costs, limit, problem.delta)
            limits[name] = {
                "observed_mean": interval.mean,
                "count": interval.outcomes,
                "pessimistic_cost": get_worst(bucket.pessimistic_cost, name, limit),
                "shadow": get_worst(bucket.shadow_pessimistic_cost, name, limit),
                "so_far": so_far.mean,
                "low": so_far.low,
                "high": so_far.high,
            }
        rewards = bucket.observed_mean.get(problem.reward.name, EMPTY)
        rows.append(
            {
                "at": ((series.origin or 0) + index * series.width) / 1e6,
                "decisions": bucket.count,
                "actions": compute_shares(bucket.actions),
                "shadow": compute_shares(bucket.shadow),
                "exploring": bucket.exploring / bucket.count,
                "with_reason": bucket.with_reason / bucket.count,
                "reward": rewards.mean,
                "rewards": rewards.count,
                "limits": limits,
            }
        )
    return rows


def get_worst(values: Extremes, name: str, limit: Limit) -> float | None:
    """Return the extreme nearer to or beyond the limit; None if there is none."""
    extremes = values.get(name)
    return None if extremes is None else extremes[0] if limit.at_least else extremes[1]


def compute_shares(counts: Counter[str]) -> dict[str, float]:
    return {name: count / counts.total() for name, count in counts.items()}
