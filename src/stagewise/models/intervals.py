"""Confidence intervals for the mean of numbers in [0, 1], valid for all numbers of observations at once.

Interval for the mean of outcomes in [0, 1] on a ray, narrow where outcomes are rare (docs/theory/caps.md).

A play at step s from an action of mean c₀ has mean (1−s) c₀ + s p. Over the plays of one ray let A = Σ s, B = Σ (1−s)
and N = Σ y. For y in [0, 1] of mean m and every η,

    E exp(−η y + (1 − e^−η) m) ≤ 1,    so that at all times    (1 − e^−η)(c₀ B + p A) ≤ η N + log 1/δ

and likewise (e^η − 1)(c₀ B + p A) ≥ η N − log 1/δ. The tightest η of a list is used; they share δ. Information grows
with Σ s, not with Σ s², so small steps count too.
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
