"""Whether what was declared and what was logged are in the same units: 2 where .02 is meant, shares and percentages."""

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.launch.doctor.chart import Chart, threshold_of
from stagewise.launch.doctor.finding import Finding, gravest, said

HUNDRED = 50.0  # a range at least so long is one of percentages, or of something else than shares
FEWEST = 100  # rows that show what values there are
PART = 0.05  # of its declared range that a column should at least use
FULL = 0.25  # of another's declared range that it would use, were the two swapped
CUT = 0.1  # of a column that lies at one end of its range, where it was cut off or is another's
LATEST = 1e11  # seconds since 1970: in the year 5138
SCALES = {1e3: "milliseconds", 1e6: "microseconds", 1e9: "nanoseconds"}


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
        found += narrow(values, name, low, high, swapped_with(chart, place)) if values.size >= FEWEST else []
    found += late(log.at) if log.at is not None else []
    return gravest("units", found, "limits, ranges, times and values agree in their units")


def late(at: Floats) -> list[Finding]:
    """Return what is wrong with times that are no seconds since 1970."""
    far = at[np.abs(at) > LATEST]  # false for NaN
    if not far.size:
        return []
    times = next((times for times in SCALES if np.abs(far).max() / times <= LATEST), None)
    words = (
        f"{far.size:,} of {at.size:,} times are {said(float(far[0]))} and such, which as seconds since 1970 is after "
        "the year 5000, so that windows, hours and days are wrong"
    )
    remedy = f"they look like {SCALES[times]}: divide by {times:,.0f}" if times else "write seconds since 1970"
    return [Finding("units", "contradicts", words, remedy)]


def swapped_with(chart: Chart, place: int) -> str:
    """Return the name of a number that one which hardly uses its range may be swapped with; nothing: there is none.

    Its values would fill the other's range, and the other's values, of which many lie at an end, would lie in its own.
    """
    span = float(chart.spans[place, 1] - chart.spans[place, 0])
    for other in chart.swappable(place):
        name, (low, high) = chart.log.problem.ranges[other]
        theirs = chart.log.numbers[:, other]
        if (
            span >= FULL * (high - low)
            and not is_coin(theirs)
            and max((theirs == low).mean(), (theirs == high).mean()) >= CUT
        ):
            return name
    return ""


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


def narrow(values: Floats, name: str, low: float, high: float, other: str) -> list[Finding]:
    """Return what is strange with a number that hardly uses its range."""
    used = float(values.max() - values.min()) / (high - low)
    if used >= PART or values.max() == values.min():
        return []
    ends = f"[{said(float(values.min()))}, {said(float(values.max()))}]"
    words = f"{name!r} lies in {ends} and is declared in [{said(low)}, {said(high)}], of which that is {used:.1%}"
    shares = low >= 0.0 and high >= HUNDRED and values.min() >= 0.0 and values.max() <= 1.0
    if shares and not np.isin(values, (0.0, 1.0)).all():
        return [Finding("units", "contradicts", words, "they look like shares and the range like percentages")]
    if other:
        words += f", and it would fill that of {other!r}, many of whose values lie at an end of its own"
        return [Finding("units", "note", words, f"look whether the columns {name!r} and {other!r} are swapped")]
    return [Finding("units", "note", words, "a tighter range learns sooner, where no user lies outside it")]
