"""Upper bounds on the optimistic reward over a convex set and its regions, by weak duality, and an ascent step.

The norms make the problem non-convex. For κ ≥ 0, η > 0 and any w, κ‖w‖ ≤ η‖w‖² + κ²/(4η), and for ‖p‖ ≤ ψ,
−ψ‖w‖ ≤ −<p, w>. The rest is quadratic, and with multipliers λ ≥ 0 for the limits and γ for an ellipsoid its maximum is
a closed form (docs/theory/convex-sets.md).

Regions of a convex set: an upper bound on the optimistic reward there, and an ascent step.

Deterministic search for the best ray into a convex set: many directions, then refinement around the best.

The true optimum over a convex set under linear limits.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Flags, Floats
from stagewise.engine.pair import TIE, first_best
from stagewise.engine.world_draws import fill_directions
from stagewise.problem.convex import Convex, Hull
from stagewise.rules.cone_program import ConicProgram

# Values of γ that are tried: above the solver's, which only approximates the least one; and above the least, in units
# of ‖h‖, because the best is at most half of it.
LIFTS, GAMMAS = np.array([0.0, 1e-12, 1e-9, 1e-7, 1e-5]), np.append(np.geomspace(1e-6, 0.3, 12), [0.4, 0.5])


class OptimisticProblem(NamedTuple):
    """Maximise <x, e> + Σ_k ω_k ‖W_k x‖ subject to <x, c_j> + ρ_j ‖W x‖ ≤ limit_j, where W is the last of the W_k.

    ρ_j < 0 is allowed: that constraint is not convex.
    """

    reward: Floats  # (d,) e
    costs: Floats  # (m, d) c
    norms: tuple[Floats, ...]  # (n, d) each: W_k
    weights: Floats  # (K,) ω ≥ 0
    cost_norm_weights: Floats  # (m,) ρ
    limits: Floats  # (m,)

    def under(self, chosen: Flags) -> "OptimisticProblem":
        """Return the same problem with only some of the limits."""
        return self._replace(
            costs=self.costs[chosen], cost_norm_weights=self.cost_norm_weights[chosen], limits=self.limits[chosen]
        )


class Multipliers(NamedTuple):
    """Multipliers, and the problem that they leave: <λ, limits> + <x, g> + Σ κ_k ‖W_k x‖."""

    limits: Floats  # (m,) λ ≥ 0
    pull: Floats  # (n,) p, for which the last norm's weight is raised by ‖p‖

    def slope(self, problem: OptimisticProblem) -> Floats:
        """Return g = e − Σ λ_j c_j − Wᵀp."""
        slope: Floats = problem.reward - self.limits @ problem.costs - self.pull @ problem.norms[-1]
        return slope

    def weights(self, problem: OptimisticProblem) -> Floats:
        """Return κ = ω, but for the last norm max{0, ω − Σ λ_j ρ_j + ‖p‖}."""
        kappa = problem.weights.copy()
        kappa[-1] = max(
            kappa[-1] - float(problem.cost_norm_weights @ self.limits) + float(np.linalg.norm(self.pull)), 0.0
        )
        return kappa


class UpperBound(NamedTuple):
    """An upper bound, and a point of the set (d,) at which the relaxation nearly attains it."""

    bound: float
    point: Floats


def round_up(bound: float) -> float:
    """Return a bound that rounding cannot have moved below the true one."""
    return bound + TIE * abs(bound)


def build_dual_program(problem: OptimisticProblem, more: int) -> tuple[ConicProgram, slice, int]:
    """Return a program with variables λ, p, ψ, κ and `more`, the common constraints, and the indices of p and κ.

    λ ≥ 0,  κ ≥ 0,  ‖p‖ ≤ ψ,  κ ≥ ω − Σ λ_j ρ_j + ψ  for the last norm; the cost of λ is its limits.
    """
    m, n = problem.limits.size, len(problem.norms[-1])
    size = kappa = m + n + 1
    program = ConicProgram(size + 1 + more)
    program.cost[:m] = problem.limits
    eye = np.eye(size + 1 + more)
    program.add_nonnegative(eye[[*range(m), kappa]], np.zeros(m + 1))
    weight = eye[kappa] - eye[size - 1]
    weight[:m] = problem.cost_norm_weights
    program.add_nonnegative(weight[np.newaxis], -problem.weights[-1:])
    program.add_norm_bound(eye[[size - 1, *range(m, m + n)]], np.zeros(1 + n))
    return program, slice(m, m + n), kappa


def bound_over_points(problem: OptimisticProblem, points: Floats) -> UpperBound:
    """Return an upper bound over the mixtures of `points` (N, d).

        min over λ ≥ 0 and p of  <λ, limits> + max over the points of <x, g> + Σ κ_k ‖W_k x‖

    A convex function is largest at a vertex, so for κ ≥ 0 the inner maximum is that over the whole polytope.
    """
    images = points @ problem.norms[-1].T
    widths = np.array([np.linalg.norm(points @ norm.T, axis=1) for norm in problem.norms])

    def bound(prices: Multipliers) -> UpperBound:
        values = points @ prices.slope(problem) + prices.weights(problem) @ widths
        best = int(np.argmax(values))
        return UpperBound(round_up(float(problem.limits @ prices.limits + values[best])), points[best])

    m = problem.limits.size
    free = bound(Multipliers(np.zeros(m), np.zeros(len(problem.norms[-1]))))
    if m == 0:
        return free
    program, pull, _ = build_dual_program(problem, 1)
    program.cost[-1] = 1.0
    rows = np.column_stack([points @ problem.costs.T, images, np.zeros(len(points)), -widths[-1], np.ones(len(points))])
    program.add_nonnegative(rows, -(points @ problem.reward + problem.weights[:-1] @ widths[:-1]))
    answer = program.solve()
    if answer is None:
        return free
    found = bound(Multipliers(np.maximum(answer.point[:m], 0.0), answer.point[pull]))
    first = m + 2  # the multipliers of λ ≥ 0, κ ≥ 0 and κ ≥ … come first
    shares = np.maximum(answer.dual[first : first + len(points)], 0.0)
    point = shares @ points / shares.sum() if shares.sum() > 0.0 else found.point
    return UpperBound(min(free.bound, found.bound), point)


class EllipsoidProblem(NamedTuple):
    """The problem over ‖v‖ ≤ 1, x = c + F v."""

    problem: OptimisticProblem
    center: Floats
    factor: Floats  # (d, d)
    squares: Floats  # (K, d, d) S_k = FᵀW_kᵀW_kF
    pulls: Floats  # (K, d) FᵀW_kᵀW_k c
    starts: Floats  # (K,) ‖W_k c‖²

    def bound(self, prices: Multipliers, eta: Floats, gamma: float) -> UpperBound:
        """Return the dual value: an upper bound for every λ ≥ 0, p, η > 0 and γ, which is raised if too small.

        <λ, limits> + <c, g> + Σ (η_k ‖W_k c‖² + κ_k²/(4η_k)) + γ + ¼ hᵀ(γI − Σ η_k S_k)⁻¹h,
        h = Fᵀg + 2 Σ η_k FᵀW_kᵀW_k c
        """
        slope, kappa = prices.slope(self.problem), prices.weights(self.problem)
        eta = np.where(kappa > 0.0, np.maximum(eta, 1e-12), 0.0)
        quarter = np.divide(kappa**2, 4.0 * eta, out=np.zeros_like(eta), where=eta > 0.0)
        values, axes = np.linalg.eigh(np.tensordot(eta, self.squares, 1))
        turned = (self.factor.T @ slope + 2.0 * eta @ self.pulls) @ axes
        least, size = max(float(values[-1]), 0.0), float(np.linalg.norm(turned))
        gammas = np.append(max(gamma, least) + LIFTS * (size + least + 1e-300), least + GAMMAS * size)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(turned == 0.0, 0.0, 0.5 * turned / (gammas[:, np.newaxis] - values))
        totals = gammas + 0.5 * steps @ turned
        best = int(np.argmin(totals))
        fixed = self.problem.limits @ prices.limits + self.center @ slope + eta @ self.starts + quarter.sum()
        position = axes @ steps[best]
        inside = position / max(float(np.linalg.norm(position)), 1.0)
        return UpperBound(round_up(float(fixed + totals[best])), self.center + self.factor @ inside)


def bound_over_ellipsoid(problem: OptimisticProblem, center: Floats, factor: Floats) -> UpperBound:
    """Return an upper bound over the points c + F v with ‖v‖ ≤ 1: multipliers by Clarabel, then the closed form."""
    turned = to_ellipsoid_coordinates(problem, center, factor)
    return turned.bound(*compute_multipliers(turned))


def to_ellipsoid_coordinates(problem: OptimisticProblem, center: Floats, factor: Floats) -> EllipsoidProblem:
    pairs = [(norm @ factor, norm @ center) for norm in problem.norms]
    squares, pulls = [image.T @ image for image, _ in pairs], [image.T @ middle for image, middle in pairs]
    starts = [float(middle @ middle) for _, middle in pairs]
    return EllipsoidProblem(problem, center, factor, np.array(squares), np.array(pulls), np.array(starts))


def compute_multipliers(turned: EllipsoidProblem) -> tuple[Multipliers, Floats, float]:
    """Return near-optimal λ, p, η, γ; if the solver fails, multipliers that are always valid.

    Besides λ, p, ψ, κ the variables are η (K), γ, s (K) and y:  s_k ≥ κ_k²/(4η_k), and the sum of y is at least
    ¼ hᵀ(γI − Σ η_k S_k)⁻¹h. For one norm that is y_i ≥ h_i²/(4(γ − η S_ii)) in the axes of S, cones of three numbers;
    for several it is one semidefinite matrix [[γI − Σ η_k S_k, h/2], [hᵀ/2, y]].
    """
    problem, m, (count, d) = turned.problem, turned.problem.limits.size, turned.pulls.shape
    program, pull, kappa = build_dual_program(problem, 2 * count + 1 + (d if count == 1 else 1))
    size, eye = program.cost.size, np.eye(program.cost.size)
    eta, gamma, first = slice(kappa + 1, kappa + 1 + count), kappa + 1 + count, kappa + 2 + count
    y = first + count
    program.cost[:m] -= problem.costs @ turned.center
    program.cost[pull] = -problem.norms[-1] @ turned.center
    program.cost[eta], program.cost[gamma:] = turned.starts, 1.0
    for k in range(count - 1):
        program.add_product(np.zeros(size), float(problem.weights[k]), eye[first + k], eye[eta][k])
    program.add_product(eye[kappa], 0.0, eye[y - 1], eye[gamma - 1])
    values, axes = np.linalg.eigh(turned.squares[0]) if count == 1 else (np.zeros(d), np.eye(d))
    base, slopes = turned.factor.T @ problem.reward @ axes, np.zeros((d, size))  # h = base + slopes · variables
    slopes[:, :m] = -(problem.costs @ turned.factor @ axes).T
    slopes[:, pull] = -(problem.norms[-1] @ turned.factor @ axes).T
    slopes[:, eta] = 2.0 * (turned.pulls @ axes).T
    if count == 1:
        for i in range(d):
            program.add_product(slopes[i], float(base[i]), eye[y + i], eye[gamma] - values[i] * eye[gamma - 1])
    else:
        matrices, constant = np.zeros((size, d + 1, d + 1)), np.zeros((d + 1, d + 1))
        constant[:d, d], matrices[:, :d, d] = 0.5 * base, 0.5 * slopes.T
        matrices[eta, :d, :d], matrices[gamma, :d, :d], matrices[y, d, d] = -turned.squares, np.eye(d), 1.0
        program.add_semidefinite(matrices, constant)
    answer = program.solve()
    if answer is None:  # no price for the limits, and η = ω/(2 width)
        widths = np.sqrt(turned.starts) + np.sqrt(np.array([np.linalg.norm(square, 2) for square in turned.squares]))
        none = Multipliers(np.zeros(m), np.zeros(pull.stop - pull.start))
        return none, problem.weights / np.maximum(2.0 * widths, 1e-300), 0.0
    found = answer.point
    return Multipliers(np.maximum(found[:m], 0.0), found[pull]), found[eta], float(found[gamma])


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
