"""Interval for the mean of outcomes in [0, 1] on a ray, narrow where outcomes are rare (docs/theory/caps.md).

A play at step s from an action of mean c₀ has mean (1−s) c₀ + s p. Over the plays of one ray let A = Σ s, B = Σ (1−s)
and N = Σ y. For y in [0, 1] of mean m and every η,

    E exp(−η y + (1 − e^−η) m) ≤ 1,    so that at all times    (1 − e^−η)(c₀ B + p A) ≤ η N + log 1/δ

and likewise (e^η − 1)(c₀ B + p A) ≥ η N − log 1/δ. The tightest η of a list is used; they share δ. Information grows
with Σ s, not with Σ s², so small steps count too.
"""

import math
from typing import NamedTuple

from stagewise.kernels.compile import kernel

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
