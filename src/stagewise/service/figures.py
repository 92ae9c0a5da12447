"""The figures of an experiment, as the page and the interface show them: made of a tally of its log."""

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from stagewise.policies.problem import Problem
from stagewise.problem.declared import Limit
from stagewise.service.bands import Seen, own_value, so_far
from stagewise.service.counted import Choice, fears, unsettled
from stagewise.service.open_costs import Open, open_costs
from stagewise.service.tally import Tally


def figures_of(tally: Tally, now: int, **told: Any) -> dict[str, Any]:
    """Return the figures as JSON holds them (docs/how-to/serve.md).

    Args:
        tally: The count of the log.
        now: The time, in microseconds by the store's clock. Windows close by the times of rows alone.
        **told: What the log does not hold, or the desk knows better: mode, share, killed, version, snapshot_age_s,
            failed, doubts, health; each replaces what the tally says.
    """
    with tally.alone:
        problem, waits, changes = tally.problem, tally.waits, sorted(tally.changes, key=lambda one: -one["at"])
        delta = 0.05 if problem is None else problem.delta
        answer: dict[str, Any] = {
            "name": tally.experiment,
            "now": now / 1e6,
            "version": tally.version,
            "problem": None if problem is None else problem.plain(),
            "delta": delta,
            "behind": max(tally.head - tally.seq, 0),
            "decisions": tally.decisions,
            "log_rows": tally.log_rows,
            "waiting": max(waits.waiting, default=0),
            "held": sum(waits.held),
            "lag_s": {name: median(lags) for name, lags in tally.lags.items()},
            "pending": [],
            "bucket_s": tally.buckets.width / 1e6,
            "fallbacks": dict(tally.fallbacks.most_common()),
            "controls": changes,
            "would": dict(tally.would),
            "trips": [one for one in changes if one["what"] == "trip"],
            "last": list(reversed(tally.last)),
            "reward": None,
            "limits": {},
            "actions": [],
            "series": [],
        }
        if problem is not None:
            answer["pending"] = pending(tally, problem, now)
            answer["reward"] = rewards(tally, problem)
            waiting = open_costs(tally)
            answer["limits"] = {
                name: limit_now(tally, name, limit, waiting[name].all) for name, limit in problem.limits.items()
            }
            answer["actions"] = [action_now(tally, problem, name, waiting) for name in problem.actions]
            answer["series"] = tally.buckets.plain(
                problem.reward.name, problem.limits, delta, {name: told.buckets for name, told in waiting.items()}
            )
    return {**answer, **told}


def rewards(tally: Tally, problem: Problem) -> dict[str, Any]:
    """Return what the policy earns lately, what the safe action does, and between which ends the difference lies."""
    signal = problem.reward
    now, safe = (tally.lately[ours].band(signal, problem.delta / 2.0) for ours in (True, False))
    gain = None
    if now.mean is not None and safe.mean is not None:
        gain = {"mean": now.mean - safe.mean, "low": now.low - safe.high, "high": now.high - safe.low}
    span = {"least": float(signal.low), "most": float(signal.high)}
    return {"name": signal.name, "now": now.plain(), "safe": safe.plain(), "gain": gain, **span}


def limit_now(tally: Tally, name: str, limit: Limit, waiting: Seen) -> dict[str, Any]:
    """Return a limit: what it may be, what recent decisions are feared to cost, what was seen and its band.

    What was told of decisions that are still waited for counts at once.
    """
    feared = [row for row in tally.recent if name in row.limits]
    delta = 0.05 if tally.problem is None else tally.problem.delta
    band = so_far(tally.of_signal(name), waiting, limit, delta)
    return {
        "threshold": feared[-1].limits[name]["threshold"] if feared else own_value(limit),
        "at_most": not limit.at_least,
        "dearest": dearest_of(tally.recent, name, tally.problem),
        "would": dearest_of(tally.recent_would, name, tally.problem),
        "unsettled": any(unsettled(row, name, tally.problem) for row in feared),
        "seen": band.mean,
        "low": band.low,
        "high": band.high,
        "count": band.outcomes,
        "open": waiting.count,
        "by": limit.by,
        "least": float(limit.low),
        "most": float(limit.high),
    }


def dearest_of(rows: Iterable[Choice], name: str, problem: Problem | None) -> float | None:
    """Return the worst that rows are feared to cost; None: nothing is known of it."""
    told = [dearest for row in rows for limit, dearest in fears(row, problem) if limit == name]
    if problem is None or not told:
        return None
    return min(told) if problem.limits[name].at_least else max(told)


def action_now(tally: Tally, problem: Problem, name: str, waiting: Mapping[str, Open]) -> dict[str, Any]:
    """Return an action: how often it was served, lately, or would have been in shadow; and what was seen of it."""
    recent = sum(row.action == name for row in tally.recent)
    seen = {signal: tally.seen.get((name, signal), Seen()) for signal in problem.signals}
    bands = {problem.reward.name: seen[problem.reward.name].band(problem.reward, problem.delta)}
    for signal, limit in problem.limits.items():
        bands[signal] = so_far(seen[signal], waiting[signal].actions.get(name, Seen()), limit, problem.delta)
    return {
        "name": name,
        "safe": name == problem.safe,
        "decisions": tally.actions.get(name, 0),
        "share": tally.actions.get(name, 0) / max(tally.decisions, 1),
        "recent": recent / max(len(tally.recent), 1),
        "would": tally.would[name] / max(tally.would.total(), 1),
        "seen": {signal: bands[signal].plain() for signal in problem.signals},
    }


def pending(tally: Tally, problem: Problem, now: int) -> list[dict[str, Any]]:
    """Return for each signal how many decisions wait for it, since when, and what came too late."""
    waits, windows = tally.waits, [problem.windows.get(name) for name in tally.waits.names]
    rows = zip(waits.names, waits.waiting, waits.held, waits.late, waits.oldest, windows, strict=True)
    return [
        {
            "signal": name,
            "waiting": waiting,
            "held": held,
            "late": late,
            "oldest_s": None if oldest is None else max(now - oldest, 0) / 1e6,
            "window_s": None if window is None else window.seconds,
            "missing": None if window is None else window.missing,
        }
        for name, waiting, held, late, oldest, window in rows
    ]
