"""Confidence interval for a rate that is likely near its limit, each end with its own δ.

The mixture in `interval` covers all rates evenly; this one puts most weight near the reference rate e:

    q ~ w Beta(½, ½) + (1 − w) Beta(a, a/e − a)

It spends little on rates far above the limit, and the first part keeps it from ever being much wider than the other
interval (docs/theory/arms.md).
"""

import math

from stagewise.kernels.compile import kernel
from stagewise.kernels.models.interval import Interval, compute_upper_end, log_mixture

SHAPE = 1.0  # a
REST = 0.1  # w
LOG_REST, LOG_NEAR = math.log(REST), math.log1p(-REST)


@kernel
def log_beta(a: float, b: float) -> float:
    """Return log B(a, b)."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@kernel
def log_weighted_mixture(ones: float, zeros: float, reference_rate: float) -> float:
    """Return the log-likelihood of S in n under the mixture."""
    others = SHAPE / reference_rate - SHAPE
    near = LOG_NEAR + log_beta(ones + SHAPE, zeros + others) - log_beta(SHAPE, others)
    rest = LOG_REST + log_mixture(ones, zeros)
    return max(near, rest) + math.log1p(math.exp(-abs(near - rest)))


@kernel
def compute_rate_interval(pulls: float, mean: float, reference_rate: float, low: float, high: float) -> Interval:
    """Return the ends of p; `low` and `high` are log 1/δ' of either end."""
    mean = min(max(mean, 0.0), 1.0)
    mixture = log_weighted_mixture(pulls * mean, pulls * (1.0 - mean), reference_rate)
    return Interval(
        1.0 - compute_upper_end(pulls, 1.0 - mean, low - mixture), compute_upper_end(pulls, mean, high - mixture)
    )
