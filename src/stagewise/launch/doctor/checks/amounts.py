"""Whether there are rows enough of every action to say anything of its limits."""

import math

import numpy as np

from stagewise.launch.doctor.chart import INTERVAL, Chart, threshold_of
from stagewise.launch.doctor.finding import Finding, gravest

MOST = 10_000_000


def check(chart: Chart, alpha: float) -> Finding:
    """Find actions that so few rows did that not even a log without a single event could show them to be safe."""
    problem, found = chart.log.problem, []
    for signal, (name, limit) in enumerate(problem.limits.items(), start=1):
        value, below = threshold_of(limit)
        low, high = chart.ends(signal)
        room = (high - value if below else value - low) / (high - low)
        needed = needed_for(room, problem.delta / (2 * len(problem.limits) * len(problem.actions)))
        counts = np.bincount(chart.log.actions[chart.seen(signal)], minlength=len(problem.actions))
        few = [place for place in np.argsort(counts, kind="stable").tolist() if counts[place] < needed]
        if few:
            others = f", and {len(few) - 1} more have too few" if len(few) > 1 else ""
            words = (
                f"{problem.actions[few[0]]!r} has {counts[few[0]]:,} outcomes of {name!r}{others}; before "
                f"{needed:,} are seen not even none at all would show it to keep its limit"
            )
            remedy = "it starts from the safe action and is explored slowly; log more of it, or leave it out"
            found.append(Finding("amounts", "note", words, remedy))
    return gravest("amounts", found, f"every action has rows enough to show its limits kept, of {chart.log.rows:,}")


def needed_for(room: float, chance: float) -> int:
    """Return how many outcomes, none of them an event, show a rate to be below some room.

    >>> needed_for(0.02, 0.001), needed_for(0.005, 0.001)
    (526, 2263)
    """
    low, high = 1, MOST
    while low < high:
        middle = (low + high) // 2
        if INTERVAL(float(middle), 0.0, math.log(1.0 / chance)).high <= room:
            high = middle
        else:
            low = middle + 1
    return low
