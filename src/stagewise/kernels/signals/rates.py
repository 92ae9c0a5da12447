"""Ends for a rate that is expected to be about as large as its limit, each end with a δ of its own.

The mixture of coins of `interval` is of all kinds of coins; this one is mostly of those near the limit:

    q ~ w Beta(½, ½) + (1 − w) Beta(a, a/e − a),    e = the rate that is expected

It need not pay for coins far above the limit, and the part that is left keeps it from ever being much wider than the
other (docs/theory/arms.md).
"""

import math

from stagewise.kernels.compile import kernel
from stagewise.kernels.signals.interval import Interval, end_above, log_mixture

SHAPE = 1.0  # a
REST = 0.1  # w
LOG_REST, LOG_NEAR = math.log(REST), math.log1p(-REST)


@kernel
def log_beta(a: float, b: float) -> float:
    """Return log B(a, b)."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@kernel
def expecting(ones: float, zeros: float, expected: float) -> float:
    """Return the logarithm of how likely the mixture makes S in n."""
    others = SHAPE / expected - SHAPE
    near = LOG_NEAR + log_beta(ones + SHAPE, zeros + others) - log_beta(SHAPE, others)
    rest = LOG_REST + log_mixture(ones, zeros)
    return max(near, rest) + math.log1p(math.exp(-abs(near - rest)))


@kernel
def rate_ends(pulls: float, mean: float, expected: float, low: float, high: float) -> Interval:
    """Return the ends of p; `low` and `high` are log 1/δ' of either end."""
    mean = min(max(mean, 0.0), 1.0)
    mixture = expecting(pulls * mean, pulls * (1.0 - mean), expected)
    return Interval(1.0 - end_above(pulls, 1.0 - mean, low - mixture), end_above(pulls, mean, high - mixture))
