"""Tie rule: values within a billionth of the best are equal, and the lowest index wins.

First rounds are exact ties, because unplayed actions share their bounds; without a rule, rounding would decide.
"""

import math

from stagewise.kernels.compile import Floats, kernel

TIE = 1e-9


@kernel
def tie_floor(best: float) -> float:
    """Return the smallest value that still ties with the best: best − TIE · |best|."""
    return best - TIE * abs(best)


@kernel
def first_best(values: Floats) -> int:
    """Return the lowest index whose value ties with the largest, or -1 when no value is above −∞."""
    best = -math.inf
    for index in range(values.size):
        best = max(best, values[index])
    if best == -math.inf:
        return -1
    floor = tie_floor(best)
    for index in range(values.size):
        if values[index] >= floor:
            return index
    return -1
