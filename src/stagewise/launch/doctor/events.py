"""Outcomes as something that happens or does not: what tests of order look at."""

import numpy as np

from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.exchange import Flags


def two_valued(chart: Chart, signal: int) -> bool:
    """Say whether a signal has at most two values in this log."""
    values = chart.values[:, signal][chart.seen(signal)]
    return values.size == 0 or bool(((values == values.min()) | (values == values.max())).all())


def events(chart: Chart, signal: int) -> Flags:
    """Return the rows (n,) with the higher of two outcomes, or with one above the middle of all."""
    with np.errstate(invalid="ignore"):
        return np.asarray(chart.seen(signal) & (chart.values[:, signal] > bar_of(chart, signal)))


def bar_of(chart: Chart, signal: int) -> float:
    """Return what an event lies above: the lower of two outcomes, or the middle of all."""
    values = chart.values[:, signal][chart.seen(signal)]
    if not values.size:
        return chart.ends(signal)[0]
    return float(values.min() if two_valued(chart, signal) else np.median(values))
