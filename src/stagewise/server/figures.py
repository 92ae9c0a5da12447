"""The figures of an experiment for the page and the API, built from the statistics of its log."""

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from stagewise.policies.problem import Problem
from stagewise.problem.signals import Limit
from stagewise.server.confidence_intervals import RunningMean, compute_limit_interval, get_threshold
from stagewise.server.decide import DecisionRecord, PolicyChoice
from stagewise.server.decision_rows import is_safe_cost_unknown, iter_pessimistic_costs
from stagewise.server.log_statistics import LogStatistics
from stagewise.server.pending_costs import PendingCosts, compute_pending_costs


def build_figures(statistics: LogStatistics, now: int, **overrides: Any) -> dict[str, Any]:
    """Return the figures as a JSON object (docs/reference/http.md).

    Args:
        statistics: The statistics of the log.
        now: The time in microseconds by the store's clock. Windows close by the times of rows only.
        **overrides: What the log does not have, or the server knows better: mode, share, killed, version,
            snapshot_age_s, failed, alerts, health; each replaces the value from the statistics.
    """
    with statistics.lock:
        problem, pending = statistics.problem, statistics.pending_outcomes
        changes = sorted(statistics.changes, key=lambda change: -change["at"])
        delta = 0.05 if problem is None else problem.delta
        figures: dict[str, Any] = {
            "name": statistics.experiment,
            "now": now / 1e6,
            "version": statistics.version,
            "problem": None if problem is None else problem.to_dict(),
            "delta": delta,
            "lag_rows": max(statistics.head - statistics.seq, 0),
            "decisions": statistics.decisions,
            "offline_log_rows": statistics.offline_log_rows,
            "pending_count": max(pending.pending_count, default=0),
            "buffered_count": sum(pending.buffered_count),
            "lag_s": {name: median(lags) for name, lags in statistics.lags.items()},
            "pending": [],
            "bucket_s": statistics.buckets.width / 1e6,
            "reasons": dict(statistics.reasons.most_common()),
            "controls": changes,
            "shadow": dict(statistics.shadow),
            "stops": [one for one in changes if one["what"] == "trip"],
            "last": list(reversed(statistics.last)),
            "reward": None,
            "limits": {},
            "actions": [],
            "series": [],
        }
        if problem is not None:
            figures["pending"] = summarize_pending(statistics, problem, now)
            figures["reward"] = summarize_reward(statistics, problem)
            pending_costs = compute_pending_costs(statistics)
            figures["limits"] = {
                name: summarize_limit(statistics, name, limit, pending_costs[name].all)
                for name, limit in problem.limits.items()
            }
            figures["actions"] = [
                summarize_action(statistics, problem, name, pending_costs) for name in problem.actions
            ]
            figures["series"] = statistics.buckets.to_dict(
                problem.reward.name,
                problem.limits,
                delta,
                {name: costs.buckets for name, costs in pending_costs.items()},
            )
    return {**figures, **overrides}


def summarize_reward(statistics: LogStatistics, problem: Problem) -> dict[str, Any]:
    """Return the recent reward of the policy and of the safe action, and their difference, with intervals."""
    signal = problem.reward
    now, safe = (
        statistics.recent_rewards[is_policy].interval(signal, problem.delta / 2.0) for is_policy in (True, False)
    )
    gain = None
    if now.mean is not None and safe.mean is not None:
        gain = {"mean": now.mean - safe.mean, "low": now.low - safe.high, "high": now.high - safe.low}
    span = {"least": float(signal.low), "most": float(signal.high)}
    return {"name": signal.name, "now": now.to_dict(), "safe": safe.to_dict(), "gain": gain, **span}


def summarize_limit(statistics: LogStatistics, name: str, limit: Limit, pending: RunningMean) -> dict[str, Any]:
    """Return the figures of a limit: threshold, pessimistic cost of recent decisions, observed mean with interval.

    Reported costs of pending decisions count at once.
    """
    rows = [row for row in statistics.recent if name in row.limits]
    delta = 0.05 if statistics.problem is None else statistics.problem.delta
    interval = compute_limit_interval(statistics.get_signal_mean(name), pending, limit, delta)
    return {
        "threshold": rows[-1].limits[name].threshold if rows else get_threshold(limit),
        "at_most": not limit.at_least,
        "pessimistic_cost": get_worst_pessimistic_cost(statistics.recent, name, statistics.problem),
        "shadow": get_worst_pessimistic_cost(statistics.recent_shadow, name, statistics.problem),
        "safe_cost_unknown": any(is_safe_cost_unknown(row, name, statistics.problem) for row in rows),
        "observed_mean": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "count": interval.outcomes,
        "open": pending.count,
        "by": limit.by,
        "least": float(limit.low),
        "most": float(limit.high),
    }


def get_worst_pessimistic_cost(
    rows: Iterable[DecisionRecord | PolicyChoice], name: str, problem: Problem | None
) -> float | None:
    """Return the worst pessimistic cost of rows; None if there is none."""
    costs = [
        pessimistic_cost
        for row in rows
        for limit, pessimistic_cost in iter_pessimistic_costs(row, problem)
        if limit == name
    ]
    if problem is None or not costs:
        return None
    return min(costs) if problem.limits[name].at_least else max(costs)


def summarize_action(
    statistics: LogStatistics, problem: Problem, name: str, pending: Mapping[str, PendingCosts]
) -> dict[str, Any]:
    """Return the figures of an action: how often it was served or chosen in shadow, and its observed means."""
    recent = sum(row.action == name for row in statistics.recent)
    means = {signal: statistics.observed_mean.get((name, signal), RunningMean()) for signal in problem.signals}
    intervals = {problem.reward.name: means[problem.reward.name].interval(problem.reward, problem.delta)}
    for signal, limit in problem.limits.items():
        intervals[signal] = compute_limit_interval(
            means[signal], pending[signal].actions.get(name, RunningMean()), limit, problem.delta
        )
    return {
        "name": name,
        "safe": name == problem.safe,
        "decisions": statistics.actions.get(name, 0),
        "share": statistics.actions.get(name, 0) / max(statistics.decisions, 1),
        "recent": recent / max(len(statistics.recent), 1),
        "shadow": statistics.shadow[name] / max(statistics.shadow.total(), 1),
        "observed_mean": {signal: intervals[signal].to_dict() for signal in problem.signals},
    }


def summarize_pending(statistics: LogStatistics, problem: Problem, now: int) -> list[dict[str, Any]]:
    """Return for each signal its pending and late counts and the age of the oldest pending decision."""
    pending = statistics.pending_outcomes
    windows = [problem.windows.get(name) for name in pending.names]
    rows = zip(
        pending.names, pending.pending_count, pending.buffered_count, pending.late, pending.oldest, windows, strict=True
    )
    return [
        {
            "signal": name,
            "pending_count": pending_count,
            "buffered_count": buffered,
            "late": late,
            "oldest_s": None if oldest is None else max(now - oldest, 0) / 1e6,
            "window_s": None if window is None else window.seconds,
            "missing": None if window is None else window.missing,
        }
        for name, pending_count, buffered, late, oldest, window in rows
    ]
