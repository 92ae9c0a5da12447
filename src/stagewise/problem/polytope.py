"""Boxes and polytopes."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from stagewise.problem.checks import Floats, check_array, check_table, check_vector, copy_read_only
from stagewise.problem.convex import Convex, Hull, build_hull
from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.problem.hull import compute_faces, enumerate_vertices

MOST_HALVED = 14  # largest dimension of a box whose 2^d corners are listed


class Box(Convex):
    """The points x with low ≤ x ≤ high in every feature.

    Args:
        low: The smallest value of each feature (d,).
        high: The largest value of each feature (d,).

    Raises:
        InvalidActions: `low` is not below `high`, or their lengths differ.

    Example:
        >>> Box([0.0, 0.0], [1.0, 2.0]).vertices.tolist()
        [[0.0, 0.0], [0.0, 2.0], [1.0, 0.0], [1.0, 2.0]]
    """

    low: Floats
    """The smallest value of each feature (d,)."""
    high: Floats
    """The largest value of each feature (d,)."""

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        self.low = copy_read_only(check_vector(low, "the box's low", InvalidActions))
        self.high = copy_read_only(check_vector(high, "the box's high", InvalidActions))
        if self.low.shape != self.high.shape:
            raise InvalidActions(
                ErrorCode.DIMENSION_MISMATCH,
                "the box's low has {size} features and its high has {size_2}; they must agree",
                size=self.low.size,
                size_2=self.high.size,
            )
        if not np.all(self.low < self.high):
            i = int(np.argmin(self.low < self.high))
            raise InvalidActions(
                ErrorCode.INVALID_ACTION_SET,
                "the box ranges from {low} to {high} in feature {i}; low must be below high in every feature",
                low=self.low[i],
                high=self.high[i],
                i=i,
            )
        self.sides, self.middle = (self.low, self.high), copy_read_only(0.5 * (self.low + self.high))

    @property
    def dimension(self) -> int:
        return int(self.low.size)

    @cached_property
    def hull(self) -> Hull:
        """The 2^d corners; where they are too many, the ellipsoid around them."""
        d = self.dimension
        if d > MOST_HALVED:
            return super().hull
        bits = (np.arange(1 << d)[:, np.newaxis] >> np.arange(d)[::-1]) & 1
        return build_hull(copy_read_only(np.where(bits == 1, self.high, self.low)))

    @property
    def vertices(self) -> Floats:
        """The 2^d corners (2^d, d)."""
        if self.dimension > MOST_HALVED:
            raise InvalidActions(
                ErrorCode.TOO_LARGE,
                "the box has 2^{dimension} corners; at most {value} can be listed",
                dimension=self.dimension,
                value=1 << MOST_HALVED,
            )
        return super().vertices

    def reach(self, start: Floats, directions: Floats) -> Floats:
        """Return the distance to the first side met."""
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.where(directions > 0.0, self.high - start, self.low - start) / directions
        times = np.where(directions == 0.0, np.inf, np.maximum(times, 0.0)).min(axis=1)
        return np.where(np.isfinite(times), times, 0.0)

    def find_exits(self, start: Floats, directions: Floats) -> Floats:
        """Return where rays leave the box, without rounding beyond its sides."""
        return np.clip(super().find_exits(start, directions), self.low, self.high)

    def support(self, directions: Floats) -> Floats:
        """Return the corner on the side of each direction."""
        return np.where(directions > 0.0, self.high, self.low)

    def retract(self, points: Floats) -> Floats:
        """Return the nearest points of the box."""
        return np.clip(points, self.low, self.high)

    def description(self) -> dict[str, Any]:
        return {"kind": "box", "low": self.low.tolist(), "high": self.high.tolist()}


class Polytope(Convex):
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
        >>> triangle = Polytope(A=[[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], b=[0.0, 0.0, 1.0])
        >>> sorted(abs(triangle.vertices).round(12).tolist())
        [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """

    def __init__(
        self, vertices: ArrayLike | None = None, *, A: ArrayLike | None = None, b: ArrayLike | None = None
    ) -> None:
        if (vertices is None) == (A is None) or (A is None) != (b is None):
            raise InvalidActions(
                ErrorCode.CONFLICTING_SETTINGS,
                "a polytope has either vertices, or A and b of A x ≤ b; give exactly one of the two",
            )
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
    rows, ends = (
        check_array(matrix, "the polytope's A", InvalidActions),
        check_array(limits, "the polytope's b", InvalidActions),
    )
    if rows.ndim != 2 or rows.size == 0 or ends.shape != rows.shape[:1]:
        raise InvalidActions(
            ErrorCode.WRONG_SHAPE,
            "the polytope's A has shape {shape} and its b has {shape_2}; they must be (faces, d) and (faces,)",
            shape=rows.shape,
            shape_2=ends.shape,
        )
    if not np.linalg.norm(rows, axis=1).all():
        i = int(np.argmin(np.linalg.norm(rows, axis=1)))
        raise InvalidActions(
            ErrorCode.INVALID_ACTION_SET, "row {i} of the polytope's A is zero; every half-space needs a direction", i=i
        )
    return rows, ends
