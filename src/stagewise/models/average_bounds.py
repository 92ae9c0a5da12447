"""Confidence bounds for the running average of many means, valid at all times at once.

Outcomes y in [0, 1] of a cell have means p_1, p_2, ... that may differ by user, move, and depend on the past. With S
their sum, n their number, p̄ = Σ p_i/n, fixed η_j > 0, weights w_j that sum to 1, κ_j = 1 − e^−η_j and κ'_j = e^η_j − 1,

    p̄ ≤ U, the largest p with Σ_j w_j exp(−η_j S − n log(1 − κ_j p)) ≤ 1/δ'
    p̄ ≥ L, the smallest p with Σ_j w_j exp(η_j S − n log(1 + κ'_j p)) ≤ 1/δ'

at all n at once, each with probability 1 − δ' (docs/theory/averages.md). No bound depends on a limit.
"""

import math

from stagewise.engine.compile import kernel
from stagewise.models.intervals import Interval

TERMS = 20
UPPER_ETAS = tuple(4.0 * 2.0 ** (-0.75 * j) for j in range(TERMS))
LOWER_ETAS = tuple(2.0 * 2.0 ** (-0.75 * j) for j in range(TERMS))
FALLS = tuple(-math.expm1(-eta) for eta in UPPER_ETAS)  # κ
RISES = tuple(math.expm1(eta) for eta in LOWER_ETAS)  # κ'
LOG_WEIGHTS = tuple(
    -1.5 * math.log(j + 2.0) - math.log(sum((i + 2.0) ** -1.5 for i in range(TERMS))) for j in range(TERMS)
)
STEPS = 6  # of Newton's method from outside: each iterate is a valid bound
CLOSE = 1e-9


@kernel
def compute_average_upper(pulls: float, total: float, confidence: float) -> float:
    """Return U(S, n); `confidence` is log 1/δ'.

    Each term alone gives a point beyond U. The logarithm of the sum is convex and rises in p, so Newton's method from
    the smallest of these points never passes U.
    """
    p = 1.0
    if not pulls > 0.0:
        return p
    for j in range(TERMS):
        p = min(p, -math.expm1(-(confidence - LOG_WEIGHTS[j] + UPPER_ETAS[j] * total) / pulls) / FALLS[j])
    for _ in range(STEPS):
        largest = -math.inf
        for j in range(TERMS):
            largest = max(largest, LOG_WEIGHTS[j] - UPPER_ETAS[j] * total - pulls * math.log1p(-FALLS[j] * p))
        value, slope = 0.0, 0.0
        for j in range(TERMS):
            left = 1.0 - FALLS[j] * p
            term = math.exp(LOG_WEIGHTS[j] - UPPER_ETAS[j] * total - pulls * math.log1p(-FALLS[j] * p) - largest)
            value += term
            slope += term * pulls * FALLS[j] / left
        step = (largest + math.log(value) - confidence) * value / slope
        if not step > CLOSE * p:
            break
        p -= step
    return min(max(p, total / pulls), 1.0)


@kernel
def compute_average_lower(pulls: float, total: float, confidence: float) -> float:
    """Return L(S, n); `confidence` is log 1/δ'. As above: the logarithm of the sum is convex and falls in p."""
    p = 0.0
    if not (pulls > 0.0 and total > 0.0):
        return p
    for j in range(TERMS):
        p = max(p, math.expm1((LOWER_ETAS[j] * total + LOG_WEIGHTS[j] - confidence) / pulls) / RISES[j])
    for _ in range(STEPS):
        largest = -math.inf
        for j in range(TERMS):
            largest = max(largest, LOG_WEIGHTS[j] + LOWER_ETAS[j] * total - pulls * math.log1p(RISES[j] * p))
        value, slope = 0.0, 0.0
        for j in range(TERMS):
            left = 1.0 + RISES[j] * p
            term = math.exp(LOG_WEIGHTS[j] + LOWER_ETAS[j] * total - pulls * math.log1p(RISES[j] * p) - largest)
            value += term
            slope += term * pulls * RISES[j] / left
        step = (largest + math.log(value) - confidence) * value / slope
        if not step > CLOSE * max(p, 1e-12):
            break
        p += step
    return max(min(p, total / pulls), 0.0)


@kernel
def lower_to_average_upper(pulls: float, total: float, confidence: float, known: float) -> float:
    """Return the smaller of `known` and U(S, n); much cheaper than U where `known` is smaller.

    Newton's method from `known` or from the point that one term alone gives, whatever is smaller: no term is above 1/δ'
    there, so none overflows, and it ends at once where the sum is below 1/δ'.
    """
    p = known
    for j in range(TERMS):
        p = min(p, -math.expm1(-(confidence - LOG_WEIGHTS[j] + UPPER_ETAS[j] * total) / pulls) / FALLS[j])
    for _ in range(STEPS):
        value, slope = 0.0, 0.0
        for j in range(TERMS):
            left = 1.0 - FALLS[j] * p
            term = math.exp(LOG_WEIGHTS[j] - UPPER_ETAS[j] * total - pulls * math.log1p(-FALLS[j] * p) - confidence)
            value += term
            slope += term * pulls * FALLS[j] / left
        step = math.log(value) * value / slope
        if not step > CLOSE * p:
            break
        p -= step
    return min(max(p, total / pulls), known)


@kernel
def raise_to_average_lower(pulls: float, total: float, confidence: float, known: float) -> float:
    """Return the larger of `known` and L(S, n), as `lower_to_average_upper` does."""
    if not total > 0.0:
        return known
    p = known
    for j in range(TERMS):
        p = max(p, math.expm1((LOWER_ETAS[j] * total + LOG_WEIGHTS[j] - confidence) / pulls) / RISES[j])
    for _ in range(STEPS):
        value, slope = 0.0, 0.0
        for j in range(TERMS):
            left = 1.0 + RISES[j] * p
            term = math.exp(LOG_WEIGHTS[j] + LOWER_ETAS[j] * total - pulls * math.log1p(RISES[j] * p) - confidence)
            value += term
            slope += term * pulls * RISES[j] / left
        step = math.log(value) * value / slope
        if not step > CLOSE * max(p, 1e-12):
            break
        p += step
    return max(min(p, total / pulls), known)


@kernel
def compute_average_interval(pulls: float, mean: float, low: float, high: float) -> Interval:
    """Return both bounds from the mean of the outcomes; `low` and `high` are log 1/δ' of each."""
    total = pulls * min(max(mean, 0.0), 1.0)
    return Interval(compute_average_lower(pulls, total, low), compute_average_upper(pulls, total, high))
