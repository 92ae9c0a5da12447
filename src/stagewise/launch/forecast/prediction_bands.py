"""Prediction bands over runs: median, and ends that contain 90 % of outcomes (tolerance limits)."""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import betainc  # type: ignore[import-untyped]

from stagewise.engine.compile import Floats

LEVEL = 0.9
CONFIDENCE = 0.9  # that a band contains LEVEL of all runs


class Band(NamedTuple):
    """A band by day, or a single one of shape ()."""

    low: Floats
    middle: Floats
    high: Floats

    def to_dict(self) -> dict[str, object]:
        """Return the band as JSON values."""
        return {name: np.round(value, 10).tolist() for name, value in self._asdict().items()}

    def contains(self, value: Floats) -> Floats:
        """Say where a value is in the band."""
        return np.asarray((self.low <= value) & (value <= self.high))


@cache
def compute_tail_share(runs: int) -> float:
    """Return the share of runs below a band, and above it, so that it contains LEVEL with CONFIDENCE.

    The share of all possible runs between the i-th and the j-th of n runs has the distribution Beta(j − i,
    n + 1 − j + i) (Wilks 1941). With few runs the band is wider: of 100 runs 3 are beyond each end, of 1,000 about 44.
    With 38 it contains all of them, and fewer are not enough.

    >>> [round(compute_tail_share(runs), 4) for runs in (38, 100, 1000)]
    [0.0256, 0.0297, 0.044]
    """
    between = next((r for r in range(1, runs) if betainc(r, runs + 1 - r, LEVEL) <= 1.0 - CONFIDENCE), runs - 1)
    return 0.5 * (runs + 1 - between) / (runs + 1)


def compute_band(values: Floats) -> Band:
    """Return the band of runs (runs, …).

    >>> [float(end) for end in compute_band(np.arange(1.0, 20.0))]
    [1.0, 10.0, 19.0]
    """
    outside = compute_tail_share(len(values))
    low, middle, high = np.quantile(values, [outside, 0.5, 1.0 - outside], axis=0, method="weibull")
    return Band(low, middle, high)
