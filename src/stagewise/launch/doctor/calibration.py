"""Calibration: predictions from one half of a log against the outcomes of the other half, by decile."""

from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.launch.doctor.linear_fits import LinearFits, compute_cell_rates
from stagewise.launch.doctor.log_profile import KL_INTERVAL, LogProfile

GROUP_COUNT = 10
INTERVAL_NATS = 3.0  # log of 1/level: about 95 %


class Deciles(NamedTuple):
    """Rows by decile of their prediction: predicted and observed means, scaled to [0, 1], with intervals."""

    rows: Ints
    prediction: Floats
    observed: Floats
    low: Floats
    high: Floats


def assign_deciles(values: Floats) -> Ints:
    """Return the decile (n,) of every value, the lowest first."""
    cuts = np.quantile(values, np.linspace(0.0, 1.0, GROUP_COUNT + 1)[1:-1])
    return np.asarray(np.searchsorted(cuts, values, side="right"))


def compute_deciles(profile: LogProfile, signal: int) -> Deciles | None:
    """Return the deciles of one signal on the half that was not fitted; None if there are too few rows.

    Users are ordered by a linear fit, also if the problem has one rate per action: if that is right, outcomes follow
    the rates in every decile.
    """
    fits, half = LinearFits(profile, signal), profile.half
    order = fits.predict(half, ~half)
    linear = profile.log.problem.choices[profile.names[signal]].model == "linear"
    means = order if linear else compute_cell_rates(profile, signal, half)
    rows = np.isfinite(order) & np.isfinite(means)
    if rows.sum() < 10 * GROUP_COUNT:
        return None
    groups, outcomes = assign_deciles(order[rows]), fits.outcomes[rows]
    count = np.bincount(groups, minlength=GROUP_COUNT)
    predicted, observed = (
        np.bincount(groups, each, minlength=GROUP_COUNT) / np.maximum(count, 1) for each in (means[rows], outcomes)
    )
    ends = np.array(
        [KL_INTERVAL(float(max(n, 1)), float(mean), INTERVAL_NATS) for n, mean in zip(count, observed, strict=True)]
    )
    return Deciles(count, predicted, observed, ends[:, 0], ends[:, 1])
