"""Vertices of half-spaces and faces of vertices, by Qhull and HiGHS."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.problem.checks import Floats
from stagewise.problem.errors import ErrorCode, InvalidActions

FLAT = 1e-10  # relative tolerance of zero singular values


class Faces(NamedTuple):
    """A polytope in its affine hull: x = origin + basis y with normals y ≤ offsets."""

    origin: Floats  # (d,)
    basis: Floats  # (d, k) orthonormal
    normals: Floats  # (f, k) of length 1
    offsets: Floats  # (f,)
    size: float  # the largest distance of a vertex from the origin


def compute_faces(points: Floats) -> tuple[Faces, npt.NDArray[np.intp]]:
    """Return the faces of the smallest polytope around the points, and which of these are its vertices."""
    from scipy.spatial import ConvexHull, QhullError  # type: ignore[import-untyped]

    origin = points.mean(axis=0)
    _, sizes, axes = np.linalg.svd(points - origin, full_matrices=False)
    rank = int(np.sum(sizes > FLAT * max(sizes[0], FLAT * float(np.abs(points).max()))))
    if rank == 0:
        raise InvalidActions(
            ErrorCode.INVALID_ACTION_SET, "the polytope is a single point; it must have at least two different vertices"
        )
    basis = np.eye(points.shape[1]) if rank == points.shape[1] else axes[:rank].T
    within = (points - origin) @ basis
    size = float(np.linalg.norm(within, axis=1).max())
    if rank == 1:
        ends = np.array([np.argmin(within[:, 0]), np.argmax(within[:, 0])])
        normals, offsets = np.array([[-1.0], [1.0]]), np.array([-within[ends[0], 0], within[ends[1], 0]])
        return Faces(origin, basis, normals, offsets, size), ends
    try:
        hull = ConvexHull(within)
    except QhullError as error:
        reason = str(error).strip().splitlines()[0]
        raise InvalidActions(
            ErrorCode.INVALID_ACTION_SET,
            "the polytope's faces cannot be found from its {points_count} vertices: {reason}",
            points_count=len(points),
            reason=reason,
        ) from None
    equations = np.unique(hull.equations, axis=0)
    faces = Faces(origin, basis, equations[:, :-1].copy(), -equations[:, -1], size)
    return faces, np.sort(hull.vertices)


def enumerate_vertices(rows: Floats, ends: Floats) -> Floats:
    """Return the vertices of {x: A x ≤ b}; raise InvalidActions for an empty, flat or unbounded set."""
    from scipy.spatial import HalfspaceIntersection, QhullError

    norms = np.linalg.norm(rows, axis=1)
    units, reaches = rows / norms[:, np.newaxis], ends / norms
    check_halfspaces_bounded(units)
    center, radius = find_chebyshev_ball(units, reaches)
    if rows.shape[1] == 1:
        return np.array([[np.max(reaches[units[:, 0] < 0.0] * -1.0)], [np.min(reaches[units[:, 0] > 0.0])]])
    try:
        found = HalfspaceIntersection(np.column_stack([units, -reaches]), center).intersections
    except QhullError as error:
        reason = str(error).strip().splitlines()[0]
        raise InvalidActions(
            ErrorCode.INVALID_ACTION_SET,
            "the polytope's vertices cannot be found from its half-spaces: {reason}",
            reason=reason,
        ) from None
    _, first = np.unique(np.round((found - center) / radius, 9), axis=0, return_index=True)
    vertices: Floats = found[np.sort(first)]
    return vertices


def check_halfspaces_bounded(units: Floats) -> None:
    """Raise InvalidActions where A v ≤ 0 for some v ≠ 0.

    There is no such v exactly when A has full rank and Aᵀw = 0 for some w > 0.
    """
    from scipy.optimize import linprog  # type: ignore[import-untyped]

    count, d = units.shape
    spanning = np.linalg.matrix_rank(units) == d
    balanced = linprog(np.ones(count), A_eq=units.T, b_eq=np.zeros(d), bounds=(1.0, None), method="highs")
    if not spanning or balanced.status != 0:
        raise InvalidActions(
            ErrorCode.INVALID_ACTION_SET,
            "the polytope's {count} half-spaces leave it unbounded; add the missing half-spaces, "
            "since an action set must be bounded",
            count=count,
        )


def find_chebyshev_ball(units: Floats, reaches: Floats) -> tuple[Floats, float]:
    """Return the centre and the radius of the largest ball in {x: A x ≤ b}, for rows of length 1 (Chebyshev)."""
    from scipy.optimize import linprog

    count, d = units.shape
    cost = np.zeros(d + 1)
    cost[-1] = -1.0
    bounds = [(None, None)] * d + [(0.0, None)]
    found = linprog(cost, A_ub=np.column_stack([units, np.ones(count)]), b_ub=reaches, bounds=bounds, method="highs")
    if found.status != 0:
        raise InvalidActions(
            ErrorCode.INVALID_ACTION_SET,
            "the polytope's {count} half-spaces have no point in common; an action set must not be empty",
            count=count,
        )
    radius = float(found.x[-1])
    if not radius > 1e-9 * max(1.0, float(np.abs(reaches).max())):
        raise InvalidActions(
            ErrorCode.INVALID_ACTION_SET,
            "the polytope's half-spaces leave a flat set, which contains no ball of radius above "
            "{radius:.3g}; give its vertices instead",
            radius=radius,
        )
    return found.x[:-1], radius
