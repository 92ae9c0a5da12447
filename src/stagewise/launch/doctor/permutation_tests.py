"""Permutation tests within strata that are valid for any number of rows.

If a column f is independent of which rows are marked, the marked rows of every stratum are a draw without replacement.
Such a draw is at most as far from its mean as one with replacement (Hoeffding 1963, Theorem 4), so Bennett's inequality
holds with the known variance of the stratum:

    P(|Σ (f − f̄)| ≥ s) ≤ 2 exp(−V/b² h(b s/V)),   V = Σ min(m, N − m) σ²,   |f − f̄| ≤ b,   h(u) = (1+u) log(1+u) − u.

If that is small, Chernoff's bound is used, which is smaller: the values of a stratum are known, and so is the mean of
exp(λ (f − f̄)) of a random one of them.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.engine.compile import Floats, Ints

Flags = npt.NDArray[np.bool_]
MAX_CELLS = 2_000  # groups times strata that are tested one by one
SHARPEN_BELOW = 0.1  # p-value below which a sharper bound is computed
SLOPE_FACTORS = (0.8, 1.0, 1.25, 1.6)
MIN_PROBABILITY = 1e-150  # a probability or variance that counts as zero


class Shift(NamedTuple):
    """The difference between marked and other rows, and its p-value."""

    p_value: float
    difference: float  # mean of the marked minus mean of the others, within strata


def bennett_bound(sums: Any, variances: Any, largest: Any) -> Any:
    """Return Bennett's bound on the probability of a sum this far from 0 on either side.

    >>> float(bennett_bound(0.0, 1.0, 1.0)), bool(bennett_bound(50.0, 10.0, 1.0) < 1e-20)
    (1.0, True)
    """
    positive = np.maximum(np.asarray(variances, dtype=float), MIN_PROBABILITY)  # without variance every sum is 0
    scale = np.maximum(np.asarray(largest, dtype=float), 1e-100)
    ratio = scale * np.abs(np.asarray(sums, dtype=float)) / positive
    exponent = positive / scale**2 * ((1.0 + ratio) * np.log1p(ratio) - ratio)
    return np.clip(2.0 * np.exp(-exponent), MIN_PROBABILITY, 1.0)


def freedman_bound(sums: Any, variances: Any, largest: float, rows: int) -> Any:
    """Return the same for a sum of draws whose variances depend on the past, as under an adaptive policy.

    Freedman's inequality (1975) is Bennett's for such a sum, if its variance is at most some v; a union over
    v = b², 2 b², 4 b², ..., rows b² makes it hold for all v.

    >>> bool(freedman_bound(50.0, 10.0, 1.0, 1000) < 1e-10), float(freedman_bound(3.0, 10.0, 1.0, 1000))
    (True, 1.0)
    """
    scales = np.ceil(np.log2(np.maximum(np.asarray(variances, dtype=float) / largest**2, 1.0)))
    count = 1 + math.ceil(math.log2(max(rows, 1)))
    return np.minimum(count * bennett_bound(sums, largest**2 * 2.0**scales, largest), 1.0)


def measure_shift(values: Floats, marked: Flags, strata: Ints) -> Shift:
    """Return the difference between marked rows and the others of their stratum in a finite column.

    >>> values, one_stratum = np.arange(100) / 100, np.zeros(100, dtype=np.int64)
    >>> bool(measure_shift(values, values > 0.5, one_stratum).p_value < 1e-4)
    True
    >>> bool(measure_shift(values, np.arange(100) % 2 == 0, one_stratum).p_value > 0.9)
    True
    """
    count = np.bincount(strata)
    mean = np.bincount(strata, values) / np.maximum(count, 1)
    deviations = values - mean[strata]
    variance = np.bincount(strata, deviations**2) / np.maximum(count, 1)
    hits = np.bincount(strata, marked, minlength=count.size)
    fewer = np.minimum(hits, count - hits)
    total = float(deviations[marked].sum())
    pairs = float((hits * (count - hits) / np.maximum(count, 1)).sum())
    p_value = float(bennett_bound(total, fewer @ variance, np.max(np.abs(deviations), initial=0.0)))
    if MIN_PROBABILITY < p_value <= SHARPEN_BELOW:
        signs = np.where(hits <= count - hits, 1.0, -1.0) * np.sign(total)  # the others' sum is minus the marked's
        p_value = min(
            p_value, chernoff_bound(abs(total), signs[strata] * deviations, strata, fewer, float(fewer @ variance))
        )
    high = values == values.max() if count.size == 1 and values.size else marked[:0]
    if high.any() and (high | (values == values.min())).all():
        p_value = min(
            p_value, hypergeometric_p_value(int((high & marked).sum()), int(hits[0]), int(high.sum()), int(count[0]))
        )
    return Shift(p_value, total / pairs if pairs > 0.0 else 0.0)


def chernoff_bound(total: float, deviations: Floats, strata: Ints, drawn: Floats, variance: float) -> float:
    """Return a bound on the probability of a sum this far from 0, on either side, of `drawn` values of every stratum.

    2 min over λ of exp(−λ s) Π (mean of exp(λ f) in a stratum)^drawn, for a few λ around s/V.
    """
    size = np.maximum(np.bincount(strata), 1)
    best = 0.0
    for factor in SLOPE_FACTORS:
        slope = factor * total / variance
        growth = np.bincount(strata, np.exp(np.minimum(slope * deviations, 600.0))) / size
        best = min(best, float(drawn @ np.log(np.maximum(growth, MIN_PROBABILITY))) - slope * total)
    return float(np.clip(2.0 * math.exp(best), MIN_PROBABILITY, 1.0))


def hypergeometric_p_value(hits: int, drawn: int, high: int, rows: int) -> float:
    """Return twice the probability of as many hits or more (or fewer) among `drawn` of `rows` with `high` high ones.

    >>> round(hypergeometric_p_value(3, 3, 3, 6), 9)  # 2/20
    0.1
    """
    fewest, largest = max(0, drawn + high - rows), min(drawn, high)
    k = np.arange(fewest, largest + 1)
    logs = -(log_factorial(k) + log_factorial(high - k) + log_factorial(drawn - k))
    logs = logs - log_factorial(np.array(rows - high - drawn) + k)
    weights = np.exp(logs - logs.max())
    sums = weights[k >= hits].sum(), weights[k <= hits].sum()
    return float(np.clip(2.0 * min(sums) / weights.sum(), MIN_PROBABILITY, 1.0))


def log_factorial(k: Any) -> Any:
    """Return log k!."""
    from scipy.special import gammaln  # type: ignore[import-untyped]

    return gammaln(k + 1.0)


class GroupShifts(NamedTuple):
    """The difference of every group from the mean of its strata."""

    p_value: Floats
    difference: Floats  # mean of the group minus the mean of its strata


def measure_group_shifts(values: Floats, groups: Ints, strata: Ints, count: int) -> GroupShifts:
    """Return the same for every one of `count` groups of rows."""
    size = np.bincount(strata)
    mean = np.bincount(strata, values) / np.maximum(size, 1)
    deviations = values - mean[strata]
    variance = np.bincount(strata, deviations**2) / np.maximum(size, 1)
    totals = np.bincount(groups, deviations, minlength=count)
    group_variances = np.bincount(groups, variance[strata], minlength=count)
    rows = np.bincount(groups, minlength=count)
    p_value = bennett_bound(totals, group_variances, np.max(np.abs(deviations), initial=0.0))
    return GroupShifts(p_value, totals / np.maximum(rows, 1))


class ExtremeGroup(NamedTuple):
    """The group that differs most from the others, with a corrected p-value."""

    p_value: float
    group: int
    difference: float


def find_extreme_group(marked: Flags, groups: Ints, strata: Ints, count: int) -> ExtremeGroup:
    """Return the group whose share of marked rows differs most, in all strata together or in one."""
    hits = marked.astype(float)
    shifts = measure_group_shifts(hits, groups, strata, count)
    group_index = int(shifts.p_value.argmin())
    best = ExtremeGroup(float(shifts.p_value[group_index]), group_index, float(shifts.difference[group_index]))
    layers = np.flatnonzero(np.bincount(strata))
    tests = count * (1 + (layers.size if count * layers.size <= MAX_CELLS else 0))
    for layer in layers.tolist() if tests > count else []:
        in_layer = strata == layer
        rows, high = int(in_layer.sum()), int(hits[in_layer].sum())
        size = np.bincount(groups[in_layer], minlength=count)
        own = np.bincount(groups[in_layer], hits[in_layer], minlength=count)
        for group in np.flatnonzero(size).tolist():
            p_value = hypergeometric_p_value(int(own[group]), int(size[group]), high, rows)
            if p_value < best.p_value:
                best = ExtremeGroup(p_value, group, float(own[group] / size[group] - high / rows))
    return best._replace(p_value=min(best.p_value * tests, 1.0))


def compute_ranks(values: Floats) -> Floats:
    """Return the rank of every value among all, in (0, 1); equal values have equal ranks.

    >>> compute_ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist()
    [0.75, 0.125, 0.75, 0.375]
    """
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray(((ends - 0.5 * counts) / max(values.size, 1))[codes.reshape(-1)])
