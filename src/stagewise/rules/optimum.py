"""The best point of a convex set under linear limits, for one who knows the truth."""

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.problem.convex import Convex
from stagewise.problem.polytope import Box, Polytope
from stagewise.rules.conic_program import ConicProgram


def best_point(actions: Convex, reward: Floats, costs: Floats, limits: Floats) -> float:
    """Maximise <x, θ> over the set subject to <x, μ_j> ≤ τ_j: the value.

    Boxes and polytopes by HiGHS; balls and ellipsoids, x = c + F v with ‖v‖ ≤ 1, by the dual

        min over λ ≥ 0 of  <λ, τ> + <c, g> + ‖Fᵀg‖,   g = θ − Σ λ_j μ_j
    """
    top = float(reward @ actions.support(reward[np.newaxis])[0])
    if limits.size == 0 or np.all(costs @ actions.support(reward[np.newaxis])[0] <= limits):
        return top
    if isinstance(actions, Box | Polytope):
        return best_by_program(actions, reward, costs, limits)
    center, factor, m = actions.middle, actions.spread, limits.size
    program = ConicProgram(m + 1)
    program.cost[:m], program.cost[m] = limits - costs @ center, 1.0
    program.at_least_zero(np.eye(m + 1)[:m], np.zeros(m))
    rows = np.zeros((1 + center.size, m + 1))
    rows[0, m], rows[1:, :m] = 1.0, -(factor.T @ costs.T)
    program.within(rows, np.append(0.0, factor.T @ reward))
    answer = program.solved()
    multipliers = np.zeros(m) if answer is None else np.maximum(answer.point[:m], 0.0)
    slope = reward - multipliers @ costs
    return min(top, float(multipliers @ limits + center @ slope + np.linalg.norm(factor.T @ slope)))


def best_by_program(actions: Box | Polytope, reward: Floats, costs: Floats, limits: Floats) -> float:
    """Return the value of the linear program: over the box itself, or over the shares of the vertices."""
    from scipy.optimize import linprog  # type: ignore[import-untyped]

    if isinstance(actions, Box):
        sides = np.column_stack([actions.low, actions.high])
        found = linprog(-reward, A_ub=costs, b_ub=limits, bounds=sides, method="highs")
    else:
        corners = actions.vertices
        ones = np.ones((1, len(corners)))
        found = linprog(-corners @ reward, costs @ corners.T, limits, ones, np.ones(1), (0.0, None), method="highs")
    return -float(found.fun)
