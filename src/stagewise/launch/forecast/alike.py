"""How far actions lie from each other, drawn from what the log shows of it.

Of several actions the one that looks best was partly lucky, and a policy plays that one: taken by itself each estimate
is fair, and what is played still falls short of it. So actions are taken to be draws around a common centre μ, as far
apart as τ:

    θ_a ~ N(μ, τ²),    τ² + s² = Σ (θ̂_a − θ̄)²/χ²,    μ ~ N(θ̄, (τ² + s²)/A)

for A actions with rows, χ² of A − 1 degrees, and s² the mean of their own variances. τ is drawn for every run, since
few actions tell little of it: in some runs actions are hardly drawn together, in others nearly to one point.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv  # type: ignore[import-untyped]

from stagewise.kernels.compile import Floats

FEWEST = 2  # actions that can be compared
LEAST = 1e-10


class Common(NamedTuple):
    """What actions have in common."""

    centre: Floats  # μ
    spread: Floats  # τ², at most the widest


def drawn_together(fits: Floats, variances: Floats, widest: Floats, chances: Floats, deviates: Floats) -> Common | None:
    """Return a draw of centre and spread (d,), of fits and variances (A, d); None: there are too few to compare.

    `chances` are uniform and `deviates` normal, (d,) each. A fit that is NaN takes no part.
    """
    if len(fits) < FEWEST:
        return None
    told = ~np.isnan(fits)
    counts = told.sum(axis=0)
    each = np.maximum(counts, 1)
    middle = np.where(told, fits, 0.0).sum(axis=0) / each
    own = np.where(told, variances, 0.0).sum(axis=0) / each
    apart = np.where(told, np.square(fits - middle), 0.0).sum(axis=0)
    total = apart / np.maximum(2.0 * gammaincinv(0.5 * np.maximum(counts - 1, 1), chances), LEAST)
    spread = np.where(counts < FEWEST, widest, np.clip(total - own, LEAST, widest))
    return Common(middle + deviates * np.sqrt((spread + own) / each), spread)
