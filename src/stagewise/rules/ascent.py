"""One step uphill in a convex set: the norms to be maximised are replaced by their tangents."""

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.rules.conic_program import ConicProgram
from stagewise.rules.regions import Region


def ascended(part: Region, safe: Floats, point: Floats) -> Floats | None:
    """Return a point of the region that hopes for at least as much as the given one, if that is in the region.

        maximise <x, e + Σ ω_k u_k>  subject to  <x, c_j> + ρ_j ‖W x‖ ≤ limit_j,  u_k = W_kᵀW_k y/‖W_k y‖ at the point y

    Norms are above their tangents, so the problem's own objective rises at least as much (the convex–concave procedure,
    Yuille and Rangarajan 2003). Where ρ_j < 0 the norm there is replaced too, which keeps to the limit.
    """
    hope = part.hope
    tangents = [tangent(norm, point) for norm in hope.norms]
    slope = hope.reward + sum(weight * way for weight, way in zip(hope.weights, tangents, strict=True))
    points, center, factor, _ = part.hull
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


def tangent(norm: Floats, point: Floats) -> Floats:
    """Return the gradient of ‖W x‖ at a point, zero where there is none."""
    image = norm @ point
    size = float(np.linalg.norm(image))
    slope: Floats = image @ norm / size if size > 0.0 else np.zeros(point.size)
    return slope
