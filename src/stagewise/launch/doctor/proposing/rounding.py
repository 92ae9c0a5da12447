"""Propose ranges: the observed range, rounded outward to round numbers."""

import math

import numpy as np

from stagewise.engine.compile import Floats

PADDING = 0.05  # of the observed range, on either side, for users who are not in the log


def propose_range(values: Floats) -> tuple[float, float]:
    """Return a range for a number about users: [0, 1] for fractions, others with some padding, rounded outward.

    >>> [propose_range(np.array(ends)) for ends in ([19.0, 92.0], [0.1, 0.9], [-3.0, 4400.0])]
    [(15.0, 100.0), (0.0, 1.0), (-400.0, 4800.0)]
    """
    known = values[np.isfinite(values)]
    low, high = float(known.min()), float(known.max())
    if low >= 0.0 and high <= 1.0:
        return 0.0, 1.0
    if low >= -1.0 and high <= 1.0:
        return -1.0, 1.0
    room = PADDING * (high - low)
    step = choose_step(high - low + 2.0 * room)
    bottom, top = step * math.floor((low - room) / step), step * math.ceil((high + room) / step)
    return (0.0 if low >= 0.0 > bottom else clean_digits(bottom)), clean_digits(top)


def clean_digits(value: float) -> float:
    """Return a number without rounding noise: three times .1 is .3."""
    return float(f"{value:.12g}") + 0.0


def choose_step(span: float) -> float:
    """Return 1, 2 or 5 times a power of ten, so that a span has ten to twenty-five steps.

    >>> choose_step(97.0), choose_step(0.3)
    (5.0, 0.02)
    """
    power = 10.0 ** math.floor(math.log10(max(span, 1e-300) / 10.0))
    return next(power * step for step in (1.0, 2.0, 5.0, 10.0) if span <= 25.0 * power * step)


def round_up(value: float, digits: int = 2) -> float:
    """Return a number rounded up to some digits.

    >>> round_up(0.01234), round_up(0.0999)
    (0.013, 0.1)
    """
    if not value > 0.0:
        return 0.0
    power = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return float(f"{math.ceil(value / power - 1e-9) * power:.{digits}g}")
