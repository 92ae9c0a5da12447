"""Polytopes, by vertices or by half-spaces, with Qhull and HiGHS."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from stagewise.problem.checks import Floats, check_array, check_table, copy_read_only
from stagewise.problem.convex import Convex, build_hull
from stagewise.problem.errors import ErrorCode, InvalidActions

FLAT = 1e-10  # relative tolerance of zero singular values


class PolytopeSet(Convex):
    """The mixtures of vertices, or the points x with A x ≤ b.

    The vertices can span less than the whole space, as those of a simplex do; half-spaces must leave a bounded set with
    an interior.

    Args:
        vertices: The vertices (K, d); or give A and b.
        A: The normals (f, d) of the half-spaces.
        b: The offsets (f,) of the half-spaces.

    Raises:
        InvalidActions: The set is empty, unbounded or degenerate.

    Example:
        >>> triangle = PolytopeSet(A=[[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], b=[0.0, 0.0, 1.0])
        >>> sorted(abs(triangle.vertices).round(12).tolist())
        [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """

    def __init__(
        self, vertices: ArrayLike | None = None, *, A: ArrayLike | None = None, b: ArrayLike | None = None
    ) -> None:
        if (vertices is None) == (A is None) or (A is None) != (b is None):
            problem = "a polytope has either vertices, or A and b of A x ≤ b; give exactly one of the two"
            raise InvalidActions(ErrorCode.CONFLICTING_SETTINGS, problem)
        if vertices is None:
            points = enumerate_vertices(*check_halfspaces(A, b))
        else:
            points, _ = check_table(vertices, "the polytope's vertices", InvalidActions, "vertex")
        self._faces, extreme = compute_faces(points)
        self.hull = build_hull(copy_read_only(points[extreme]))
        self.middle = copy_read_only(self.vertices.mean(axis=0))
        self.spread = self._faces.size * self._faces.basis @ self._faces.basis.T  # its size, in its plane
        self.longest = float(np.linalg.norm(self.vertices, axis=1).max())

    @property
    def dimension(self) -> int:
        return int(self.vertices.shape[1])

    def excess(self, point: Floats) -> float:
        """Return the largest distance beyond a face or off the plane, as a share of the polytope's size."""
        faces, offset = self._faces, point - self._faces.origin
        within = offset @ faces.basis
        beyond = max(float(np.max(faces.normals @ within - faces.offsets)), 0.0)
        return max(beyond, float(np.linalg.norm(offset - faces.basis @ within))) / faces.size

    def reach(self, start: Floats, directions: Floats) -> Floats:
        """Return the distance to the first face met; 0 off the plane."""
        faces = self._faces
        within = directions @ faces.basis
        slacks = np.maximum(faces.offsets - faces.normals @ (faces.basis.T @ (start - faces.origin)), 0.0)
        slopes = within @ faces.normals.T
        tiny = 1e-14 * np.linalg.norm(within, axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.where(slopes > tiny, slacks / slopes, np.inf).min(axis=1)
        off = np.linalg.norm(directions - within @ faces.basis.T, axis=1) > 1e-9 * np.linalg.norm(directions, axis=1)
        return np.where(np.isfinite(times) & ~off, times, 0.0)

    def support(self, directions: Floats) -> Floats:
        """Return the best vertex for each direction."""
        best: Floats = self.vertices[np.argmax(directions @ self.vertices.T, axis=1)]
        return best

    def retract(self, points: Floats) -> Floats:
        """Return points of the polytope near those given: onto its plane, then towards the middle."""
        offset = (points - self._faces.origin) @ self._faces.basis @ self._faces.basis.T
        return super().retract(self._faces.origin + offset)

    def description(self) -> dict[str, Any]:
        return {"kind": "polytope", "vertices": self.vertices.tolist()}


def check_halfspaces(matrix: Any, limits: Any) -> tuple[Floats, Floats]:
    """Return A (f, d) and b (f,) of A x ≤ b."""
    rows = check_array(matrix, "the polytope's A", InvalidActions)
    ends = check_array(limits, "the polytope's b", InvalidActions)
    if rows.ndim != 2 or rows.size == 0 or ends.shape != rows.shape[:1]:
        shapes, rule = (rows.shape, ends.shape), "(faces, d) and (faces,)"
        raise InvalidActions.must_be(ErrorCode.WRONG_SHAPE, "the shape of the polytope's A and b", shapes, rule)
    for i in np.flatnonzero(np.linalg.norm(rows, axis=1) == 0.0):
        raise degenerate("has a zero in row {i} of A, where a direction is needed", i=i)
    return rows, ends


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
        raise degenerate("is a single point; it must have at least two different vertices")
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
        template = "has {points_count} vertices, whose faces cannot be found: {error}"
        raise degenerate(template, points_count=len(points), error=get_reason(error)) from None
    equations = np.unique(hull.equations, axis=0)
    faces = Faces(origin, basis, equations[:, :-1].copy(), -equations[:, -1], size)
    return faces, np.sort(hull.vertices)


def degenerate(problem: str, /, **details: Any) -> InvalidActions:
    """Return the error of a polytope that cannot be an action set."""
    return InvalidActions(ErrorCode.INVALID_ACTION_SET, "the polytope " + problem, **details)


def get_reason(error: Exception) -> str:
    """Return the first line of Qhull's message."""
    return str(error).strip().splitlines()[0]


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
        raise degenerate("has half-spaces whose vertices cannot be found: {error}", error=get_reason(error)) from None
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
        problem = "is unbounded with its {count} half-spaces; add the missing ones, since an action set is bounded"
        raise degenerate(problem, count=count)


def find_chebyshev_ball(units: Floats, reaches: Floats) -> tuple[Floats, float]:
    """Return the centre and the radius of the largest ball in {x: A x ≤ b}, for rows of length 1 (Chebyshev)."""
    from scipy.optimize import linprog

    count, d = units.shape
    cost = np.zeros(d + 1)
    cost[-1] = -1.0
    bounds = [(None, None)] * d + [(0.0, None)]
    found = linprog(cost, A_ub=np.column_stack([units, np.ones(count)]), b_ub=reaches, bounds=bounds, method="highs")
    if found.status != 0:
        raise degenerate("is empty: its {count} half-spaces have no point in common", count=count)
    radius = float(found.x[-1])
    if not radius > 1e-9 * max(1.0, float(np.abs(reaches).max())):
        raise degenerate(
            "is flat, containing no ball of radius above {radius:.3g}; give its vertices instead", radius=radius
        )
    return found.x[:-1], radius
