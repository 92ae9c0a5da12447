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
    values, rows = chart.values[:, signal], chart.seen(signal)
    if not rows.any():
        return np.zeros(values.size, dtype=bool)
    bar = values[rows].min() if two_valued(chart, signal) else float(np.median(values[rows]))
    with np.errstate(invalid="ignore"):
        return np.asarray(rows & (values > bar))
