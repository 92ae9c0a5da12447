"""Whether what was declared and what was logged are in the same units: 2 where .02 is meant, shares and percentages."""

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.launch.doctor.chart import Chart, threshold_of
from stagewise.launch.doctor.finding import Finding, gravest, said

HUNDRED = 50.0  # a range at least so long is one of percentages, or of something else than shares
FEWEST = 100  # rows that show what values there are
PART = 0.05  # of its declared range that a column should at least use


def check(chart: Chart, alpha: float) -> Finding:
    """Find outcomes of 0 and 1 that are declared up to 100, and numbers that use next to nothing of their range."""
    log, found = chart.log, []
    for place, name in enumerate(chart.names):
        low, high = chart.ends(place)
        values = chart.values[:, place][chart.seen(place)]
        if values.size >= FEWEST and high - low >= HUNDRED and is_coin(values):
            found.append(in_percent(chart, name, high))
    for place, (name, (low, high)) in enumerate(log.problem.ranges):
        values = log.numbers[:, place]
        values = values[(values >= low) & (values <= high)]
        found += narrow(values, name, low, high) if values.size >= FEWEST else []
    return gravest("units", found, "limits, ranges and values agree in their units")


def is_coin(values: Floats) -> bool:
    """Say whether values are 0 and 1, and both occur."""
    return bool(np.isin(values, (0.0, 1.0)).all() and values.min() < values.max())


def in_percent(chart: Chart, name: str, high: float) -> Finding:
    """Return what is wrong with a signal of 0 and 1 that is declared as if it were a percentage."""
    limit = chart.log.problem.limits.get(name)
    words = f"every {name!r} of the log is 0 or 1, and it is declared up to {said(high)}"
    if limit is not None:
        value, _ = threshold_of(limit)
        words += f" with a limit of {said(value)}, which no rate of them can reach" if value >= 1.0 else ""
    return Finding("units", "contradicts", words, "declare shares: high = 1, and two percent are 0.02")


def narrow(values: Floats, name: str, low: float, high: float) -> list[Finding]:
    """Return what is strange with a number that hardly uses its range."""
    used = float(values.max() - values.min()) / (high - low)
    if used >= PART or values.max() == values.min():
        return []
    ends = f"[{said(float(values.min()))}, {said(float(values.max()))}]"
    words = f"{name!r} lies in {ends} and is declared in [{said(low)}, {said(high)}], of which that is {used:.1%}"
    shares = low >= 0.0 and high >= HUNDRED and values.min() >= 0.0 and values.max() <= 1.0
    if shares and not np.isin(values, (0.0, 1.0)).all():
        return [Finding("units", "contradicts", words, "they look like shares and the range like percentages")]
    return [Finding("units", "note", words, "a tighter range learns sooner, where no user lies outside it")]
