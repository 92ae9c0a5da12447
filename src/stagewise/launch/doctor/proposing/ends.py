"""Ranges from what was seen, rounded outward to numbers that people would write."""

import math

import numpy as np

from stagewise.kernels.compile import Floats

ROOM = 0.05  # of what was seen, on either side: users of whom the log has none


def range_of(values: Floats) -> tuple[float, float]:
    """Return a range for a number about users: shares in [0, 1], others with some room, rounded outward.

    >>> range_of(np.array([19.0, 92.0])), range_of(np.array([0.1, 0.9])), range_of(np.array([-3.0, 4400.0]))
    ((15.0, 100.0), (0.0, 1.0), (-400.0, 4800.0))
    """
    there = values[np.isfinite(values)]
    low, high = float(there.min()), float(there.max())
    if low >= 0.0 and high <= 1.0:
        return 0.0, 1.0
    if low >= -1.0 and high <= 1.0:
        return -1.0, 1.0
    room = ROOM * (high - low)
    step = step_of(high - low + 2.0 * room)
    least, most = step * math.floor((low - room) / step), step * math.ceil((high + room) / step)
    return (0.0 if low >= 0.0 > least else written(least)), written(most)


def written(value: float) -> float:
    """Return a number as a few digits write it: three times .1 is .3."""
    return float(f"{value:.12g}") + 0.0


def step_of(span: float) -> float:
    """Return 1, 2 or 5 times a power of ten, of which a span has ten to twenty-five.

    >>> step_of(97.0), step_of(0.3)
    (5.0, 0.02)
    """
    power = 10.0 ** math.floor(math.log10(max(span, 1e-300) / 10.0))
    return next(power * step for step in (1.0, 2.0, 5.0, 10.0) if span <= 25.0 * power * step)


def up(value: float, digits: int = 2) -> float:
    """Return a number rounded up to so many digits.

    >>> up(0.01234), up(0.0999)
    (0.013, 0.1)
    """
    if not value > 0.0:
        return 0.0
    power = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return float(f"{math.ceil(value / power - 1e-9) * power:.{digits}g}")
