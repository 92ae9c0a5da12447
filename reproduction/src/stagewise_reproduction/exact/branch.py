"""The paper's own OPLB, a convex function maximised over a convex set: climbed, then closed in by branch and bound."""

import heapq
from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.rules.cone import Columns, Mixture, alone, best_in_cone, weighed
from stagewise_reproduction.exact.box import Box, best_in_box
from stagewise_reproduction.exact.norms import Norms, attained, slope

MOST_BRANCHED = 5  # coordinates; a box has 2ᵏ corners, and the number of boxes grows as fast
LEAST_CUT = 0.2  # of a box's side, on either side of a cut


class Search(NamedTuple):
    """What is known so far."""

    shares: Floats  # (N,) the best mixture
    value: float
    left: int  # solves that may still be made


def best_by_norms(columns: Columns, gains: Floats, norms: Norms, tolerance: float, budget: int) -> Mixture:
    """Maximise f(p) = Σ p_i estimate_i + a‖y‖ + b‖By‖, y = Σ p_i w_i, subject to the pessimistic costs of the mixture.

    `gains` are f of every single action, so that Σ p_i gain_i ≥ f(p) by Jensen's inequality: the cone program with them
    is the first bound. Ends when value and bound are within `tolerance`, or after `budget` solves; either way no
    mixture within the limits exceeds the bound.
    """
    relaxed = best_in_cone(columns, gains)
    search = better(Search(alone(columns), attained(norms, alone(columns)), budget - 1), norms, relaxed.shares)
    bound = relaxed.bound
    if bound - search.value > tolerance:
        search = climbed(columns, norms, search, tolerance)
    if bound - search.value > tolerance and len(norms.whitened) <= MOST_BRANCHED:
        search, bound = closed_in(columns, gains, norms, search, bound, tolerance)
    return Mixture(search.shares, search.value, max(bound, search.value))


def better(search: Search, norms: Norms, shares: Floats) -> Search:
    """Return the search with this mixture, if it is better than the one it has."""
    value = attained(norms, shares)
    return search._replace(shares=shares, value=value) if value > search.value else search


def climbed(columns: Columns, norms: Norms, search: Search, tolerance: float) -> Search:
    """Climb from the best mixture so far and from each direction ±e: put the norm's tangent in its place, and solve.

    A tangent of a convex function is below it, so no step of a climb loses anything.
    """
    size = len(norms.whitened)
    starts = [norms.whitened @ search.shares, *np.eye(size), *-np.eye(size)]
    for start in starts:
        mean, last = start, -np.inf
        while search.left > 0:
            step = best_in_cone(columns, norms.estimates + slope(norms, mean) @ norms.whitened)
            search = better(search._replace(left=search.left - 1), norms, step.shares)
            value, mean = attained(norms, step.shares), norms.whitened @ step.shares
            if not value > last + 0.1 * tolerance:
                break
            last = value
    return search


def closed_in(
    columns: Columns, gains: Floats, norms: Norms, search: Search, bound: float, tolerance: float
) -> tuple[Search, float]:
    """Cut the box of all means into smaller ones, the most promising first; return the search and the bound left."""
    box, search = surrounding(columns, gains, norms, search)
    boxes: list[tuple[float, int, Box, Floats]] = []
    waiting = [(bound, box)]
    made = 0
    while True:
        for above, part in waiting:
            if search.left == 0:
                heapq.heappush(boxes, (-above, made, part, 0.5 * (part.low + part.high)))
            else:
                answer = best_in_box(columns, gains, norms, part)
                search = better(search._replace(left=search.left - 1), norms, answer.shares)
                heapq.heappush(boxes, (-min(above, answer.bound), made, part, answer.mean))
            made += 1
        bound = -boxes[0][0]
        if bound - search.value <= tolerance or search.left == 0:
            return search, bound
        above, _, part, mean = heapq.heappop(boxes)
        waiting = [(-above, half) for half in halves(part, mean)]


def surrounding(columns: Columns, gains: Floats, norms: Norms, search: Search) -> tuple[Box, Search]:
    """Return a box around the means of all mixtures that can still be better: Σ p_i gain_i is at least the best value.

    One solve for each side; its certified bound is the side.
    """
    floor = Columns(
        np.vstack([columns.costs, -gains]),
        columns.images,
        np.append(columns.radii, 0.0),
        np.append(columns.limits, -search.value),
        columns.home,
    )
    low, high = norms.whitened.min(axis=1), norms.whitened.max(axis=1)
    for i, row in enumerate(norms.whitened):
        if search.left < 2:
            break
        high[i] = min(high[i], weighed(floor, row, refined=True)[1])
        low[i] = max(low[i], -weighed(floor, -row, refined=True)[1])
        low[i] = min(low[i], high[i])
        search = search._replace(left=search.left - 2)
    return Box(low, high), search


def halves(box: Box, mean: Floats) -> tuple[Box, Box]:
    """Return the box cut across its longest side, at the mean where that leaves enough on either side."""
    sides = box.high - box.low
    i = int(np.argmax(sides))
    least = LEAST_CUT * sides[i]
    cut = min(max(float(mean[i]), box.low[i] + least), box.high[i] - least)
    high, low = box.high.copy(), box.low.copy()
    high[i] = low[i] = cut
    return Box(box.low, high), Box(low, box.high)
