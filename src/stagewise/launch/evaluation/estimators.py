"""What a candidate would have earned, from weighted outcomes: each estimator in a line, and its terms one a row.

`weights` (n,) are π(aₜ|xₜ) / pₜ(aₜ|xₜ), `outcomes` (n,) what came of it, `done` (n,) the outcome that a regression
expected of what was done, `expected` (n,) what it expects of the candidate: Σₐ π(a|xₜ) q(xₜ, a).
"""

import numpy as np

from stagewise.kernels.compile import Floats


def ips_terms(weights: Floats, outcomes: Floats) -> Floats:
    """Return wₜ yₜ, each with the candidate's value as its mean (Horvitz and Thompson 1952).

    >>> ips_terms(np.array([2.0, 0.0]), np.array([0.5, 1.0])).tolist()
    [1.0, 0.0]
    """
    return weights * outcomes


def dr_terms(weights: Floats, outcomes: Floats, done: Floats, expected: Floats) -> Floats:
    """Return Σₐ π(a|xₜ) q(xₜ, a) + wₜ (yₜ − q(xₜ, aₜ)): the same mean, whatever q (Dudík, Langford and Li 2011)."""
    return expected + weights * (outcomes - done)


def snips(weights: Floats, outcomes: Floats) -> float:
    """Return the self-normalised estimate Σ w y / Σ w; NaN where no weight is above 0.

    >>> snips(np.array([2.0, 0.0]), np.array([0.25, 1.0]))
    0.25
    """
    total = float(weights.sum())
    return float(ips_terms(weights, outcomes).sum()) / total if total > 0.0 else float("nan")


def snips_deviation(weights: Floats, outcomes: Floats) -> float:
    """Return its standard deviation by the delta method, √(Σ w² (y − v)²) / Σ w: for large logs, not for all times."""
    left = weights * (outcomes - snips(weights, outcomes))
    total = float(weights.sum())
    return float(np.sqrt((left**2).sum())) / total if total > 0.0 else float("nan")


def deviation(terms: Floats) -> float:
    """Return the standard deviation of the mean of terms: for large logs that were not adapted to what was seen."""
    return float(terms.std(ddof=1) / np.sqrt(terms.size)) if terms.size > 1 else float("nan")


def effective_size(weights: Floats) -> float:
    """Return (Σ w)² / Σ w²: how many rows of the candidate's own the log is worth (Kish 1965).

    >>> effective_size(np.array([2.0, 0.0, 2.0]))
    2.0
    """
    squares = float((weights**2).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0.0 else 0.0
