"""Regions of a convex set: an upper bound on the optimistic reward there, and an ascent step.

Deterministic search for the best ray into a convex set: many directions, then refinement around the best.

The true optimum over a convex set under linear limits.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.engine.pair import TIE, first_best
from stagewise.engine.world_draws import fill_directions
from stagewise.problem.convex import Convex, Hull
from stagewise.rules.cone_program import ConicProgram
from stagewise.rules.relaxation import OptimisticProblem, UpperBound, bound_over_ellipsoid, bound_over_points


class Region(NamedTuple):
    """A region of a problem: the set's hull shrunk towards the safe action, and the limits that apply there."""

    problem: OptimisticProblem
    hull: Hull

    def compute_upper_bound(self) -> UpperBound:
        """Return an upper bound on the optimistic reward over the region."""
        if len(self.hull.points):
            return bound_over_points(self.problem, self.hull.points)
        return bound_over_ellipsoid(self.problem, self.hull.center, self.hull.factor)

    @property
    def widest(self) -> float:
        """An upper bound on the width of the region's points in the last norm."""
        norm, hull = self.problem.norms[-1], self.hull
        if len(hull.points):
            return float(np.linalg.norm(hull.points @ norm.T, axis=1).max())
        return float(np.linalg.norm(norm @ hull.center) + np.linalg.norm(norm @ hull.factor, 2))

    def ascend(self, safe: Floats, point: Floats) -> Floats | None:
        """Return a point of the region with at least the optimistic reward of the given one, if that is in the region.

            maximise <x, e + Σ ω_k u_k>  subject to  <x, c_j> + ρ_j ‖W x‖ ≤ limit_j,  u_k = W_kᵀW_k y/‖W_k y‖ at y

        Norms are above their tangents, so the problem's own objective rises at least as much (the convex–concave
        procedure, Yuille and Rangarajan 2003). Where ρ_j < 0 the norm there is replaced too, which keeps to the limit.
        """
        problem = self.problem
        tangents = [compute_tangent(norm, point) for norm in problem.norms]
        slope = problem.reward + sum(
            weight * direction for weight, direction in zip(problem.weights, tangents, strict=True)
        )
        points, center, factor, _ = self.hull
        base, directions = (safe, points - safe) if len(points) else (center, factor.T)
        count = len(directions)  # x = base + Σ v_i ways_i, and t ≥ ‖W x‖
        program = ConicProgram(count + 1)
        program.cost[:count] = -directions @ slope
        eye = np.eye(count + 1)
        if len(points):
            shares = np.vstack([eye[:count], np.append(-np.ones(count), 0.0)])
            program.add_nonnegative(shares, np.append(np.zeros(count), 1.0))
        else:
            program.add_norm_bound(np.vstack([np.zeros(count + 1), eye[:count]]), eye[0])
        norm = problem.norms[-1]
        images = np.vstack([np.zeros(count), norm @ directions.T])
        program.add_norm_bound(np.column_stack([images, np.eye(len(images))[0]]), np.append(0.0, norm @ base))
        convex = problem.cost_norm_weights >= 0.0
        costs = problem.costs + np.where(convex, 0.0, problem.cost_norm_weights)[:, np.newaxis] * tangents[-1]
        rows = np.column_stack([-costs @ directions.T, -np.where(convex, problem.cost_norm_weights, 0.0)])
        program.add_nonnegative(rows, problem.limits - costs @ base)
        answer = program.solve()
        if answer is None:
            return None
        found: Floats = base + answer.point[:count] @ directions
        return found


def build_region(problem: OptimisticProblem, actions: Convex, safe: Floats, share: float = 1.0) -> Region:
    """Return the region x₀ + share (A − x₀) with the limits of `problem`."""
    return Region(problem, actions.hull.shrink(safe, share))


def compute_tangent(norm: Floats, point: Floats) -> Floats:
    """Return the gradient of ‖W x‖ at a point; zero where it does not exist."""
    image = norm @ point
    size = float(np.linalg.norm(image))
    slope: Floats = image @ norm / size if size > 0.0 else np.zeros(point.size)
    return slope


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


MOST_CUTS, CLOSE = 1000, 1e-12  # maximal number of cuts; relative distance of the bounds at which to stop
PRICIEST = 1e9  # upper bound on the multiplier of a limit


def compute_best_value(actions: Convex, reward: Floats, costs: Floats, limits: Floats) -> float:
    """Maximise <x, θ> over the set subject to <x, μ_j> ≤ τ_j; return the value."""
    (best,), hull = actions.support(reward[np.newaxis]), actions.hull
    top = float(reward @ best)
    if limits.size == 0 or np.all(costs @ best <= limits):
        return top
    if hull.exact and not len(hull.points):
        return min(top, compute_best_in_ellipsoid(hull, reward, costs, limits))
    return min(top, compute_best_by_support(actions, reward, costs, limits))


def compute_best_in_ellipsoid(hull: Hull, reward: Floats, costs: Floats, limits: Floats) -> float:
    """Return the value over x = c + F v, ‖v‖ ≤ 1, by the dual, evaluated at the multipliers that Clarabel finds.

    min over λ ≥ 0 of  <λ, τ> + <c, g> + ‖Fᵀg‖,   g = θ − Σ λ_j μ_j
    """
    center, factor, m = hull.center, hull.factor, limits.size
    program = ConicProgram(m + 1)
    program.cost[:m], program.cost[m] = limits - costs @ center, 1.0
    program.add_nonnegative(np.eye(m + 1)[:m], np.zeros(m))
    rows = np.zeros((1 + center.size, m + 1))
    rows[0, m], rows[1:, :m] = 1.0, -(factor.T @ costs.T)
    program.add_norm_bound(rows, np.append(0.0, factor.T @ reward))
    answer = program.solve()
    multipliers = np.zeros(m) if answer is None else np.maximum(answer.point[:m], 0.0)
    slope = reward - multipliers @ costs
    return float(multipliers @ limits + center @ slope + np.linalg.norm(factor.T @ slope))


def compute_best_by_support(actions: Convex, reward: Floats, costs: Floats, limits: Floats) -> float:
    """Return the value over any convex set, by cutting planes on the dual (Kelley 1960).

        min over λ ≥ 0 of  <λ, τ> + max over the set of <x, g>,   g = θ − Σ λ_j μ_j

    The inner maximum is bounded below by that over the points known so far, at first the vertices if they can be
    listed. The best λ for these asks the set for another support point, until none is better. The returned value is an
    upper bound whenever the iteration ends.
    """
    from scipy.optimize import linprog  # type: ignore[import-untyped]

    points = actions.vertices if actions.count else actions.support(np.vstack([reward, -costs]))
    bound = np.inf
    for _ in range(MOST_CUTS):
        rows = np.column_stack([points @ costs.T, np.ones(len(points))])
        sides = [(0.0, PRICIEST)] * limits.size + [(None, None)]
        found = linprog(np.append(limits, 1.0), -rows, -points @ reward, bounds=sides, method="highs")
        if found.x is None:
            break
        slope = reward - found.x[:-1] @ costs
        point = actions.support(slope[np.newaxis])
        bound = min(bound, float(found.x[:-1] @ limits + point[0] @ slope))
        if bound - found.fun <= CLOSE * max(1.0, abs(bound)):
            break
        points = np.vstack([points, point])
    return bound
