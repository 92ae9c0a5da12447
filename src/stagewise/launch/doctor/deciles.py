"""Calibration: what one half of a log foretells of the other half's outcomes, decile by decile."""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.launch.doctor.chart import INTERVAL, Chart
from stagewise.launch.doctor.fits import Fits, rates

GROUPS = 10
DRAWN = 3.0  # nats: intervals of a picture, of 95 % each


class Deciles(NamedTuple):
    """Rows in ten groups of what is foretold of them: foretold and seen means, scaled to [0, 1], and their interval."""

    rows: Ints
    foretold: Floats
    seen: Floats
    low: Floats
    high: Floats


def grouped(values: Floats) -> Ints:
    """Return in which of ten groups (n,) of like size every value lies, the lowest first."""
    cuts = np.quantile(values, np.linspace(0.0, 1.0, GROUPS + 1)[1:-1])
    return np.asarray(np.searchsorted(cuts, values, side="right"))


def deciles(chart: Chart, signal: int) -> Deciles | None:
    """Return the deciles of one signal on the half that nothing was fitted to; None where there is too little.

    Users are ordered by a linear fit, also where the problem has one rate for each action: if that is right, what is
    seen follows the rates in every decile all the same.
    """
    fits, half = Fits(chart, signal), chart.half
    order = fits.predicted(half, ~half)
    linear = chart.log.problem.choices[chart.names[signal]].model == "linear"
    means = order if linear else rates(chart, signal, half)
    rows = np.isfinite(order) & np.isfinite(means)
    if rows.sum() < 10 * GROUPS:
        return None
    groups, outcomes = grouped(order[rows]), fits.outcomes[rows]
    count = np.bincount(groups, minlength=GROUPS)
    foretold, seen = (
        np.bincount(groups, each, minlength=GROUPS) / np.maximum(count, 1) for each in (means[rows], outcomes)
    )
    ends = np.array([INTERVAL(float(max(n, 1)), float(mean), DRAWN) for n, mean in zip(count, seen, strict=True)])
    return Deciles(count, foretold, seen, ends[:, 0], ends[:, 1])
