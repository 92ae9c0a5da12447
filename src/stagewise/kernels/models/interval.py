"""Confidence intervals for the mean of numbers in [0, 1], valid for all numbers of observations at once."""

import math
from typing import NamedTuple

from stagewise.kernels.compile import kernel

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


@kernel
def compute_bernstein_interval(pulls: float, mean: float, squares: float, confidence: float) -> Interval:
    """Return m ± (√(2V ℓ/n) + 7ℓ/3(n−1)), ℓ = log(4n(n+1)/δ')        (Maurer, Pontil 2009, Theorem 4).

    `squares` is (n−1)V. Each side takes δ'/2n(n+1), and Σ 1/n(n+1) = 1: both sides, and all n at once.
    """
    if pulls < 2.0:
        return Interval(0.0, 1.0)
    spent = confidence + math.log(4.0 * pulls * (pulls + 1.0))
    variance = squares / (pulls - 1.0)
    half = math.sqrt(2.0 * variance * spent / pulls) + 7.0 * spent / (3.0 * (pulls - 1.0))
    return Interval(max(mean - half, 0.0), min(mean + half, 1.0))
