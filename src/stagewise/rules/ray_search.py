"""Deterministic search for the best ray into a convex set: many directions, then refinement around the best."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.rules.tie import TIE, first_best
from stagewise.kernels.world_outcomes import fill_directions
from stagewise.problem.convex import Convex

KEPT, TRIED, ROUNDS = 8, 32, 12  # directions refined in parallel, candidates per direction in a round, rounds
WIDEST, NARROWEST, SHRINK = 0.5, 1e-6, 0.4  # distance, as a share of the set; shrinks without improvement
ASCENTS = 6  # at most, from the best direction
NEIGHBOUR = 0.9  # directions with a larger cosine are neighbours
ENOUGH = 1e-7  # a smaller relative gap counts as none
STREAM = 20250801  # random stream of the fixed directions, independent of any user's seed

Values = Callable[[Floats], Floats]  # optimistic rewards on the rays to targets (M, d)


class SearchResult(NamedTuple):
    """The end of the best ray found, and its optimistic reward."""

    target: Floats
    value: float


@lru_cache(maxsize=64)
def build_directions(count: int, d: int, number: int) -> Floats:
    """Return `count` directions spread over the sphere, from their own random stream."""
    directions = np.empty((count, d))
    fill_directions(directions, STREAM, number, 0)
    directions.flags.writeable = False
    return directions


def search_rays(
    values: Values, actions: Convex, safe: Floats, starts: Floats, hints: Floats, enough: float
) -> SearchResult:
    """Maximise the optimistic reward over rays from the safe action, starting from `starts` (M, d), points of the set.

    Every round tries points around the best few: isotropic ones, and ones along `hints` (H, d), directions in which an
    optimum may lie. A round without improvement narrows the next. The search stops near `enough`, an upper bound. Ties
    go to the earlier candidate.
    """
    targets = actions.find_exits(safe, starts - safe)
    optimistic_rewards = values(targets)
    first = first_best(optimistic_rewards)
    if first < 0:
        return SearchResult(targets[0], -np.inf)
    order = select_distant(targets - safe, optimistic_rewards, first)
    best, best_values, scales = targets[order], optimistic_rewards[order], np.full(len(order), WIDEST)
    for round_ in range(ROUNDS):
        if is_near_bound(enough, float(best_values.max())) or scales.max() < NARROWEST:
            break
        points = actions.retract(sample_around(best, scales, actions.spread, hints, round_))
        targets = actions.find_exits(safe, points - safe).reshape(len(best), -1, safe.size)
        optimistic_rewards = values(targets.reshape(-1, safe.size)).reshape(len(best), -1)
        rows, columns = np.arange(len(best)), optimistic_rewards.argmax(axis=1)
        better = optimistic_rewards[rows, columns] - TIE * np.abs(optimistic_rewards[rows, columns]) > best_values
        best = np.where(better[:, np.newaxis], targets[rows, columns], best)
        best_values = np.where(better, optimistic_rewards[rows, columns], best_values)
        scales = np.where(better, scales, SHRINK * scales)
    index = first_best(best_values)
    return SearchResult(best[index], float(best_values[index]))


def ascend_rays(
    values: Values, actions: Convex, safe: Floats, best: SearchResult, moves: Callable[[Floats], Floats], enough: float
) -> SearchResult:
    """Move to the best of `moves`, points of the set (M, d) for a target, while the optimistic reward increases."""
    for _ in range(ASCENTS):
        points = moves(best.target) if not is_near_bound(enough, best.value) else np.empty((0, safe.size))
        if len(points) == 0:
            break
        targets = actions.find_exits(safe, points - safe)
        optimistic_rewards = values(targets)
        index = int(np.argmax(optimistic_rewards))
        if not optimistic_rewards[index] - TIE * abs(optimistic_rewards[index]) > best.value:
            break
        best = SearchResult(targets[index], float(optimistic_rewards[index]))
    return best


def is_near_bound(enough: float, value: float) -> bool:
    """Return whether a value is close enough to its upper bound."""
    return enough - value <= ENOUGH * max(1.0, abs(value))


def select_distant(directions: Floats, rewards: Floats, first: int) -> list[int]:
    """Return the first direction, then the best ones that are not close to a better one."""
    units = directions / np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-300)
    left, chosen = np.where(np.isfinite(rewards), rewards, -np.inf), [first]
    while len(chosen) < KEPT:
        left = np.where(units @ units[chosen[-1]] > NEIGHBOUR, -np.inf, left)
        best = int(np.argmax(left))
        if left[best] == -np.inf:
            break
        chosen.append(best)
    return chosen


def sample_around(points: Floats, scales: Floats, spread: Floats, hints: Floats, round_: int) -> Floats:
    """Return points (K TRIED, d) around the given (K, d): half isotropic, half along the hints."""
    (count, d), half = points.shape, TRIED // 2
    isotropic = build_directions(count * half, spread.shape[1], 1 + round_ % 8) @ spread.T
    mixed = build_directions(count * half, len(hints), 11 + round_ % 8)
    mixed = (mixed * np.abs(mixed)) @ hints  # squares, so that most candidates follow one or two hints
    steps = np.concatenate([isotropic.reshape(count, half, d), mixed.reshape(count, half, d)], axis=1)
    moved: Floats = points[:, np.newaxis] + scales[:, np.newaxis, np.newaxis] * steps
    return moved.reshape(-1, d)
