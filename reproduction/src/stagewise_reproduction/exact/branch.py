"""The paper's own OPLB, a convex function maximised over a convex set: local ascent, then branch and bound."""

import heapq
from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.rules.cone_program import Columns, Mixture, build_safe_shares, find_best_mixture_in_cone, solve_dual
from stagewise_reproduction.exact.box import Box, bound_in_box
from stagewise_reproduction.exact.norms import Norms, compute_slope, compute_value

MOST_BRANCHED = 5  # coordinates; a box has 2ᵏ corners, and the number of boxes grows as fast
LEAST_CUT = 0.2  # of a box's side, the least on either side of a split


class Search(NamedTuple):
    """The state of the search."""

    shares: Floats  # (N,) the best mixture
    value: float
    remaining: int  # solves that are left


def find_best_by_norms(columns: Columns, gains: Floats, norms: Norms, tolerance: float, budget: int) -> Mixture:
    """Maximise f(p) = Σ p_i estimate_i + a‖y‖ + b‖By‖, y = Σ p_i w_i, subject to the pessimistic costs of the mixture.

    `gains` are f of every single action, so that Σ p_i gain_i ≥ f(p) by Jensen's inequality: the cone program with them
    is the first bound. Ends when value and bound are within `tolerance`, or after `budget` solves; either way no
    mixture within the limits exceeds the bound.
    """
    relaxation = find_best_mixture_in_cone(columns, gains)
    search = keep_better(
        Search(build_safe_shares(columns), compute_value(norms, build_safe_shares(columns)), budget - 1),
        norms,
        relaxation.shares,
    )
    bound = relaxation.bound
    if bound - search.value > tolerance:
        search = ascend(columns, norms, search, tolerance)
    if bound - search.value > tolerance and len(norms.whitened) <= MOST_BRANCHED:
        search, bound = branch_and_bound(columns, gains, norms, search, bound, tolerance)
    return Mixture(search.shares, search.value, max(bound, search.value))


def keep_better(search: Search, norms: Norms, shares: Floats) -> Search:
    """Return the search with this mixture, if it is better."""
    value = compute_value(norms, shares)
    return search._replace(shares=shares, value=value) if value > search.value else search


def ascend(columns: Columns, norms: Norms, search: Search, tolerance: float) -> Search:
    """Ascend from the best mixture so far and from each direction ±e: replace the norm by its tangent, and solve.

    A tangent of a convex function is below it, so no step decreases the value.
    """
    size = len(norms.whitened)
    starts = [norms.whitened @ search.shares, *np.eye(size), *-np.eye(size)]
    for start in starts:
        mean, last = start, -np.inf
        while search.remaining > 0:
            step = find_best_mixture_in_cone(columns, norms.estimates + compute_slope(norms, mean) @ norms.whitened)
            search = keep_better(search._replace(remaining=search.remaining - 1), norms, step.shares)
            value, mean = compute_value(norms, step.shares), norms.whitened @ step.shares
            if not value > last + 0.1 * tolerance:
                break
            last = value
    return search


def branch_and_bound(
    columns: Columns, gains: Floats, norms: Norms, search: Search, bound: float, tolerance: float
) -> tuple[Search, float]:
    """Split the box of all means into smaller ones, the most promising first; return the search and the bound."""
    box, search = bound_means(columns, gains, norms, search)
    boxes: list[tuple[float, int, Box, Floats]] = []
    queue = [(bound, box)]
    count = 0
    while True:
        for above, box_ in queue:
            if search.remaining == 0:
                heapq.heappush(boxes, (-above, count, box_, 0.5 * (box_.low + box_.high)))
            else:
                answer = bound_in_box(columns, gains, norms, box_)
                search = keep_better(search._replace(remaining=search.remaining - 1), norms, answer.shares)
                heapq.heappush(boxes, (-min(above, answer.bound), count, box_, answer.mean))
            count += 1
        bound = -boxes[0][0]
        if bound - search.value <= tolerance or search.remaining == 0:
            return search, bound
        above, _, box_, mean = heapq.heappop(boxes)
        queue = [(-above, half) for half in split_box(box_, mean)]


def bound_means(columns: Columns, gains: Floats, norms: Norms, search: Search) -> tuple[Box, Search]:
    """Return a box around the means of all mixtures that can be better: Σ p_i gain_i is at least the best value.

    One solve for each side; its certified bound is the side.
    """
    floor = Columns(
        np.vstack([columns.costs, -gains]),
        columns.images,
        np.append(columns.radii, 0.0),
        np.append(columns.limits, -search.value),
        columns.safe_index,
    )
    low, high = norms.whitened.min(axis=1), norms.whitened.max(axis=1)
    for i, row in enumerate(norms.whitened):
        if search.remaining < 2:
            break
        high[i] = min(high[i], solve_dual(floor, row, refined=True)[1])
        low[i] = max(low[i], -solve_dual(floor, -row, refined=True)[1])
        low[i] = min(low[i], high[i])
        search = search._replace(remaining=search.remaining - 2)
    return Box(low, high), search


def split_box(box: Box, mean: Floats) -> tuple[Box, Box]:
    """Return the two halves of a box, split across its longest side near the mean."""
    sides = box.high - box.low
    i = int(np.argmax(sides))
    least = LEAST_CUT * sides[i]
    cut = min(max(float(mean[i]), box.low[i] + least), box.high[i] - least)
    high, low = box.high.copy(), box.low.copy()
    high[i] = low[i] = cut
    return Box(box.low, high), Box(low, box.high)
