"""The check of what limits promise: the tests of a running agent, on a log."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from stagewise.agent.calibration import CalibratedLimit, ClickScores, summarize_excess
from stagewise.agent.mismatch import HalvedLimit, summarize_difference
from stagewise.agent.pooling import find_fall, list_pooled_limits
from stagewise.engine.compile import Flags, Floats, Ints
from stagewise.launch.doctor.finding import Finding
from stagewise.launch.doctor.finding_messages import FindingCode, FindingVerdict
from stagewise.launch.doctor.log_profile import Cost, LogProfile, Signal
from stagewise.models.halves import count_rows
from stagewise.policies.problem_policy import ProblemPolicy
from stagewise.problem.division import ScoreDivision
from stagewise.problem.promise import Promise

MOST_ENDS = 20_000  # rows of a logistic cost whose ends are computed


def check_mismatch(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    """Find limits for average users of which halves of the users differ, and limits for every user that some exceed."""
    problem, policy = profile.log.problem, profile.log.problem.policy()
    reward, slopes = profile.signals[0], np.zeros((0, policy.context))
    if problem.context and reward.is_per_user:
        slopes = fit_slopes(reward)
    for cost in profile.costs if problem.context else []:
        every_user = policy.promises[cost.name] is Promise.EVERY_USER
        found = (find_excess if every_user else find_halves)(policy, cost, slopes, alpha / len(profile.costs))
        if found is not None:
            code = FindingCode.BOUNDS_EXCEEDED if every_user else FindingCode.HALVES_DIFFER
            stops = problem.limits[cost.name].on_mismatch == "stop"
            verdict = FindingVerdict.CONTRADICTS if stops else FindingVerdict.NOTE
            yield Finding.of(code, verdict, name=cost.name, by=cost.by, **found)
        fall = find_pooled_fall(policy, cost)
        if fall is not None:
            yield Finding.of(FindingCode.MEANS_FALL, name=cost.name, by=cost.by, **fall)
    yield Finding.of(FindingCode.HALVES_ALIKE)


def find_halves(policy: ProblemPolicy, cost: Cost, slopes: Floats, level: float) -> dict[str, Any] | None:
    """Return the halves of a cell that differ; None: none do beyond chance."""
    limit = HalvedLimit(policy, cost.index - 1)
    count_halves(limit, policy, cost, cost.fitted_rows & (cost.profile.cell_actions != limit.untested), slopes)
    difference = limit.find_difference(level)
    if difference is None:
        return None
    details = summarize_difference(policy, limit, difference)
    if details["segment"] is not None and cost.by is not None:
        details["segment"] = cost.profile.segments[cost.by].names[details["segment"]]
    return details


def find_excess(policy: ProblemPolicy, cost: Cost, slopes: Floats, level: float) -> dict[str, Any] | None:
    """Return users whose outcomes exceed the bounds that earlier rows gave; None: none do beyond chance."""
    limit = CalibratedLimit(policy, cost.index - 1)
    indices = sort_by_time(cost, cost.fitted_rows)
    rows, costs = build_rows(policy, cost, indices)
    values = np.full((len(rows), len(policy.problem.signals)), np.nan)
    values[:, cost.index] = costs + limit.low
    ends = compute_ends(policy, policy.models[cost.name], rows, values)[:, cost.index]
    has_score, none = (~cost.profile.half[indices]).astype(np.int64), slopes[:0]
    limit.learn_rows(rows, values[:, cost.index], ends, has_score, ClickScores(none, slopes, 1, none))
    excess = limit.find_difference(level)
    details = None if excess is None else summarize_excess(policy, limit, excess)
    return None if details is None else {**details, "form": policy.models[cost.name]}


def find_pooled_fall(policy: ProblemPolicy, cost: Cost) -> dict[str, Any] | None:
    """Return the buckets between which means fall, as an agent that learns the log finds them; None: none do.

    Means that drift are left out: where they fall depends on the time.
    """
    log, name = cost.profile.log, cost.name
    if cost.name not in list_pooled_limits(policy) or policy.needs_times:
        return None
    indices = sort_by_time(cost, cost.fitted_rows & log.complete_contexts)
    division, (rows, costs) = log.problem.get_division(name), build_rows(policy, cost, indices)
    if not isinstance(division, ScoreDivision):
        return None
    place = policy.first_segment + log.problem.divisions.index(division)
    rows[:, place] = division.encode_columns(log.readings)[indices]
    values = np.full((len(rows), len(policy.problem.signals)), np.nan)
    values[:, cost.index] = costs - float(cost.at_least)
    cause = find_fall(policy, policy.learn_rows(policy.start(), rows, values).memory, name)
    details = None if cause is None else dict(cause.details)
    return details and {one: value for one, value in details.items() if one not in ("found", "limit")}


def compute_ends(policy: ProblemPolicy, model: str, rows: Floats, values: Floats) -> Floats:
    """Return the upper ends (n, 1 + m) that each row had before it was learned; 1 for rows that are passed over.

    Ends of a logistic cost take long, so those of every n-th row are computed.
    """
    ends, state = np.ones(values.shape), policy.start()
    step = -(-len(rows) // MOST_ENDS) if model == "logistic" else len(rows)
    for start in range(0, len(rows), max(step, 1)):
        stop = start + step
        tested = stop if model != "logistic" else start + 1
        state = policy.learn_rows(state, rows[start:tested], values[start:tested], ends[start:tested])
        if stop > tested:
            state = policy.learn_rows(state, rows[tested:stop], values[tested:stop])
    return ends


def fit_slopes(reward: Signal) -> Floats:
    """Return the slopes (K, d) of the reward of each action, fitted on half of the rows."""
    profile = reward.profile
    slopes = np.zeros((len(profile.by_action), profile.design.shape[1] - 1))
    for action, (_, of_action) in enumerate(profile.by_action):
        indices = reward.get_fit_rows(of_action, profile.half)
        if indices.size:
            slopes[action] = reward.fit(indices)[1:]
    return slopes


def sort_by_time(cost: Cost, chosen: Flags) -> Ints:
    """Return the indices of the chosen rows in the order of their times."""
    profile, indices = cost.profile, np.flatnonzero(chosen)
    if profile.log.at is not None:
        indices = indices[np.argsort(profile.time_ranks[indices], kind="stable")]
    return indices


def build_rows(policy: ProblemPolicy, cost: Cost, indices: Ints) -> tuple[Floats, Floats]:
    """Return rows (n, D) of the log as the policy reads them, and their costs in [0, 1]."""
    profile, rows = cost.profile, np.zeros((indices.size, policy.width))
    rows[:, 0], rows[:, 1 : policy.first_segment] = profile.cell_actions[indices], profile.design[indices]
    return rows, 1.0 - cost.scaled[indices] if cost.at_least else cost.scaled[indices]


def count_halves(limit: HalvedLimit, policy: ProblemPolicy, cost: Cost, chosen: Flags, slopes: Floats) -> None:
    """Count the chosen rows in the order of their times; those that fitted the slopes have no click score."""
    profile, indices = cost.profile, sort_by_time(cost, chosen)
    rows, values = build_rows(policy, cost, indices)
    if limit.segment >= 0 and cost.by is not None:
        rows[:, limit.segment] = profile.segments[cost.by].codes[indices]
    none, has_score = slopes[:0], (~profile.half[indices]).astype(np.int64)
    cells = limit.find_cells(rows)  # may enlarge the table
    count_rows(limit.table, limit.risk, cells, values, rows, has_score, slopes, 1, none, 0, none)
