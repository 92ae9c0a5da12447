"""From half-spaces to vertices, and from vertices to faces: Qhull and HiGHS, called when a polytope is made."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.problem.checks import Floats
from stagewise.problem.errors import InvalidActions

FLAT = 1e-10  # singular values below this share of the largest are taken for zero


class Faces(NamedTuple):
    """A polytope in the plane it spans: x = origin + basis y with normals y ≤ offsets."""

    origin: Floats  # (d,)
    basis: Floats  # (d, k) orthonormal
    normals: Floats  # (f, k) of length 1
    offsets: Floats  # (f,)
    size: float  # the largest distance of a vertex from the origin


def faces_around(points: Floats) -> tuple[Faces, npt.NDArray[np.intp]]:
    """Return the faces of the smallest polytope around the points, and which of these are its vertices."""
    from scipy.spatial import ConvexHull, QhullError  # type: ignore[import-untyped]

    origin = points.mean(axis=0)
    _, sizes, axes = np.linalg.svd(points - origin, full_matrices=False)
    rank = int(np.sum(sizes > FLAT * max(sizes[0], FLAT * float(np.abs(points).max()))))
    if rank == 0:
        raise InvalidActions("the polytope is a single point; a choice needs at least two different vertices")
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
            f"the polytope's faces cannot be found from its {len(points)} vertices: {reason}"
        ) from None
    equations = np.unique(hull.equations, axis=0)
    faces = Faces(origin, basis, equations[:, :-1].copy(), -equations[:, -1], size)
    return faces, np.sort(hull.vertices)


def corners(rows: Floats, ends: Floats) -> Floats:
    """Return the vertices of {x: A x ≤ b}, or refuse a set that is empty, flat or without end."""
    from scipy.spatial import HalfspaceIntersection, QhullError

    norms = np.linalg.norm(rows, axis=1)
    units, reaches = rows / norms[:, np.newaxis], ends / norms
    refuse_unbounded(units)
    center, radius = deepest(units, reaches)
    if rows.shape[1] == 1:
        return np.array([[np.max(reaches[units[:, 0] < 0.0] * -1.0)], [np.min(reaches[units[:, 0] > 0.0])]])
    try:
        found = HalfspaceIntersection(np.column_stack([units, -reaches]), center).intersections
    except QhullError as error:
        reason = str(error).strip().splitlines()[0]
        raise InvalidActions(f"the polytope's vertices cannot be found from its half-spaces: {reason}") from None
    _, first = np.unique(np.round((found - center) / radius, 9), axis=0, return_index=True)
    vertices: Floats = found[np.sort(first)]
    return vertices


def refuse_unbounded(units: Floats) -> None:
    """Refuse half-spaces that some direction v ≠ 0 with A v ≤ 0 never leaves.

    There is none exactly when the normals positively span the space: A has full rank and Aᵀw = 0 for some w > 0.
    """
    from scipy.optimize import linprog  # type: ignore[import-untyped]

    count, d = units.shape
    spanning = np.linalg.matrix_rank(units) == d
    balanced = linprog(np.ones(count), A_eq=units.T, b_eq=np.zeros(d), bounds=(1.0, None), method="highs")
    if not spanning or balanced.status != 0:
        raise InvalidActions(
            f"the polytope's {count} half-spaces leave a direction without end; a set of actions must be bounded, "
            "so add the limits that are missing"
        )


def deepest(units: Floats, reaches: Floats) -> tuple[Floats, float]:
    """Return the centre and the radius of the largest ball in {x: A x ≤ b}, for rows of length 1 (Chebyshev)."""
    from scipy.optimize import linprog

    count, d = units.shape
    cost = np.zeros(d + 1)
    cost[-1] = -1.0
    bounds = [(None, None)] * d + [(0.0, None)]
    found = linprog(cost, A_ub=np.column_stack([units, np.ones(count)]), b_ub=reaches, bounds=bounds, method="highs")
    if found.status != 0:
        raise InvalidActions(
            f"the polytope's {count} half-spaces have no point in common; a choice needs a set that is not empty"
        )
    radius = float(found.x[-1])
    if not radius > 1e-9 * max(1.0, float(np.abs(reaches).max())):
        raise InvalidActions(
            f"the polytope's half-spaces leave a flat set, in which no ball of radius above {radius:.3g} fits; "
            "give its vertices instead"
        )
    return found.x[:-1], radius
