"""Where runs lie: the middle one, and the ends between which a share of what comes will lie."""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats

LEVEL = 0.9


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


def band(values: Floats, level: float = LEVEL) -> Band:
    """Return the band of runs (runs, …): one run more would lie within it with this probability.

    The ends are order statistics at (n + 1) p (Weibull): with few runs they lie further out than the usual quantiles.

    >>> [float(end) for end in band(np.arange(1.0, 20.0))]
    [1.0, 10.0, 19.0]
    """
    tail = 0.5 * (1.0 - level)
    low, middle, high = np.quantile(values, [tail, 0.5, 1.0 - tail], axis=0, method="weibull")
    return Band(low, middle, high)
