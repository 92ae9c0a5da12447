"""Parts of a convex set: what can be hoped for there at most, and a step uphill."""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.problem.convex import Convex, Hull
from stagewise.rules.conic_program import ConicProgram
from stagewise.rules.relaxation import Hope, Relaxed, over_ellipsoid, over_points


class Region(NamedTuple):
    """A part of a problem: the set's hull shrunk towards the safe action, and the limits that count there."""

    hope: Hope
    hull: Hull

    def relaxed(self) -> Relaxed:
        """Return an upper bound over the region."""
        if len(self.hull.points):
            return over_points(self.hope, self.hull.points)
        return over_ellipsoid(self.hope, self.hull.center, self.hull.factor)

    @property
    def widest(self) -> float:
        """No point of the region has a larger width in the last norm."""
        norm, hull = self.hope.norms[-1], self.hull
        if len(hull.points):
            return float(np.linalg.norm(hull.points @ norm.T, axis=1).max())
        return float(np.linalg.norm(norm @ hull.center) + np.linalg.norm(norm @ hull.factor, 2))

    def ascended(self, safe: Floats, point: Floats) -> Floats | None:
        """Return a point of the region that hopes for at least as much as the given one, if that is in the region.

            maximise <x, e + Σ ω_k u_k>  subject to  <x, c_j> + ρ_j ‖W x‖ ≤ limit_j,  u_k = W_kᵀW_k y/‖W_k y‖ at y

        Norms are above their tangents, so the problem's own objective rises at least as much (the convex–concave
        procedure, Yuille and Rangarajan 2003). Where ρ_j < 0 the norm there is replaced too, which keeps to the limit.
        """
        hope = self.hope
        tangents = [tangent(norm, point) for norm in hope.norms]
        slope = hope.reward + sum(weight * way for weight, way in zip(hope.weights, tangents, strict=True))
        points, center, factor, _ = self.hull
        base, ways = (safe, points - safe) if len(points) else (center, factor.T)
        count = len(ways)  # x = base + Σ v_i ways_i, and t ≥ ‖W x‖
        program = ConicProgram(count + 1)
        program.cost[:count] = -ways @ slope
        eye = np.eye(count + 1)
        if len(points):
            shares = np.vstack([eye[:count], np.append(-np.ones(count), 0.0)])
            program.at_least_zero(shares, np.append(np.zeros(count), 1.0))
        else:
            program.within(np.vstack([np.zeros(count + 1), eye[:count]]), eye[0])
        norm = hope.norms[-1]
        images = np.vstack([np.zeros(count), norm @ ways.T])
        program.within(np.column_stack([images, np.eye(len(images))[0]]), np.append(0.0, norm @ base))
        convex = hope.doubts >= 0.0
        costs = hope.costs + np.where(convex, 0.0, hope.doubts)[:, np.newaxis] * tangents[-1]
        rows = np.column_stack([-costs @ ways.T, -np.where(convex, hope.doubts, 0.0)])
        program.at_least_zero(rows, hope.limits - costs @ base)
        answer = program.solved()
        if answer is None:
            return None
        found: Floats = base + answer.point[:count] @ ways
        return found


def region(hope: Hope, actions: Convex, safe: Floats, share: float = 1.0) -> Region:
    """Return x₀ + share (A − x₀) with the limits of `hope`."""
    return Region(hope, actions.hull.shrunk(safe, share))


def tangent(norm: Floats, point: Floats) -> Floats:
    """Return the gradient of ‖W x‖ at a point, zero where there is none."""
    image = norm @ point
    size = float(np.linalg.norm(image))
    slope: Floats = image @ norm / size if size > 0.0 else np.zeros(point.size)
    return slope
