"""The logged probabilities of all actions."""

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.launch.doctor.log_profile import LogProfile


def get_action_probabilities(profile: LogProfile) -> Floats | None:
    """Return the probabilities (n, K) of all actions: as logged, or from propensities if each action has only one.

    None if they are not known.
    """
    log, count = profile.log, len(profile.log.problem.actions)
    if log.probabilities is not None:
        return log.probabilities
    if log.propensities is None:
        return None
    each = np.full(count, np.nan)
    for action in range(count):
        values = log.propensities[log.actions == action]
        if not values.size or values.min() != values.max():  # also if one is NaN
            return None
        each[action] = values[0]
    if not abs(each.sum() - 1.0) <= 1e-3 * count:
        return None
    return np.tile(each, (log.rows, 1))
