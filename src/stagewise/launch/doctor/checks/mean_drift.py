"""Check `drift`: no mean changed over the log."""

import numpy as np

from stagewise.engine.compile import Ints
from stagewise.launch.doctor.binary_outcomes import find_events
from stagewise.launch.doctor.calibration import assign_deciles
from stagewise.launch.doctor.finding import Finding, select_most_severe
from stagewise.launch.doctor.finding_messages import FindingCode
from stagewise.launch.doctor.linear_fits import LinearFits
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.launch.doctor.permutation_tests import measure_shift

MIN_RELATIVE_CHANGE = 0.1  # relative change between the halves; a smaller one is a note


def check(profile: LogProfile, alpha: float) -> Finding:
    """Find signals whose mean changed, in all actions or in one: early against late, or middle against ends."""
    problem, findings = profile.log.problem, []
    tests = 3 * len(profile.names) * (len(problem.actions) + 1)
    shapes = {
        "trend": profile.time_ranks,
        "step": (profile.time_ranks > 0.5) * 1.0,
        "ends": np.abs(profile.time_ranks - 0.5),
    }
    for signal, name in enumerate(profile.names):
        rows, marked, strata = profile.observed(signal), find_events(profile, signal), get_strata(profile, signal)
        p_values: dict[tuple[int, str], float] = {}
        for action in range(-1, len(problem.actions)):
            chosen = rows & (profile.log.actions == action) if action >= 0 else rows
            if chosen.any():
                for shape, times in shapes.items():
                    p_values[action, shape] = measure_shift(times[chosen], marked[chosen], strata[chosen]).p_value
        if p_values:
            (action, shape), p_value = min(p_values.items(), key=lambda one: one[1])
            if p_value * tests <= alpha:
                findings.append(build_finding(profile, signal, name, action, shape == "ends"))
    return select_most_severe(findings, Finding.of(FindingCode.NO_DRIFT, has_times=profile.log.at is not None))


def get_strata(profile: LogProfile, signal: int) -> Ints:
    """Return strata (n,) of rows with similar means: cells of one rate, or deciles of the linear fit by action."""
    if profile.log.problem.choices[profile.names[signal]].model == "rates":
        return profile.cells(signal)
    all_rows = np.ones(profile.log.rows, dtype=bool)
    means = LinearFits(profile, signal).predict(all_rows, all_rows)
    groups = np.zeros(profile.log.rows, dtype=np.int64)
    rows = np.isfinite(means)
    groups[rows] = 1 + assign_deciles(means[rows]) if rows.any() else 0
    return np.asarray(np.maximum(profile.log.actions, 0) * 11 + groups)


def build_finding(profile: LogProfile, signal: int, name: str, action: int, at_ends: bool) -> Finding:
    """Return the finding on a mean that changed; without times it is a note on the order of rows."""
    chosen = profile.log.actions == action if action >= 0 else profile.known
    late = np.abs(profile.time_ranks - 0.5) > 0.25 if at_ends else profile.time_ranks > 0.5
    _, before, _ = profile.rate(signal, chosen & ~late, 0.5)
    _, after, _ = profile.rate(signal, chosen & late, 0.5)
    low = profile.ends(signal)[0]
    change = abs(after - before) / max(min(abs(after - low), abs(before - low)), 1e-12)
    if profile.log.at is None:
        code = FindingCode.MEAN_DRIFTED_BY_ROW
    else:
        code = FindingCode.MEAN_DRIFTED if change >= MIN_RELATIVE_CHANGE else FindingCode.MEAN_DRIFTED_SLIGHTLY
    action_name = profile.log.problem.actions[action] if action >= 0 else None
    return Finding.of(code, name=name, action=action_name, before=before, after=after, at_ends=at_ends)
