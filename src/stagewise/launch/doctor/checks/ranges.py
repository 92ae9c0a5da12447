"""Whether every value lies where the problem says that it lies."""

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.finding import Finding, gravest, said


def check(chart: Chart, alpha: float) -> Finding:
    """Find numbers of users and outcomes outside the ranges that were declared: each would be refused."""
    log, found = chart.log, []
    for place, (name, (low, high)) in enumerate(log.problem.ranges):
        remedy = "declare a range of the context that holds every user"
        for other in chart.swappable(place)[:1]:
            remedy = f"look whether {name!r} and {log.problem.ranges[other][0]!r} are swapped, which would lie in range"
        found += outside(log.numbers[:, place], name, low, high, remedy)
    for place, name in enumerate(chart.names):
        low, high = chart.ends(place)
        remedy = "declare a low and a high that hold every single outcome; the guarantee rests on them"
        found += outside(log.values[:, place], name, low, high, remedy)
    return gravest("ranges", found, "every number lies in the range that is declared for it")


def outside(values: Floats, name: str, low: float, high: float, remedy: str) -> list[Finding]:
    """Return what is wrong with the values of one column."""
    beyond = ~np.isnan(values) & ~((values >= low) & (values <= high))
    if not beyond.any():
        return []
    far = values[beyond]
    extreme = float(far[np.argmax(np.abs(far - 0.5 * (low + high)))])
    percent = high == 1.0 and low == 0.0 and 1.0 < extreme <= 100.0
    hint = "; were they percentages" if percent else ""
    words = (
        f"{int(beyond.sum()):,} of {values.size:,} values of {name!r} lie outside [{said(low)}, {said(high)}], "
        f"such as {said(extreme)}{hint}"
    )
    return [Finding("ranges", "contradicts", words, "divide by 100" if percent else remedy)]
