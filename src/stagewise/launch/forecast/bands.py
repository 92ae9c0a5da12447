"""Where runs lie: the middle one, and the ends between which what comes will lie."""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import betainc  # type: ignore[import-untyped]

from stagewise.kernels.compile import Floats

LEVEL = 0.9
SURE = 0.9  # that a band holds LEVEL, whichever runs were drawn


class Band(NamedTuple):
    """Numbers by day, or single ones (shape () then)."""

    low: Floats
    middle: Floats
    high: Floats

    def plain(self) -> dict[str, object]:
        """Return plain values."""
        return {name: np.round(value, 10).tolist() for name, value in self._asdict().items()}

    def holds(self, value: Floats) -> Floats:
        """Say where a value lies in the band."""
        return np.asarray((self.low <= value) & (value <= self.high))


@cache
def tail(runs: int) -> float:
    """Return the share of runs below a band, and above it: so small that the band holds LEVEL for SURE.

    Between the i-th and the j-th of n runs lies a share of all there could be that has the distribution Beta(j − i,
    n + 1 − j + i) (Wilks 1941). Few runs leave their ends uncertain, and the band goes further out: of 100 runs 3 are
    beyond each end, of 1,000 about 44. Of 38 it is as wide as all of them, and fewer do not hold so much.

    >>> [round(tail(runs), 4) for runs in (38, 100, 1000)]
    [0.0256, 0.0297, 0.044]
    """
    between = next((r for r in range(1, runs) if betainc(r, runs + 1 - r, LEVEL) <= 1.0 - SURE), runs - 1)
    return 0.5 * (runs + 1 - between) / (runs + 1)


def band(values: Floats) -> Band:
    """Return the band of runs (runs, …).

    >>> [float(end) for end in band(np.arange(1.0, 20.0))]
    [1.0, 10.0, 19.0]
    """
    outside = tail(len(values))
    low, middle, high = np.quantile(values, [outside, 0.5, 1.0 - outside], axis=0, method="weibull")
    return Band(low, middle, high)
