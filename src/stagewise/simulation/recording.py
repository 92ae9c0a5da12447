"""Which rounds are recorded, and an empty record of a run."""

import numpy as np

from stagewise.engine.compile import Ints
from stagewise.engine.trace import Trace, audit_size, running_size


def compute_recorded_rounds(rounds: int, points: int) -> Ints:
    """Return the rounds (counted from 1) that close the intervals: evenly spaced, the last round among them.

    >>> compute_recorded_rounds(10, 4)
    array([ 2,  5,  7, 10])
    """
    count = min(rounds, points)
    return np.arange(1, count + 1, dtype=np.int64) * rounds // count


def empty_trace(ends: Ints, costs: int, audited: bool = False, runs: tuple[int, ...] = ()) -> Trace:
    """Return the record of a run that has not begun; with `runs`, of so many, on a first axis more."""
    points = (*runs, ends.size)
    return Trace(
        ends,
        np.zeros(points),
        np.zeros(points),
        np.zeros((*points, costs)),
        np.zeros(points),
        np.full((*runs, costs), -np.inf),
        np.zeros((*runs, running_size(costs))),
        np.zeros((*runs, audit_size(costs) if audited else 0), dtype=np.int64),
    )
