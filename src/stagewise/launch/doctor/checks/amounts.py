"""Whether there are rows enough of every action to say anything of its limits."""

import math
from collections.abc import Iterator

import numpy as np

from stagewise.launch.doctor.chart import INTERVAL, MISSING, Chart, threshold_of
from stagewise.launch.doctor.finding import Finding, gravest

MOST = 10_000_000


def check(chart: Chart, alpha: float) -> Finding:
    """Find actions that so few rows did that not even a log without a single event could show them to be safe.

    A limit that holds in every segment has to be shown in each.
    """
    problem, found = chart.log.problem, []
    for signal, (name, limit) in enumerate(problem.limits.items(), start=1):
        value, below = threshold_of(limit)
        low, high = chart.ends(signal)
        room = (high - value if below else value - low) / (high - low)
        needed = needed_for(room, problem.delta / (2 * len(problem.limits) * len(problem.actions)))
        few = sorted((count, words) for words, count in counted(chart, signal) if count < needed)
        if few:
            count, done = few[0]
            others = f", and {len(few) - 1} more have too few" if len(few) > 1 else ""
            words = (
                f"{done} has {count:,} outcomes of {name!r}{others}; before "
                f"{needed:,} are seen not even none at all would show it to keep its limit"
            )
            remedy = "it starts from the safe action and is explored slowly; log more of it, or leave it out"
            found.append(Finding("amounts", "note", words, remedy))
    most = f"every action has the outcomes that its limits take at the least, in {chart.log.rows:,} rows"
    return gravest("amounts", found, most)


def counted(chart: Chart, signal: int) -> Iterator[tuple[str, int]]:
    """Yield each action, in each segment where the limit holds by segment, and how many of its outcomes were seen."""
    problem, seen = chart.log.problem, chart.seen(signal)
    by = problem.choices[chart.names[signal]].by
    groups, names = chart.divided[by] if by is not None else (np.zeros(chart.log.rows, np.int64), [""])
    for place, action in enumerate(problem.actions):
        done = seen & (chart.log.actions == place)
        for count, group in zip(np.bincount(groups[done], minlength=len(names)).tolist(), names, strict=True):
            if group != MISSING:
                yield f"{action!r}" if by is None else f"{action!r} in {by} {group!r}", count


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
