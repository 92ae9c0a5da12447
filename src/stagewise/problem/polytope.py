"""Convex sets with corners: boxes, and polytopes given by their vertices or by half-spaces."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from stagewise.problem.checks import Floats, array, frozen, table_of, vector_of
from stagewise.problem.convex import Convex, Hull, hull_of
from stagewise.problem.errors import InvalidActions
from stagewise.problem.hull import corners, faces_around

MOST_HALVED = 14  # features of a box whose corners are listed; there are 2^14 of them


class Box(Convex):
    """The points x with low ≤ x ≤ high in every feature.

    >>> Box([0.0, 0.0], [1.0, 2.0]).vertices.tolist()
    [[0.0, 0.0], [0.0, 2.0], [1.0, 0.0], [1.0, 2.0]]
    """

    low: Floats
    """The smallest value of each feature (d,)."""
    high: Floats
    """The largest value of each feature (d,)."""

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        self.low = frozen(vector_of(low, "the box's low", InvalidActions))
        self.high = frozen(vector_of(high, "the box's high", InvalidActions))
        if self.low.shape != self.high.shape:
            raise InvalidActions(f"the box's low has {self.low.size} features and its high {self.high.size}")
        if not np.all(self.low < self.high):
            i = int(np.argmin(self.low < self.high))
            raise InvalidActions(
                f"the box goes from {self.low[i]} to {self.high[i]} in feature {i}; low must be below high everywhere"
            )
        self.sides, self.middle = (self.low, self.high), frozen(0.5 * (self.low + self.high))

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
        return hull_of(frozen(np.where(bits == 1, self.high, self.low)))

    @property
    def vertices(self) -> Floats:
        """The 2^d corners (2^d, d)."""
        if self.dimension > MOST_HALVED:
            raise InvalidActions(
                f"the box has 2^{self.dimension} corners; listing them is possible up to {1 << MOST_HALVED}"
            )
        return super().vertices

    def reach(self, start: Floats, directions: Floats) -> Floats:
        """Return the distance to the first side met."""
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.where(directions > 0.0, self.high - start, self.low - start) / directions
        times = np.where(directions == 0.0, np.inf, np.maximum(times, 0.0)).min(axis=1)
        return np.where(np.isfinite(times), times, 0.0)

    def exits(self, start: Floats, directions: Floats) -> Floats:
        """Return where rays leave the box, without rounding beyond its sides."""
        return np.clip(super().exits(start, directions), self.low, self.high)

    def support(self, directions: Floats) -> Floats:
        """Return the corner on the side of each direction."""
        return np.where(directions > 0.0, self.high, self.low)

    def retracted(self, points: Floats) -> Floats:
        """Return the nearest points of the box."""
        return np.clip(points, self.low, self.high)

    def description(self) -> dict[str, Any]:
        return {"kind": "box", "low": self.low.tolist(), "high": self.high.tolist()}


class Polytope(Convex):
    """The mixtures of `vertices` (K, d), or the points x with A x ≤ b, which must be bounded and have an inside.

    Vertices may span less than the whole space, as those of a simplex do.

    >>> triangle = Polytope(A=[[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], b=[0.0, 0.0, 1.0])
    >>> sorted(abs(triangle.vertices).round(12).tolist())
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """

    def __init__(
        self, vertices: ArrayLike | None = None, *, A: ArrayLike | None = None, b: ArrayLike | None = None
    ) -> None:
        if (vertices is None) == (A is None) or (A is None) != (b is None):
            raise InvalidActions("a polytope has either vertices, or A and b of A x ≤ b; give exactly one of the two")
        if vertices is None:
            points = corners(*halfspaces(A, b))
        else:
            points, _ = table_of(vertices, "the polytope's vertices", InvalidActions, "vertex")
        self._faces, extreme = faces_around(points)
        self.hull = hull_of(frozen(points[extreme]))
        self.middle = frozen(self.vertices.mean(axis=0))
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

    def retracted(self, points: Floats) -> Floats:
        """Return points of the polytope near those given: onto its plane, then towards the middle."""
        offset = (points - self._faces.origin) @ self._faces.basis @ self._faces.basis.T
        return super().retracted(self._faces.origin + offset)

    def description(self) -> dict[str, Any]:
        return {"kind": "polytope", "vertices": self.vertices.tolist()}


def halfspaces(matrix: Any, limits: Any) -> tuple[Floats, Floats]:
    """Return A (f, d) and b (f,) of A x ≤ b."""
    rows, ends = array(matrix, "the polytope's A", InvalidActions), array(limits, "the polytope's b", InvalidActions)
    if rows.ndim != 2 or rows.size == 0 or ends.shape != rows.shape[:1]:
        raise InvalidActions(
            f"the polytope's A has shape {rows.shape} and its b {ends.shape}; they must be (faces, d) and (faces,)"
        )
    if not np.linalg.norm(rows, axis=1).all():
        i = int(np.argmin(np.linalg.norm(rows, axis=1)))
        raise InvalidActions(f"row {i} of the polytope's A is zero; every half-space needs a direction")
    return rows, ends
