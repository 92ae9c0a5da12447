"""Confidence intervals for a mean of numbers in [0, 1], and for the average of many means, valid at all times at once.

Interval for the mean of outcomes in [0, 1] on a ray, narrow where outcomes are rare (docs/theory/caps.md).

A play at step s from an action of mean c₀ has mean (1−s) c₀ + s p. Over the plays of one ray let A = Σ s, B = Σ (1−s)
and N = Σ y. For y in [0, 1] of mean m and every η,

    E exp(−η y + (1 − e^−η) m) ≤ 1,    so that at all times    (1 − e^−η)(c₀ B + p A) ≤ η N + log 1/δ

and likewise (e^η − 1)(c₀ B + p A) ≥ η N − log 1/δ. The tightest η of a list is used; they share δ. Information grows
with Σ s, not with Σ s², so small steps count too.

Confidence bounds for the running average of many means, valid at all times at once.

Outcomes y in [0, 1] of a cell have means p_1, p_2, ... that may differ by user, move, and depend on the past. With S
their sum, n their number, p̄ = Σ p_i/n, fixed η_j > 0, weights w_j that sum to 1, κ_j = 1 − e^−η_j and κ'_j = e^η_j − 1,

    p̄ ≤ U, the largest p with Σ_j w_j exp(−η_j S − n log(1 − κ_j p)) ≤ 1/δ'
    p̄ ≥ L, the smallest p with Σ_j w_j exp(η_j S − n log(1 + κ'_j p)) ≤ 1/δ'

at all n at once, each with probability 1 − δ' (docs/theory/averages.md). No bound depends on a limit.
"""

import math
from typing import NamedTuple

from stagewise.engine.compile import kernel

STEPS = 30  # Newton's method from outside stops long before; each iterate is a valid bound
CLOSE = 1e-13


class Interval(NamedTuple):
    """An interval that contains a mean in [0, 1]."""

    low: float
    high: float


@kernel
def log_mixture(ones: float, zeros: float) -> float:
    """Return log ∫ q^S (1−q)^(n−S) dBeta(½, ½)(q) = log Γ(S+½) Γ(n−S+½)/(π Γ(n+1))."""
    count = ones + zeros + 1.0
    return math.lgamma(ones + 0.5) + math.lgamma(zeros + 0.5) - math.lgamma(count) - math.log(math.pi)


@kernel
def log_likelihood(p: float, ones: float, zeros: float) -> float:
    """Return S log p + (n−S) log(1−p), with 0 log 0 = 0."""
    total = 0.0
    if ones > 0.0:
        total += ones * math.log(p)
    if zeros > 0.0:
        total += zeros * math.log1p(-p)
    return total


@kernel
def compute_kl_upper(pulls: float, mean: float, confidence: float) -> float:
    """Return the largest p with log mixture − log likelihood(p) ≤ log 1/δ'        (docs/theory/arms.md)."""
    return compute_upper_end(pulls, mean, confidence - log_mixture(pulls * mean, pulls * (1.0 - mean)))


@kernel
def compute_upper_end(pulls: float, mean: float, budget: float) -> float:
    """Return the largest p with −log likelihood(p) ≤ budget, which is log 1/δ' − log mixture.

    Newton's method on a convex function from a point beyond the root never passes it. The start is the smaller of two
    such points: Pinsker's p ≤ m + √(excess/2n), and p ≤ 1 − exp(−budget/(n − S)).
    """
    ones, zeros = pulls * mean, pulls * (1.0 - mean)
    if not zeros > 0.0:
        return 1.0
    excess = budget + log_likelihood(mean, ones, zeros)
    p = min(mean + math.sqrt(max(excess, 0.0) / (2.0 * pulls)), -math.expm1(-budget / zeros))
    for _ in range(STEPS):
        if not mean < p < 1.0:
            break
        beyond = -log_likelihood(p, ones, zeros) - budget
        slope = pulls * (p - mean) / (p * (1.0 - p))
        step = beyond / slope
        if not step > CLOSE * p:
            break
        p -= step
    return min(max(p, mean), 1.0)


@kernel
def compute_kl_interval(pulls: float, mean: float, confidence: float) -> Interval:
    """Return the interval of all p for which the mixture's likelihood is at most 1/δ' times that of p."""
    mean = min(max(mean, 0.0), 1.0)
    return Interval(1.0 - compute_kl_upper(pulls, 1.0 - mean, confidence), compute_kl_upper(pulls, mean, confidence))


ETAS = tuple(2.0**power for power in range(-6, 3))  # η
RISE, FALL = tuple(math.expm1(eta) for eta in ETAS), tuple(-math.expm1(-eta) for eta in ETAS)
SHARED = math.log(len(ETAS))


class SumInterval(NamedTuple):
    """An interval of Σ m, the sum of the plays' means."""

    low: float
    high: float


@kernel
def compute_sum_interval(count: float, low: float, high: float) -> SumInterval:
    """Return the ends of Σ m given N and log 1/δ of either end."""
    least, most = 0.0, math.inf
    for i in range(len(ETAS)):
        least = max(least, (ETAS[i] * count - low - SHARED) / RISE[i])
        most = min(most, (ETAS[i] * count + high + SHARED) / FALL[i])
    return SumInterval(least, most)


@kernel
def draw_rate(ones: float, pulls: float, prior: float, deviate: float) -> float:
    """Return a rate near (S + ½)/(n + 1/2q), given a prior mean q ≤ ½, moved by `deviate` posterior deviations.

    sin²(arcsin √p + deviate/2√(n + 1/2q))        the variance-stabilising scale, on which no rate leaves [0, 1]
    """
    weight = pulls + 0.5 / prior
    angle = math.asin(math.sqrt((ones + 0.5) / weight)) + 0.5 * deviate / math.sqrt(weight)
    sine = math.sin(min(max(angle, 0.0), 0.5 * math.pi))
    return sine * sine


TERMS = 20
UPPER_ETAS = tuple(4.0 * 2.0 ** (-0.75 * j) for j in range(TERMS))
LOWER_ETAS = tuple(2.0 * 2.0 ** (-0.75 * j) for j in range(TERMS))
AVERAGE_ETAS = UPPER_ETAS + tuple(-eta for eta in LOWER_ETAS)  # the lower bound is the upper one at -η, where κ is -κ'
FACTORS = tuple(-math.expm1(-eta) for eta in AVERAGE_ETAS)  # κ, then -κ'
# The price of a scale, log 1/w, is the same for every rate from 0 to three quarters of a limit, whose best η = log τ/p
# is among the first terms. Smaller η, which tell rates that are closer to a limit, or serve large sums, cost more.
ALIKE = 6
WEIGHTS = tuple(max(1.0, j - ALIKE + 2.0) ** -1.5 for j in range(TERMS))
LOG_WEIGHTS = tuple(math.log(weight / sum(WEIGHTS)) for weight in WEIGHTS)
AVERAGE_STEPS = 6  # of Newton's method from outside: each iterate is a valid bound
AVERAGE_CLOSE = 1e-9
NEARLY = 1.0 + 1e-12  # more than rounding can change


@kernel
def get_four_logs(first: int, j: int, pulls: float, total: float, p: float) -> tuple[float, ...]:
    """Return four of log w − η S − n log(1 − κ p), of the bound whose terms begin at `first`."""
    i = first + j
    return (
        LOG_WEIGHTS[j] - AVERAGE_ETAS[i] * total - pulls * math.log1p(-FACTORS[i] * p),
        LOG_WEIGHTS[j + 1] - AVERAGE_ETAS[i + 1] * total - pulls * math.log1p(-FACTORS[i + 1] * p),
        LOG_WEIGHTS[j + 2] - AVERAGE_ETAS[i + 2] * total - pulls * math.log1p(-FACTORS[i + 2] * p),
        LOG_WEIGHTS[j + 3] - AVERAGE_ETAS[i + 3] * total - pulls * math.log1p(-FACTORS[i + 3] * p),
    )


@kernel
def get_logs(first: int, pulls: float, total: float, p: float) -> tuple[float, ...]:
    """Return the logarithms of all terms: a kernel has no array of its own, and computing them twice takes longer."""
    some = get_four_logs(first, 0, pulls, total, p) + get_four_logs(first, 4, pulls, total, p)
    others = get_four_logs(first, 8, pulls, total, p) + get_four_logs(first, 12, pulls, total, p)
    return some + others + get_four_logs(first, 16, pulls, total, p)


@kernel
def refine(first: int, pulls: float, total: float, confidence: float, p: float, is_scaled: bool) -> float:
    """Return the bound whose terms begin at `first`, by Newton's method from a point beyond it.

    The logarithm F of the sum is convex in p, so no iterate passes the bound. `is_scaled`: terms may overflow. As the
    terms' logarithms have slopes f' of one sign, |f'| ≤ a, and f'' = f'²/n, F'' ≤ A |F'| with A = (1 + 1/n) a. So after
    a step s the next one is at most A s²/2(1 − A s), and it is not computed where it would be too small to be taken.
    """
    for _ in range(AVERAGE_STEPS):
        logs, shift, value, slope = get_logs(first, pulls, total, p), confidence, 0.0, 0.0
        if is_scaled:
            shift = -math.inf
            for j in range(TERMS):
                shift = max(shift, logs[j])
        for j in range(TERMS):
            term = math.exp(logs[j] - shift)
            value += term
            slope += term * pulls * FACTORS[first + j] / (1.0 - FACTORS[first + j] * p)
        excess = shift + math.log(value) - confidence if is_scaled else math.log(value)
        step = excess * value / slope
        if not abs(step) > AVERAGE_CLOSE * max(p, 1e-12) or excess <= 0.0:
            break
        curved = (pulls + 1.0) * abs(FACTORS[first] / (1.0 - FACTORS[first] * p) * step)
        p -= step
        if curved * abs(step) <= AVERAGE_CLOSE * max(p, 1e-12) * (1.0 - curved):
            break
    return p


@kernel
def find_upper_start(pulls: float, total: float, confidence: float, known: float) -> float:
    """Return the smallest of `known` and the points at which one term alone is 1/δ'.

    As 1 − e^−x ≥ x/(1 + x), most exponentials need not be computed.
    """
    p = known
    for j in range(TERMS):
        x = (confidence - LOG_WEIGHTS[j] + AVERAGE_ETAS[j] * total) / pulls
        if not x > NEARLY * p * FACTORS[j] * (1.0 + x):
            p = min(p, -math.expm1(-x) / FACTORS[j])
    return p


@kernel
def find_lower_start(pulls: float, total: float, confidence: float, known: float) -> float:
    """Return the largest of `known` and the points at which one term alone is 1/δ'."""
    p = known
    for j in range(TERMS):
        eta, rise = -AVERAGE_ETAS[TERMS + j], -FACTORS[TERMS + j]
        x = (eta * total + LOG_WEIGHTS[j] - confidence) / pulls
        if not x <= 0.0:
            p = max(p, math.expm1(x) / rise)
    return p


@kernel
def compute_average_upper(pulls: float, total: float, confidence: float) -> float:
    """Return U(S, n); `confidence` is log 1/δ'."""
    if not pulls > 0.0:
        return 1.0
    p = refine(0, pulls, total, confidence, find_upper_start(pulls, total, confidence, 1.0), True)
    return min(max(p, total / pulls), 1.0)


@kernel
def compute_average_lower(pulls: float, total: float, confidence: float) -> float:
    """Return L(S, n); `confidence` is log 1/δ'."""
    if not (pulls > 0.0 and total > 0.0):
        return 0.0
    p = refine(TERMS, pulls, total, confidence, find_lower_start(pulls, total, confidence, 0.0), True)
    return max(min(p, total / pulls), 0.0)


@kernel
def lower_to_average_upper(pulls: float, total: float, confidence: float, known: float) -> float:
    """Return the smaller of `known` and U(S, n); much cheaper than U where `known` is smaller.

    No term is above 1/δ' at the start, so none overflows, and Newton's method ends at once where the sum is below 1/δ'.
    """
    start = find_upper_start(pulls, total, confidence, known)
    return min(max(refine(0, pulls, total, confidence, start, False), total / pulls), known)


@kernel
def raise_to_average_lower(pulls: float, total: float, confidence: float, known: float) -> float:
    """Return the larger of `known` and L(S, n), as `lower_to_average_upper` does."""
    if not total > 0.0:
        return known
    start = find_lower_start(pulls, total, confidence, known)
    return max(min(refine(TERMS, pulls, total, confidence, start, False), total / pulls), known)


@kernel
def compute_average_interval(pulls: float, mean: float, low: float, high: float) -> Interval:
    """Return both bounds from the mean of the outcomes; `low` and `high` are log 1/δ' of each."""
    total = pulls * min(max(mean, 0.0), 1.0)
    return Interval(compute_average_lower(pulls, total, low), compute_average_upper(pulls, total, high))
