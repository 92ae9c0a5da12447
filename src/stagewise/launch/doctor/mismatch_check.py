"""The check that it does not matter who gets an action: the test of a running agent, on a log."""

from collections.abc import Iterator

import numpy as np

from stagewise.agent.mismatch import HalvedLimit, summarize_difference
from stagewise.engine.compile import Flags, Floats
from stagewise.launch.doctor.finding import Finding
from stagewise.launch.doctor.finding_messages import FindingCode, FindingVerdict
from stagewise.launch.doctor.log_profile import Cost, LogProfile, Signal
from stagewise.models.halves import count_rows
from stagewise.policies.problem_policy import ProblemPolicy


def check_mismatch(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    """Find limits for average users of which halves of the users differ, by a number, by click score or by risk."""
    problem, policy = profile.log.problem, profile.log.problem.policy()
    reward, scores = profile.signals[0], np.zeros((0, policy.context))
    if problem.context and reward.is_per_user:
        scores = fit_slopes(reward)
    for cost in profile.costs if problem.context else []:
        limit = HalvedLimit(policy, cost.index - 1)
        if limit.every_user:  # the log's decisions were not made under the limit
            continue
        rows = cost.fitted_rows & (profile.cell_actions != limit.untested)
        count_halves(limit, policy, cost, rows, scores)
        difference = limit.find_difference(alpha / len(profile.costs))
        if difference is not None:
            details = summarize_difference(policy, limit, difference)
            if details["segment"] is not None and cost.by is not None:
                details["segment"] = profile.segments[cost.by].names[details["segment"]]
            stops = problem.limits[cost.name].on_mismatch == "stop"
            verdict = FindingVerdict.CONTRADICTS if stops else FindingVerdict.NOTE
            yield Finding.of(FindingCode.HALVES_DIFFER, verdict, name=cost.name, by=cost.by, **details)
    yield Finding.of(FindingCode.HALVES_ALIKE)


def fit_slopes(reward: Signal) -> Floats:
    """Return the slopes (K, d) of the reward of each action, fitted on half of the rows."""
    profile = reward.profile
    slopes = np.zeros((len(profile.by_action), profile.design.shape[1] - 1))
    for action, (_, of_action) in enumerate(profile.by_action):
        indices = reward.get_fit_rows(of_action, profile.half)
        if indices.size:
            slopes[action] = reward.fit(indices)[1:]
    return slopes


def count_halves(limit: HalvedLimit, policy: ProblemPolicy, cost: Cost, chosen: Flags, slopes: Floats) -> None:
    """Count the chosen rows in the order of their times; those that fitted the slopes have no click score."""
    profile, indices = cost.profile, np.flatnonzero(chosen)
    if profile.log.at is not None:
        indices = indices[np.argsort(profile.time_ranks[indices], kind="stable")]
    rows = np.zeros((indices.size, policy.width))
    rows[:, 0], rows[:, 1 : policy.first_segment] = profile.cell_actions[indices], profile.design[indices]
    if limit.segment >= 0 and cost.by is not None:
        rows[:, limit.segment] = profile.segments[cost.by].codes[indices]
    values = 1.0 - cost.scaled[indices] if cost.at_least else cost.scaled[indices]
    none, has_score = slopes[:0], (~profile.half[indices]).astype(np.int64)
    cells = limit.find_cells(rows)  # may enlarge the table
    count_rows(limit.table, limit.risk, cells, values, rows, has_score, slopes, 1, none, 0, none)
