"""Check `leakage`: no number or segment was recorded after the decision.

There are two signs. First, a column predicts an outcome within actions too well: above `BINARY_AUC_LIMIT` it
contradicts, which is a rule and not a test, since an honest number may be as good; below that, a column that is better
than any linear mean could be (and than `NOTED_AUC`) is a note. Second, if the log has the probability of every action,
a number differs between actions more than these probabilities allow: what is known before a decision cannot depend on
how the decision falls.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.launch.doctor.binary_outcomes import find_events, is_binary
from stagewise.launch.doctor.finding import Finding, select_most_severe
from stagewise.launch.doctor.finding_messages import FindingCode, format_number
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.launch.doctor.logged_probabilities import get_action_probabilities
from stagewise.launch.doctor.permutation_tests import Flags, freedman_bound

BINARY_AUC_LIMIT = 0.9  # a binary outcome that is predicted better counts as known beforehand
NUMERIC_AUC_LIMIT = 0.99  # the same for other outcomes, which earlier values may predict well
NOTED_AUC = 0.75  # nothing is noted below
MARGIN = 0.03  # since the distribution of a number is estimated


def check(profile: LogProfile, alpha: float) -> Finding:
    """Find numbers and segments that predict outcomes, or the action, too well."""
    log = profile.log
    tests = 2 * max((len(log.problem.context) + len(log.segments)) * len(profile.names), 1)
    findings = []
    events = [(find_events(profile, k), profile.observed(k), is_binary(profile, k)) for k in range(len(profile.names))]
    for index, column in enumerate(log.problem.context):
        sorted_column = SortedColumn.of(log.numbers[:, index], log.actions)
        for name, (marked, rows, binary) in zip(profile.names, events, strict=True):
            auc, limit = estimate_auc(sorted_column, marked, rows, binary, alpha / tests)
            if auc > limit:
                findings.append(build_finding(column, name, auc, limit))
            elif binary and auc > NOTED_AUC:
                plausible = compute_plausible_auc(sorted_column, marked, rows)
                if auc > min(limit, plausible):
                    findings.append(
                        Finding.of(FindingCode.PREDICTS_WELL, column=column, name=name, auc=auc, threshold=plausible)
                    )
    for column, (groups, _) in profile.segment_codes.items():
        for signal, name in enumerate(profile.names):
            auc, limit = estimate_group_auc(profile, groups, signal, alpha / tests)
            if auc > limit:
                findings.append(build_finding(column, name, auc, limit))
    findings += find_imbalances(profile, 0.5 * alpha)
    return select_most_severe(findings, Finding.of(FindingCode.NO_LEAKAGE))


def build_finding(column: str, name: str, auc: float, limit: float) -> Finding:
    """Return the finding on a column that predicts a signal too well."""
    return Finding.of(FindingCode.PREDICTS_TOO_WELL, column=column, name=name, auc=auc, threshold=limit)


class SortedColumn(NamedTuple):
    """The values of a column by action: rows, distinct values, and the index of each row's value."""

    pieces: list[tuple[Ints, Floats, Ints]]

    @classmethod
    def of(cls, column: Floats, actions: Ints) -> "SortedColumn":
        """Return the values of a column, sorted within each action."""
        pieces = []
        for action in np.unique(actions[actions >= 0]).tolist():
            rows = np.flatnonzero((actions == action) & np.isfinite(column))
            values, codes = np.unique(column[rows], return_inverse=True)
            pieces.append((rows, values, codes.reshape(-1)))
        return cls(pieces)


def estimate_auc(
    column: SortedColumn, marked: Flags, known: Flags, binary: bool, p_value: float
) -> tuple[float, float]:
    """Return a lower bound on the area under the curve within actions, and the limit above which it is a leak.

    The area is a mean of min(n₁, n₀) independent terms in [0, 1] (Hoeffding 1963, section 5), so Chernoff's bound
    holds: M kl(estimate, truth) ≤ log 1/p_value, with M the number of terms over all actions.
    """
    limit = BINARY_AUC_LIMIT if binary else NUMERIC_AUC_LIMIT
    pieces = count_values(column, marked, known)
    weight = sum(fewer for fewer, *_ in pieces)
    if not weight:
        return 0.5, limit
    auc = sum(fewer * compute_auc(ones, counts - ones) for fewer, _, counts, ones in pieces) / weight
    return chernoff_lower_bound(max(auc, 1.0 - auc), weight, math.log(2.0 / p_value)), limit


def estimate_group_auc(profile: LogProfile, groups: Ints, signal: int, p_value: float) -> tuple[float, float]:
    """Return the same for groups, whose rates are estimated from one half of the rows and tested on the other."""
    marked, rows, half = find_events(profile, signal), profile.observed(signal), profile.half
    rates = SortedColumn.of(compute_other_half_rates(groups, marked, rows, half), profile.log.actions)
    return estimate_auc(rates, marked, rows & ~half, is_binary(profile, signal), p_value)


def describe_leak(profile: LogProfile, measure: Callable[[int], tuple[float, float]]) -> str:
    """Return why a column counts as recorded after the decision; empty if it does not. `measure` is by signal."""
    for signal, name in enumerate(profile.names):
        auc, limit = measure(signal)
        if auc > limit:
            return (
                f"it predicts {name!r} with an area under the curve of {format_number(auc)} or more; is it recorded "
                "after the decision?"
            )
    return ""


def compute_plausible_auc(column: SortedColumn, marked: Flags, known: Flags) -> float:
    """Return the largest area under the curve of a column if the mean is linear in it."""
    pieces = count_values(column, marked, known)
    largest = sum(
        fewer * compute_max_linear_auc(values, counts, float(ones.sum() / counts.sum()))
        for fewer, values, counts, ones in pieces
    )
    return max(NOTED_AUC, largest / sum(fewer for fewer, *_ in pieces) + MARGIN)


def count_values(column: SortedColumn, marked: Flags, known: Flags) -> list[tuple[float, Floats, Floats, Floats]]:
    """Return for actions with both kinds of rows: the smaller count, the values, and rows and marked rows by value."""
    pieces = []
    for rows, values, codes in column.pieces:
        used = known[rows]
        counts = np.bincount(codes[used], minlength=values.size).astype(np.float64)
        ones = np.bincount(codes[used], marked[rows[used]], minlength=values.size).astype(np.float64)
        fewer = min(float(ones.sum()), float((counts - ones).sum()))
        if fewer > 0.0:
            pieces.append((fewer, values, counts, ones))
    return pieces


def compute_auc(ones: Floats, zeros: Floats) -> float:
    """Return the area under the curve: how often a value of the ones is above one of the zeros, ties counted half.

    >>> compute_auc(np.array([0.0, 1.0]), np.array([1.0, 0.0])), compute_auc(np.array([1.0]), np.array([1.0]))
    (1.0, 0.5)
    """
    return float(ones @ (np.cumsum(zeros) - 0.5 * zeros) / (ones.sum() * zeros.sum()))


def compute_max_linear_auc(values: Floats, counts: Floats, mean: float) -> float:
    """Return the largest area that a probability linear in a column, within [0, 1], can have."""
    centre, best = float(counts @ values / counts.sum()), 0.5
    down, up = max(centre - values[0], 1e-12), max(values[-1] - centre, 1e-12)
    for slope in (min(mean / down, (1.0 - mean) / up), -min(mean / up, (1.0 - mean) / down)):
        ones = counts * np.clip(mean + slope * (values - centre), 0.0, 1.0)
        if 0.0 < ones.sum() < counts.sum():
            auc = compute_auc(ones, counts - ones)
            best = max(best, auc, 1.0 - auc)
    return best


def chernoff_lower_bound(mean: float, count: float, confidence: float) -> float:
    """Return the least p with count · kl(mean, p) ≤ confidence.

    >>> round(chernoff_lower_bound(1.0, 100.0, 10.0), 4), chernoff_lower_bound(0.5, 1.0, 10.0) < 0.01
    (0.9048, True)
    """
    low, high = 0.0, mean
    for _ in range(60):
        p = 0.5 * (low + high)
        divergence = mean * math.log(mean / p) if p > 0.0 and mean > 0.0 else (math.inf if mean > 0.0 else 0.0)
        divergence += (1.0 - mean) * math.log((1.0 - mean) / (1.0 - p)) if mean < 1.0 else 0.0
        low, high = (low, p) if count * divergence <= confidence else (p, high)
    return high


def compute_other_half_rates(groups: Ints, marked: Flags, rows: Flags, half: Flags) -> Floats:
    """Return for every row the rate of its group in one half of the rows."""
    used = rows & half
    size = int(groups.max(initial=-1)) + 1
    count = np.bincount(groups[used], minlength=size)
    overall = float(marked[used].mean()) if used.any() else 0.5
    return np.asarray(((np.bincount(groups[used], marked[used], minlength=size) + overall) / (count + 1.0))[groups])


def find_imbalances(profile: LogProfile, alpha: float) -> list[Finding]:
    """Return the numbers that differ between actions more than the logged probabilities allow."""
    probabilities = get_action_probabilities(profile)
    if probabilities is None or not profile.ranks:
        return []
    rows = profile.known & np.isfinite(probabilities).all(axis=1)
    problem, findings = profile.log.problem, []
    taken = profile.log.actions[rows, None] == np.arange(len(problem.actions))
    for column, ranks in zip(problem.context, profile.ranks, strict=True):
        centred = ranks[rows] - 0.5
        sums = centred @ (taken - probabilities[rows])
        variances = centred**2 @ (probabilities[rows] * (1.0 - probabilities[rows]))
        p_values = freedman_bound(sums, variances, 0.5, int(rows.sum())) * len(problem.context) * len(problem.actions)
        worst = int(np.argmin(p_values))
        if p_values[worst] <= alpha:
            action, higher = problem.actions[worst], bool(sums[worst] > 0.0)
            findings.append(Finding.of(FindingCode.DEPENDS_ON_ACTION, column=column, action=action, higher=higher))
    return findings
