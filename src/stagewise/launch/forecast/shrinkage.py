"""Shrinkage: a common prior of all actions, drawn from its posterior given the log.

The best looking of several actions was partly lucky, and a policy plays that one: each estimate is unbiased, but the
played action falls short of its own. So actions are draws around a common centre μ with standard deviation τ:

    θ_a ~ N(μ, τ²),    τ² + s² = Σ (θ̂_a − θ̄)²/χ²,    μ ~ N(θ̄, (τ² + s²)/A)

for A actions with rows, χ² of A − 1 degrees, and s² the mean of their own variances. τ is drawn for every run, since
few actions determine it poorly: some runs shrink hardly, others nearly to one point.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv  # type: ignore[import-untyped]

from stagewise.engine.compile import Floats

MIN_ACTIONS = 2  # to compare
MIN_VARIANCE = 1e-10


class CommonPrior(NamedTuple):
    """The common prior of all actions."""

    centre: Floats  # μ
    variance: Floats  # τ², at most the widest


def draw_common_prior(
    fits: Floats, variances: Floats, widest: Floats, uniforms: Floats, deviates: Floats
) -> CommonPrior | None:
    """Return a draw of the prior (d,) given fits and variances (A, d); None: there are too few actions.

    `uniforms` and `deviates` are uniform and normal variates, (d,) each. NaN fits are ignored.
    """
    if len(fits) < MIN_ACTIONS:
        return None
    is_known = ~np.isnan(fits)
    counts = is_known.sum(axis=0)
    each = np.maximum(counts, 1)
    mean = np.where(is_known, fits, 0.0).sum(axis=0) / each
    mean_variance = np.where(is_known, variances, 0.0).sum(axis=0) / each
    squares = np.where(is_known, np.square(fits - mean), 0.0).sum(axis=0)
    total = squares / np.maximum(2.0 * gammaincinv(0.5 * np.maximum(counts - 1, 1), uniforms), MIN_VARIANCE)
    variance = np.where(counts < MIN_ACTIONS, widest, np.clip(total - mean_variance, MIN_VARIANCE, widest))
    return CommonPrior(mean + deviates * np.sqrt((variance + mean_variance) / each), variance)
