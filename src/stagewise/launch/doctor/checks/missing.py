"""Check `missing_values`: outcomes are not missing because of what they are.

Whether an unknown outcome is the cause cannot be observed. Its trace can: outcomes differ by action, by user and with
one another, and so does what is missing because of them.
"""

from typing import Any

import numpy as np

from stagewise.launch.doctor.binary_outcomes import find_events
from stagewise.launch.doctor.finding import Finding, FindingVerdict, select_most_severe
from stagewise.launch.doctor.finding_messages import FindingCode, MissingPattern
from stagewise.launch.doctor.linear_fits import compute_cell_rates
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.launch.doctor.permutation_tests import Flags, measure_group_shifts, measure_shift


def check(profile: LogProfile, alpha: float) -> Finding:
    """Find missing outcomes and numbers, and what their absence depends on."""
    log, findings = profile.log, []
    for signal, name in enumerate(profile.names):
        missing = np.isnan(log.values[:, signal])
        if missing.any():
            findings.append(check_missing_outcomes(profile, signal, name, missing, alpha / len(profile.names)))
    for index, name in enumerate(log.problem.context):
        missing = np.isnan(log.numbers[:, index])
        if missing.any():
            count = int(missing.sum())
            findings.append(Finding.of(FindingCode.NUMBER_MISSING, name=name, count=count, rows=log.rows))
    return select_most_severe(findings, Finding.of(FindingCode.NOTHING_MISSING))


def check_missing_outcomes(profile: LogProfile, signal: int, name: str, missing: Flags, alpha: float) -> Finding:
    """Return the finding on one signal's missing outcomes."""
    log, window = profile.log, profile.log.problem.signals[name].waits
    low, _ = profile.ends(signal)
    is_open, known = profile.open_windows[:, signal], log.values[~missing, signal]
    has_default = window is not None and not window.drops
    details: dict[str, Any] = {"name": name, "count": int(missing.sum()), "rows": log.rows}
    if not known.size:
        verdict = FindingVerdict.NOTE if has_default else FindingVerdict.CONTRADICTS
        return Finding.of(FindingCode.OUTCOME_ALL_MISSING, verdict, **details, has_default=has_default)
    values = np.unique(known)
    if values.size == 1 and values[0] > low and not has_default:
        return Finding.of(FindingCode.ONLY_EVENTS_REPORTED, **details, value=float(values[0]), low=low)
    if window is not None and is_open.all():
        return Finding.of(FindingCode.ALL_WINDOWS_OPEN, **details, window=window.duration_text)
    if window is not None and is_open.any():
        details |= {"open_rows": int(is_open.sum()), "window": window.duration_text}
    missing = missing & ~is_open
    if window is not None and has_default and not (log.values[~is_open, signal] == window.missing).any():
        return Finding.of(
            FindingCode.MISSING_COUNTS_AS_DEFAULT,
            **details,
            filled=int(missing.sum()),
            default=window.missing,
            has_times=log.at is not None,
        )
    pattern = find_pattern(profile, signal, missing, ~is_open, alpha)
    if pattern is not None:
        return Finding.of(FindingCode.MISSING_NOT_AT_RANDOM, **details, **pattern)
    return Finding.of(FindingCode.OUTCOME_MISSING if missing.any() else FindingCode.SOME_WINDOWS_OPEN, **details)


def find_pattern(
    profile: LogProfile, signal: int, missing: Flags, closed: Flags, alpha: float
) -> dict[str, Any] | None:
    """Return what missing outcomes depend on most certainly, among rows with closed windows; None: perhaps on nothing.

    `pattern` is a `MissingPattern`; `by` the action, number, segment or outcome; `more` the direction.
    """
    if not closed.all():
        profile, missing = LogProfile(profile.log.take(closed), profile.columns), missing[closed]
    log, actions = profile.log, np.maximum(profile.log.actions, 0)
    tests = len(log.problem.actions) + len(profile.ranks) + 2 + len(profile.names) - 1
    tests += sum(len(names) for _, names in profile.segment_codes.values())
    weights, one_stratum = missing.astype(float), np.zeros(log.rows, np.int64)
    candidates: list[tuple[float, dict[str, Any]]] = []

    def add(p_value: float, pattern: MissingPattern, **fields: Any) -> None:
        empty = {"by": None, "more": None, "share": None, "column": None}
        candidates.append((p_value, {**empty, "pattern": str(pattern), **fields}))

    by_action = measure_group_shifts(weights, actions, one_stratum, len(log.problem.actions))
    worst = int(np.argmin(by_action.p_value))
    share = float(weights[actions == worst].mean()) if (actions == worst).any() else 0.0
    add(float(by_action.p_value[worst]), MissingPattern.ACTION, by=log.problem.actions[worst], share=share)
    rates = np.nan_to_num(compute_cell_rates(profile, signal, ~missing))  # what an outcome that is the cause leaves
    by_rate = measure_shift(rates, missing, one_stratum)
    add(by_rate.p_value, MissingPattern.RATE, more=by_rate.difference > 0.0)
    for name, ranks in zip(log.problem.context, profile.ranks, strict=True):
        by_number = measure_shift(ranks, missing, actions)
        add(by_number.p_value, MissingPattern.NUMBER, by=name, more=by_number.difference > 0.0)
    for column, (groups, names) in profile.segment_codes.items():
        by_segment = measure_group_shifts(weights, groups, actions, len(names))
        worst = int(np.argmin(by_segment.p_value))
        add(float(by_segment.p_value.min()), MissingPattern.SEGMENT, by=names[worst], column=column)
    by_time = measure_shift(profile.time_ranks, missing, actions)
    add(by_time.p_value, MissingPattern.TIME, more=by_time.difference > 0.0)
    for other, name in enumerate(profile.names):
        if other != signal:
            rows = profile.observed(other)
            by_outcome = measure_shift(find_events(profile, other)[rows].astype(float), missing[rows], actions[rows])
            add(by_outcome.p_value, MissingPattern.OUTCOME, by=name, more=by_outcome.difference > 0.0)
    p_value, pattern = min(candidates, key=lambda one: one[0])
    return pattern if p_value * tests <= alpha else None
