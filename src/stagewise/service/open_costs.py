"""What is told of costs that are not settled: what was told is final, and what was not told counts as nothing yet.

A mean that counts so is never beyond the one of all outcomes once they are in, and neither is its band's nearer end: it
holds at every look for outcomes in the order of decisions, and only rises with each of them (docs/theory/stops.md).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from stagewise.problem.declared import Limit
from stagewise.service.bands import Seen
from stagewise.service.tally import Tally
from stagewise.service.waits import DROPPED, HELD

NONE = Seen()


class Open(NamedTuple):
    """Decisions whose outcome of one limit is not settled, counted as far as it is told; by what they are counted."""

    all: Seen
    """Of those since the limit moved last."""
    actions: Mapping[str, Seen]
    buckets: Mapping[int, Seen]


def open_costs(tally: Tally) -> dict[str, Open]:
    """Return what is told of decisions that every limit still waits for."""
    limits = {} if tally.problem is None else tally.problem.limits
    return {name: open_of(tally, name, limit) for name, limit in limits.items()}


def open_of(tally: Tally, name: str, limit: Limit) -> Open:
    """Return what is told of decisions that one limit still waits for."""
    waits, k = tally.waits, tally.waits.names.index(name)
    places = np.arange(waits.heads[k], waits.end)
    part = slice(waits.heads[k] - waits.base, waits.end - waits.base)
    standing, values, dates = waits.standing[part, k], waits.values[part, k], waits.dates[part]
    counts = (standing != DROPPED) & (waits.deferred[part] == 0)
    told = np.where(standing == HELD, values, limit.high if limit.at_least else limit.low)[counts]
    actions, places, dates = waits.rows[part, 0][counts].astype(np.int64), places[counts], dates[counts]
    since = places >= tally.moved.get(name, 0)
    by_action = grouped(actions, told)
    moments = (dates - (tally.buckets.origin or 0)) // tally.buckets.width
    return Open(
        Seen(int(since.sum()), float(told[since].sum())),
        {tally.names[action]: seen for action, seen in by_action.items()},
        grouped(moments, told),
    )


def grouped(places: Any, values: Any) -> dict[int, Seen]:
    """Return values counted by place.

    >>> seen = grouped(np.array([2, 0, 2]), np.array([0.5, 1.0, 0.5]))
    >>> sorted(seen), seen[2].count, seen[2].total
    ([0, 2], 2, 1.0)
    """
    if not len(places):
        return {}
    counts, totals = np.bincount(places), np.bincount(places, weights=values)
    return {int(place): Seen(int(counts[place]), float(totals[place])) for place in np.flatnonzero(counts)}


def safe_costs(tally: Tally) -> dict[str, tuple[int, float]]:
    """Return by limit the decisions for the safe action, and the mean of their costs in [0, 1] as far as it is told."""
    with tally.alone:
        found = dict[str, tuple[int, float]]()
        if tally.problem is None:
            return found
        safe = tally.problem.safe
        for name, limit in tally.problem.limits.items():
            seen = tally.seen.get((safe, name), NONE).joined(open_of(tally, name, limit).actions.get(safe, NONE))
            if seen.mean is not None:
                part = (seen.mean - limit.low) / (limit.high - limit.low)
                found[name] = seen.count, 1.0 - part if limit.at_least else part
        return found
