"""The best ray into a convex set: many directions at once, then better ones around the best; the same every time."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.rules.tie import TIE, first_best
from stagewise.kernels.world import fill_directions
from stagewise.problem.convex import Convex

KEPT, TRIED, ROUNDS = 8, 32, 12  # directions improved side by side, candidates for each of them in a round
WIDEST, NARROWEST, SHRINK = 0.5, 1e-6, 0.4  # how far from them, as a share of the set; narrower after a vain round
ASCENTS = 6  # at most, from the best direction
CLOSE = 0.9  # directions with a larger cosine are neighbours
ENOUGH = 1e-7  # a gap below this share of what is hoped for is as good as none
STREAM = 20250801  # of the fixed directions, which no user's seed changes

Values = Callable[[Floats], Floats]  # what is hoped for on the rays to targets (M, d)


class Climbed(NamedTuple):
    """The far end of the best ray found, and what is hoped for on it."""

    target: Floats
    value: float


@lru_cache(maxsize=64)
def net(count: int, d: int, number: int) -> Floats:
    """Return `count` directions spread over the sphere, from a stream of their own."""
    directions = np.empty((count, d))
    fill_directions(directions, STREAM, number, 0)
    directions.flags.writeable = False
    return directions


def climbed(values: Values, actions: Convex, safe: Floats, starts: Floats, hints: Floats, enough: float) -> Climbed:
    """Maximise what is hoped for over the rays from the safe action, from `starts` (M, d), points of the set.

    Every round tries points around the few best: isotropic ones, and ones along `hints` (H, d), directions in which an
    optimum may lie. What does not help narrows the next round. Nothing is above `enough`, so near it the search stops.
    Ties go to the earlier candidate.
    """
    targets = actions.exits(safe, starts - safe)
    hopes = values(targets)
    first = first_best(hopes)
    if first < 0:
        return Climbed(targets[0], -np.inf)
    order = apart(targets - safe, hopes, first)
    best, best_hopes, scales = targets[order], hopes[order], np.full(len(order), WIDEST)
    for round_ in range(ROUNDS):
        if close_to(enough, float(best_hopes.max())) or scales.max() < NARROWEST:
            break
        points = actions.retracted(around(best, scales, actions.spread, hints, round_))
        targets = actions.exits(safe, points - safe).reshape(len(best), -1, safe.size)
        hopes = values(targets.reshape(-1, safe.size)).reshape(len(best), -1)
        rows, columns = np.arange(len(best)), hopes.argmax(axis=1)
        better = hopes[rows, columns] - TIE * np.abs(hopes[rows, columns]) > best_hopes
        best = np.where(better[:, np.newaxis], targets[rows, columns], best)
        best_hopes = np.where(better, hopes[rows, columns], best_hopes)
        scales = np.where(better, scales, SHRINK * scales)
    place = first_best(best_hopes)
    return Climbed(best[place], float(best_hopes[place]))


def ascending(
    values: Values, actions: Convex, safe: Floats, best: Climbed, moves: Callable[[Floats], Floats], enough: float
) -> Climbed:
    """Take the best of `moves`, points of the set (M, d) that a target leads to, as long as they hope for more."""
    for _ in range(ASCENTS):
        points = moves(best.target) if not close_to(enough, best.value) else np.empty((0, safe.size))
        if len(points) == 0:
            break
        targets = actions.exits(safe, points - safe)
        hopes = values(targets)
        place = int(np.argmax(hopes))
        if not hopes[place] - TIE * abs(hopes[place]) > best.value:
            break
        best = Climbed(targets[place], float(hopes[place]))
    return best


def close_to(enough: float, value: float) -> bool:
    """Say whether nothing worth mentioning is left to be gained."""
    return enough - value <= ENOUGH * max(1.0, abs(value))


def apart(directions: Floats, hopes: Floats, first: int) -> list[int]:
    """Return the first, then the best directions that are not close to a better one: every hill needs its climber."""
    units = directions / np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-300)
    left, chosen = np.where(np.isfinite(hopes), hopes, -np.inf), [first]
    while len(chosen) < KEPT:
        left = np.where(units @ units[chosen[-1]] > CLOSE, -np.inf, left)
        best = int(np.argmax(left))
        if left[best] == -np.inf:
            break
        chosen.append(best)
    return chosen


def around(points: Floats, scales: Floats, spread: Floats, hints: Floats, round_: int) -> Floats:
    """Return points (K TRIED, d) around the given (K, d): half isotropic, half along the hints."""
    (count, d), half = points.shape, TRIED // 2
    isotropic = net(count * half, spread.shape[1], 1 + round_ % 8) @ spread.T
    mixed = net(count * half, len(hints), 11 + round_ % 8)
    mixed = (mixed * np.abs(mixed)) @ hints  # squares: most candidates follow one or two hints
    steps = np.concatenate([isotropic.reshape(count, half, d), mixed.reshape(count, half, d)], axis=1)
    moved: Floats = points[:, np.newaxis] + scales[:, np.newaxis, np.newaxis] * steps
    return moved.reshape(-1, d)
