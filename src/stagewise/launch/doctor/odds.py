"""How likely every action was, as a log tells it."""

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.launch.doctor.chart import Chart


def odds(chart: Chart) -> Floats | None:
    """Return the chances (n, K) of all actions: as logged, or of what was done alone where every action has just one.

    None where that cannot be told.
    """
    log, count = chart.log, len(chart.log.problem.actions)
    if log.probabilities is not None:
        return log.probabilities
    if log.propensities is None:
        return None
    each = np.full(count, np.nan)
    for action in range(count):
        values = log.propensities[log.actions == action]
        if not values.size or values.min() != values.max():  # also where one is NaN
            return None
        each[action] = values[0]
    if not abs(each.sum() - 1.0) <= 1e-3 * count:
        return None
    return np.tile(each, (log.rows, 1))
