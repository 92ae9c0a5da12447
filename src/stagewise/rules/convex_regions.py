"""Regions of a convex set: an upper bound on the optimistic reward there, and an ascent step."""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.problem.convex import Convex, Hull
from stagewise.rules.conic_program import ConicProgram
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
