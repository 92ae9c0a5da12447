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
UPPER = tuple(-eta for eta in UPPER_ETAS), tuple(-fall for fall in FALLS)  # both sums have terms of one form
LOWER = LOWER_ETAS, RISES
STEPS = 6  # of Newton's method from outside: each iterate is a valid bound
CLOSE, LEAST = 1e-9, 1e-12
Side = tuple[tuple[float, ...], tuple[float, ...]]  # the η and the κ of all terms, both with their signs


@kernel
def get_four_logs(side: Side, j: int, pulls: float, total: float, p: float) -> tuple[float, ...]:
    """Return four of log w + η S − n log(1 + κ p)."""
    etas, rates = side
    return (
        LOG_WEIGHTS[j] + etas[j] * total - pulls * math.log1p(rates[j] * p),
        LOG_WEIGHTS[j + 1] + etas[j + 1] * total - pulls * math.log1p(rates[j + 1] * p),
        LOG_WEIGHTS[j + 2] + etas[j + 2] * total - pulls * math.log1p(rates[j + 2] * p),
        LOG_WEIGHTS[j + 3] + etas[j + 3] * total - pulls * math.log1p(rates[j + 3] * p),
    )


@kernel
def get_logs(side: Side, pulls: float, total: float, p: float) -> tuple[float, ...]:
    """Return the logarithms of all terms: a kernel has no array of its own, and computing them twice takes longer."""
    first = get_four_logs(side, 0, pulls, total, p) + get_four_logs(side, 4, pulls, total, p)
    second = get_four_logs(side, 8, pulls, total, p) + get_four_logs(side, 12, pulls, total, p)
    return first + second + get_four_logs(side, 16, pulls, total, p)


@kernel
def find_root(side: Side, pulls: float, total: float, confidence: float, p: float, is_beyond: bool) -> float:
    """Return where the sum of the terms is 1/δ', by Newton's method from a point outside, which never passes it.

    The logarithm F of the sum is convex in p. `is_beyond`: no term is above 1/δ' at p, so that none overflows. With
    slopes f' of one sign, |f'| ≤ a, and f'' = f'²/n, F'' ≤ A |F'|, A = (1 + 1/n) a: after a step s the next one is at
    most A s²/2(1 − A s), and where that is too small to be taken it is not computed.
    """
    rates = side[1]
    for _ in range(STEPS):
        logs, scale = get_logs(side, pulls, total, p), confidence
        if not is_beyond:
            scale = -math.inf
            for j in range(TERMS):
                scale = max(scale, logs[j])
        value, slope = 0.0, 0.0
        for j in range(TERMS):
            term = math.exp(logs[j] - scale)
            value += term
            slope += term * pulls * rates[j] / (1.0 + rates[j] * p)
        step = (math.log(value) if is_beyond else scale + math.log(value) - confidence) * value / slope
        size = step if rates[0] > 0.0 else -step  # inwards: not above 0 where the end of the range keeps the sum below
        curvature = (pulls + 1.0) * abs(rates[0] / (1.0 + rates[0] * p))
        if not size > CLOSE * max(p, LEAST):
            break
        p += step
        if curvature * size * size <= CLOSE * max(p, LEAST) * (1.0 - curvature * size):
            break
    return p


@kernel
def clip_to_upper_terms(pulls: float, total: float, confidence: float, p: float) -> float:
    """Return the smallest of p and the points at which one term alone is 1/δ', which are beyond U."""
    for j in range(TERMS):
        p = min(p, -math.expm1(-(confidence - LOG_WEIGHTS[j] + UPPER_ETAS[j] * total) / pulls) / FALLS[j])
    return p


@kernel
def clip_to_lower_terms(pulls: float, total: float, confidence: float, p: float) -> float:
    """Return the largest of p and the points at which one term alone is 1/δ', which are beyond L."""
    for j in range(TERMS):
        p = max(p, math.expm1((LOWER_ETAS[j] * total + LOG_WEIGHTS[j] - confidence) / pulls) / RISES[j])
    return p


@kernel
def compute_average_upper(pulls: float, total: float, confidence: float) -> float:
    """Return U(S, n); `confidence` is log 1/δ'."""
    if not pulls > 0.0:
        return 1.0
    p = find_root(UPPER, pulls, total, confidence, clip_to_upper_terms(pulls, total, confidence, 1.0), False)
    return min(max(p, total / pulls), 1.0)


@kernel
def compute_average_lower(pulls: float, total: float, confidence: float) -> float:
    """Return L(S, n); `confidence` is log 1/δ'."""
    if not (pulls > 0.0 and total > 0.0):
        return 0.0
    p = find_root(LOWER, pulls, total, confidence, clip_to_lower_terms(pulls, total, confidence, 0.0), False)
    return max(min(p, total / pulls), 0.0)


@kernel
def lower_to_average_upper(pulls: float, total: float, confidence: float, known: float) -> float:
    """Return the smaller of `known` and U(S, n); much cheaper than U where `known` is smaller."""
    p = find_root(UPPER, pulls, total, confidence, clip_to_upper_terms(pulls, total, confidence, known), True)
    return min(max(p, total / pulls), known)


@kernel
def raise_to_average_lower(pulls: float, total: float, confidence: float, known: float) -> float:
    """Return the larger of `known` and L(S, n), as `lower_to_average_upper` does."""
    if not total > 0.0:
        return known
    p = find_root(LOWER, pulls, total, confidence, clip_to_lower_terms(pulls, total, confidence, known), True)
    return max(min(p, total / pulls), known)


@kernel
def compute_average_interval(pulls: float, mean: float, low: float, high: float) -> Interval:
    """Return both bounds from the mean of the outcomes; `low` and `high` are log 1/δ' of each."""
    total = pulls * min(max(mean, 0.0), 1.0)
    return Interval(compute_average_lower(pulls, total, low), compute_average_upper(pulls, total, high))
