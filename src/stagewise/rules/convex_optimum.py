"""The true optimum over a convex set under linear limits."""

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.problem.convex import Convex, Hull
from stagewise.rules.conic_program import ConicProgram

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
