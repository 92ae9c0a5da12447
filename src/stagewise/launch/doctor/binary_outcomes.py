"""Outcomes as events that happen or do not, for permutation tests."""

import numpy as np

from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.launch.doctor.permutation_tests import Flags


def is_binary(profile: LogProfile, signal: int) -> bool:
    """Say whether a signal has at most two values in this log."""
    values = profile.values[:, signal][profile.observed(signal)]
    return values.size == 0 or bool(((values == values.min()) | (values == values.max())).all())


def find_events(profile: LogProfile, signal: int) -> Flags:
    """Return the rows (n,) with the higher of two outcomes, or with one above the median."""
    with np.errstate(invalid="ignore"):
        return np.asarray(profile.observed(signal) & (profile.values[:, signal] > get_event_threshold(profile, signal)))


def get_event_threshold(profile: LogProfile, signal: int) -> float:
    """Return the threshold of an event: the lower of two outcomes, or the median."""
    values = profile.values[:, signal][profile.observed(signal)]
    if not values.size:
        return profile.ends(signal)[0]
    return float(values.min() if is_binary(profile, signal) else np.median(values))
