"""The estimators, one line each: the value of a candidate from weighted outcomes.

`weights` (n,) are π(aₜ|xₜ) / pₜ(aₜ|xₜ), `outcomes` (n,) the outcomes, `logged` (n,) the prediction for the action
taken, `expected` (n,) the prediction for the candidate, Σₐ π(a|xₜ) q(xₜ, a).
"""

import numpy as np

from stagewise.engine.compile import Floats


def ips_terms(weights: Floats, outcomes: Floats) -> Floats:
    """Return wₜ yₜ, each with the candidate's value as its mean (Horvitz and Thompson 1952).

    >>> ips_terms(np.array([2.0, 0.0]), np.array([0.5, 1.0])).tolist()
    [1.0, 0.0]
    """
    return weights * outcomes


def dr_terms(weights: Floats, outcomes: Floats, logged: Floats, expected: Floats) -> Floats:
    """Return Σₐ π(a|xₜ) q(xₜ, a) + wₜ (yₜ − q(xₜ, aₜ)): the same mean, for any q (Dudík, Langford and Li 2011)."""
    return expected + weights * (outcomes - logged)


def snips(weights: Floats, outcomes: Floats) -> float:
    """Return the self-normalised estimate Σ w y / Σ w; NaN if no weight is above 0.

    >>> snips(np.array([2.0, 0.0]), np.array([0.25, 1.0]))
    0.25
    """
    total = float(weights.sum())
    return float(ips_terms(weights, outcomes).sum()) / total if total > 0.0 else float("nan")


def snips_standard_error(weights: Floats, outcomes: Floats) -> float:
    """Return its standard error by the delta method, √(Σ w² (y − v)²) / Σ w, for large logs."""
    residuals = weights * (outcomes - snips(weights, outcomes))
    total = float(weights.sum())
    return float(np.sqrt((residuals**2).sum())) / total if total > 0.0 else float("nan")


def standard_error(terms: Floats) -> float:
    """Return the standard error of the mean of terms, for large logs of a policy that did not adapt."""
    return float(terms.std(ddof=1) / np.sqrt(terms.size)) if terms.size > 1 else float("nan")


def effective_sample_size(weights: Floats) -> float:
    """Return (Σ w)² / Σ w² (Kish 1965).

    >>> effective_sample_size(np.array([2.0, 0.0, 2.0]))
    2.0
    """
    squares = float((weights**2).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0.0 else 0.0
