"""Checks of rates (enough rows, the safe action, limits that can bind, segments, drift) and of what limits promise.

A check yields what it finds, and at last that nothing is wrong; the most severe finding is reported.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from stagewise.agent.calibration import CalibratedLimit, ClickScores, summarize_excess
from stagewise.agent.mismatch import HalvedLimit, find_fall, list_pooled_limits, summarize_difference
from stagewise.engine.compile import Flags, Floats, Ints
from stagewise.launch.decision_log import TIME_COLUMNS, to_texts
from stagewise.launch.doctor.drift_proposal import compute_least_bounds, propose_drift
from stagewise.launch.doctor.findings import Finding, FindingCode, FindingVerdict
from stagewise.launch.doctor.log_profile import MISSING_GROUP, Cost, Groups, LogProfile, Rate, Signal, assign_deciles
from stagewise.launch.statistics import ExtremeGroup, compute_rows_needed, find_extreme_group, measure_shift
from stagewise.models.promise_tests import count_rows
from stagewise.policies.problem_policy import ProblemPolicy
from stagewise.problem.division import ScoreDivision
from stagewise.problem.signals import Promise

MAX_SAFE_SEGMENTS = 200  # the first segments in which the safe action is tested
LOOSE_FACTOR = 5.0  # a limit so many times as far away as every action's mean is loose
MAX_CELLS = 500
MAX_GROUPS = 1_000  # a column with more groups identifies users
MAX_TESTED_SEGMENTS = 100
SELECTION_LEVEL = 0.05  # probability that a proposal relies on an effect that does not exist
MIN_RELATIVE_CHANGE = 0.1  # relative change between the halves; a smaller one is a note


def check_sample_size(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    """Find actions with too few rows to certify a limit, even with no events; by segment if the limit is."""
    problem = profile.log.problem
    for cost in profile.costs:
        p_value = problem.delta / (2 * len(problem.limits) * len(problem.action_names))
        needed = compute_rows_needed(cost.room / (cost.ends[1] - cost.ends[0]), p_value)
        few = sorted(cell for cell in count_outcomes(cost) if cell[0] < needed)
        if few:
            (count, action, segment), others = few[0], len(few) - 1
            segment = segment if cost.by is not None else None
            details = {"name": cost.name, "action": action, "column": cost.by, "segment": segment}
            yield Finding.of(FindingCode.TOO_FEW_ROWS, **details, count=count, needed=needed, other_cells=others)
    yield Finding.of(FindingCode.ENOUGH_ROWS, rows=profile.log.rows)


def count_outcomes(cost: Cost) -> Iterator[tuple[int, str, str | None]]:
    """Yield the number of outcomes of each action, by segment if the limit is by segment, or "" without segments."""
    one_group = Groups(np.zeros(cost.cells.size, np.int64), [""])
    groups = one_group if cost.by is None else cost.profile.segments[cost.by]
    for action, rows in cost.profile.by_action:
        counts = np.bincount(groups.codes[cost.observed & rows], minlength=len(groups.names)).tolist()
        yield from ((n, action, name) for n, name in zip(counts, groups.names, strict=True) if name != MISSING_GROUP)


class SafeRate(NamedTuple):
    """The rate of the safe action in one segment, or for all users."""

    segment: str | None
    rate: Rate


def estimate_safe_rates(signal: Signal, alpha: float) -> list[SafeRate]:
    """Return the safe action's rates by segment; all intervals hold with probability 1 − alpha."""
    is_safe = signal.profile.is_safe
    if signal.by is None:
        rates = [SafeRate(None, signal.rate(is_safe, alpha))]
    else:
        codes, names = signal.profile.segments[signal.by]
        level = alpha / min(len(names), MAX_SAFE_SEGMENTS) if names else alpha
        tested = enumerate(names[:MAX_SAFE_SEGMENTS])
        rates = [SafeRate(name, signal.rate(is_safe & (codes == index), level)) for index, name in tested]
    return [each for each in rates if each.rate.rows]


def check_safe_action(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    """Find a safe action whose mean cost is certainly over its limit, in a segment or on average over all."""
    for cost in profile.costs:
        level = alpha / len(profile.costs)
        rates = [(each, False) for each in estimate_safe_rates(cost, level if cost.by is None else 0.5 * level)]
        if cost.by is not None:  # a mean over the limit is over it in some segment
            overall = cost.rate(profile.is_safe, 0.5 * level)
            rates = [(SafeRate(None, overall), True)] * bool(overall.rows) + rates
        for (segment, rate), all_segments in rates:
            if cost.is_broken(rate):
                details: dict[str, Any] = {
                    "name": cost.name,
                    "action": profile.log.problem.safe_name,
                    "column": cost.by,
                    "segment": segment,
                }
                details |= {"mean": rate.mean, "limit": cost.threshold, "at_least": cost.at_least}
                details |= {"all_segments": all_segments, "bound": rate.high if cost.at_least else rate.low}
                yield Finding.of(FindingCode.SAFE_ACTION_OVER_LIMIT, **details)
    yield Finding.of(FindingCode.SAFE_ACTION_NOT_OVER_LIMIT, action=profile.log.problem.safe_name)


def check_declared_safe(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    problem = profile.log.problem
    for signal in profile.signals:
        declared = problem.signals[signal.name].safe_bound
        if declared is None:
            continue
        at_least = not isinstance(signal, Cost) or signal.at_least
        for segment, rate in estimate_safe_rates(signal, alpha / len(profile.signals)):
            if (rate.high < declared) if at_least else (rate.low > declared):
                details: dict[str, Any] = {
                    "name": signal.name,
                    "action": problem.safe_name,
                    "column": signal.by,
                    "segment": segment,
                }
                details |= {"at_least": at_least, "declared": declared, "bound": rate.low if at_least else rate.high}
                details |= {"mean": rate.mean, "low": rate.low, "high": rate.high}
                yield Finding.of(FindingCode.SAFE_MEAN_CONTRADICTED, **details)
    yield Finding.of(FindingCode.SAFE_MEANS_AGREE)


def check_loose_limits(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    """Find limits that every action, in every segment, certainly keeps with a fifth of the room."""
    for cost in profile.costs:
        used, (low, high) = np.unique(cost.cells[cost.observed]), cost.ends
        has_all_actions = all((cost.observed & rows).any() for _, rows in profile.by_action)
        if cost.is_per_user or not has_all_actions or not 0 < used.size <= MAX_CELLS:
            continue
        level = alpha / (len(profile.costs) * used.size)
        rates = [cost.rate(cost.cells == cell, level) for cell in used.tolist()]
        largest = max(high - one.low if cost.at_least else one.high - low for one in rates)
        if largest < cost.room / LOOSE_FACTOR:
            bound = high - largest if cost.at_least else low + largest
            details = {"name": cost.name, "at_least": cost.at_least, "bound": bound, "limit": cost.threshold}
            yield Finding.of(FindingCode.LIMIT_NEVER_BINDS, **details)
    yield Finding.of(FindingCode.LIMITS_CAN_BIND)


def check_segments(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    """Find columns that are not in the problem and in whose groups a rate differs from the rate of all."""
    columns, costs = find_text_columns(profile), [cost for cost in profile.costs if not cost.is_per_user]
    tests = len(columns) * len(costs)
    for column, groups in columns.items():
        for cost in costs:
            extreme = find_extreme_segment(cost, groups)
            p_value = extreme.p_value * tests
            if p_value > max(0.5 * alpha, 0.5 * SELECTION_LEVEL):  # the level at which a proposal divides users
                continue
            segment = groups.names[extreme.group]
            details = {"name": cost.name, "column": column, "segment": segment, "difference": extreme.difference}
            broken = find_broken_segment(cost, groups, 0.5 * alpha / tests)
            if broken is not None:
                yield Finding.of(FindingCode.SEGMENT_OVER_LIMIT, **details, **broken)
            else:
                by_chance = p_value if p_value > 0.5 * alpha else None
                yield Finding.of(FindingCode.SEGMENTS_DIFFER, **details, p_value=by_chance)
    yield Finding.of(FindingCode.SEGMENTS_ALIKE)


def find_extreme_segment(signal: Signal, groups: Groups) -> ExtremeGroup:
    """Return the group in which a signal's rate differs most from the rate of its cell."""
    rows = signal.observed
    return find_extreme_group(signal.events[rows], groups.codes[rows], signal.cells[rows], len(groups.names))


def find_broken_segment(cost: Cost, groups: Groups, p_value: float) -> dict[str, Any] | None:
    """Return an action that keeps a limit on average and certainly breaks it in a segment; None: there is none."""
    if len(groups.names) > MAX_TESTED_SEGMENTS:
        return None
    level = p_value / (len(groups.names) * len(cost.profile.by_action))
    for action, rows in cost.profile.by_action:
        mean = cost.rate(rows, 0.5).mean
        if not ((mean >= cost.threshold) if cost.at_least else (mean <= cost.threshold)):
            continue
        for index, segment in enumerate(groups.names):
            rate = cost.rate(rows & (groups.codes == index), level)
            if cost.is_broken(rate):
                bound = rate.high if cost.at_least else rate.low
                return {"action": action, "limit": cost.threshold, "broken_segment": segment, "bound": bound}
    return None


def find_text_columns(profile: LogProfile) -> dict[str, Groups]:
    problem = profile.log.problem
    used = {profile.columns.get(name, name) for name in (*problem.signals, *problem.context_names, "action")}
    columns = {}
    for name, array in profile.log.arrays.items():
        if isinstance(name, str) and name not in used and name not in TIME_COLUMNS and array.dtype.kind == "O":
            groups = encode_column(array.tolist())
            if groups is not None:
                columns[name] = groups
    return columns


def encode_column(entries: list[Any]) -> Groups | None:
    """Return the groups of a column of texts; None if it holds something else, or a name for every row."""
    kinds = {type(entry) for entry in entries}
    if str not in kinds or any(kind not in (str, bool, int, float, type(None)) for kind in kinds):
        return None
    if not 2 <= len(set(entries)) <= min(MAX_GROUPS, len(entries) // 2):
        return None
    return Groups.of(to_texts(entries))


def check_drift(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    """Find signals whose mean changed, in all actions or in one: early against late, or middle against ends."""
    ranks = profile.time_ranks
    shapes = {"trend": ranks, "step": (ranks > 0.5) * 1.0, "ends": np.abs(ranks - 0.5)}
    chosen: list[tuple[str | None, Flags]] = [(None, profile.known), *profile.by_action]
    tests = 3 * len(profile.signals) * len(chosen)
    yield from check_declared_drift(profile)
    for signal in profile.signals:
        if signal.name in profile.log.problem.moduli:  # it may have moved
            continue
        strata, p_values = get_strata(signal), dict[tuple[int, str], float]()
        for index, (_, of_action) in enumerate(chosen):
            rows = signal.observed & of_action
            if rows.any():
                for shape, times in shapes.items():
                    p_values[index, shape] = measure_shift(times[rows], signal.events[rows], strata[rows]).p_value
        if p_values:
            (index, shape), p_value = min(p_values.items(), key=lambda one: one[1])
            if p_value * tests <= alpha:
                yield describe_drift(signal, *chosen[index], shape == "ends")
    yield Finding.of(FindingCode.NO_DRIFT, has_times=profile.log.at is not None)


def check_declared_drift(profile: LogProfile) -> Iterator[Finding]:
    """Compare the least bound that can be had under a declared drift, at the traffic of the log, with each limit."""
    problem = profile.log.problem
    for cost in profile.costs:
        if cost.name not in problem.moduli or problem.moduli[cost.name].amount == 0.0:
            continue
        sign, bounds = -1.0 if cost.at_least else 1.0, compute_least_bounds(cost, problem.moduli[cost.name])
        if bounds:
            action, bound = min(bounds.items(), key=lambda one: sign * one[1])
            threshold = float(problem.policy().display_thresholds.values[list(problem.limits).index(cost.name)])
            is_learnable = sign * bound <= sign * threshold
            code = FindingCode.DRIFT_LEARNABLE if is_learnable else FindingCode.DRIFT_TOO_FAST
            details = {"name": cost.name, "action": action, "least": bound, "limit": threshold}
            yield Finding.of(code, **details, at_least=cost.at_least)


def get_strata(signal: Signal) -> Ints:
    """Return strata (n,) of rows with similar means: cells of one rate, or deciles of the fit by action."""
    if not signal.is_per_user:
        return signal.cells
    means = signal.predict()
    groups, rows = np.zeros(means.size, dtype=np.int64), np.isfinite(means)
    groups[rows] = 1 + assign_deciles(means[rows]) if rows.any() else 0
    return np.asarray(signal.profile.cell_actions * 11 + groups)


def describe_drift(signal: Signal, action: str | None, rows: Flags, at_ends: bool) -> Finding:
    """Return the finding on a mean that changed; without times it is a note on the order of rows."""
    ranks = signal.profile.time_ranks
    late = np.abs(ranks - 0.5) > 0.25 if at_ends else ranks > 0.5
    before, after, change = signal.compute_change(rows & ~late, rows & late)
    code = FindingCode.MEAN_DRIFTED if change >= MIN_RELATIVE_CHANGE else FindingCode.MEAN_DRIFTED_SLIGHTLY
    code = FindingCode.MEAN_DRIFTED_BY_ROW if signal.profile.log.at is None else code
    proposal = propose_drift(signal) if isinstance(signal, Cost) else None
    drift = None if proposal is None or not proposal.is_learnable else proposal.drift
    details = {"name": signal.name, "action": action, "before": before, "after": after, "at_ends": at_ends}
    return Finding.of(code, **details, proposed=drift)


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
