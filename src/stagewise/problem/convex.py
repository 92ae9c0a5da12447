"""Convex action sets: their base, ellipsoids, balls and boxes."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from stagewise.problem.actions import ActionSet, FiniteSet, Listed
from stagewise.problem.checks import Floats, check_array, check_positive, check_vector, copy_read_only
from stagewise.problem.errors import ErrorCode, InvalidActions

ROUNDING = 1e-9  # relative tolerance of `contains`
MOST_HALVED = 14  # largest dimension of a box whose 2^d corners are listed


class Hull(NamedTuple):
    """A body that contains a set: the mixtures of points, or center + factor v for ‖v‖ ≤ 1."""

    points: Floats  # (N, d); empty: an ellipsoid
    center: Floats  # (d,)
    factor: Floats  # (d, d)
    exact: bool  # whether it equals the set; otherwise bounds over it are valid and looser

    def shrink(self, start: Floats, share: float) -> "Hull":
        """Return start + share (hull − start)."""
        points, center = start + share * (self.points - start), start + share * (self.center - start)
        return Hull(points, center, share * self.factor, self.exact)


def build_hull(points: Floats) -> Hull:
    return Hull(points, points[0], np.zeros((points.shape[1], 0)), True)


class Convex(ActionSet, ABC):
    """Every point of a closed, bounded, convex set can be played.

    A convex set that contains the safe action x₀ contains the ray from x₀ to each of its points. A new kind of set
    defines `dimension`, `reach`, `support` and `description`; it can override `longest` and `hull` with tighter values.
    """

    is_list = False
    between = True

    @abstractmethod
    def reach(self, start: Floats, directions: Floats) -> Floats:
        """Return the largest t ≥ 0 with start + t v in the set, for each direction v (M, d) and a start inside.

        0 for the zero direction, and for one that leaves the set, or its plane, at once.
        """

    @abstractmethod
    def support(self, directions: Floats) -> Floats:
        """Return a point (M, d) that maximises <x, v> over the set, for each v."""

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """Return the set as JSON values: its kind and the arguments of its constructor."""

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> Self:
        return cls(**{name: value for name, value in description.items() if name != "kind"})

    @property
    def vertices(self) -> Floats:
        """The extreme points (N, d), where they can be listed."""
        if not self.count:
            raise self._unsupported("has infinitely many extreme points", "FiniteSet, RaySet, BoxSet or PolytopeSet")
        return self.hull.points

    @property
    def count(self) -> int:
        return len(self.hull.points) if self.hull.exact else 0

    def at(self, index: int) -> Any:
        return self.vertices[index]

    def most(self, directions: Floats) -> Floats:
        return np.asarray(np.einsum("kd,kd->k", directions, self.support(directions)))

    def as_rays(self) -> Listed:
        """Raise InvalidActions: there are infinitely many rays."""
        raise self._unsupported("has infinitely many rays", "RaySet; LCLUCB and ROFUL take convex sets")

    def as_list(self) -> Listed:
        """Return the vertices: every other point is a mixture of them."""
        return FiniteSet.from_view(self.vertices)

    @cached_property
    def sides(self) -> tuple[Floats, Floats]:
        """The lowest and the highest value of each feature: the smallest box around the set."""
        axes = np.eye(self.dimension or 0)
        return self.support(-axes).diagonal(), self.support(axes).diagonal()

    @cached_property
    def middle(self) -> Floats:
        """A point in the interior."""
        axes = np.eye(self.dimension or 0)
        inside: Floats = self.support(np.vstack([axes, -axes])).mean(axis=0)
        return inside

    @cached_property
    def spread(self) -> Floats:
        """A matrix G (d, d) with middle + G v about as large as the set, for ‖v‖ ≤ 1."""
        low, high = self.sides
        return np.diag(0.5 * (high - low))

    @cached_property
    def longest(self) -> float:
        """An upper bound on the norm of all points."""
        low, high = self.sides
        return float(np.linalg.norm(np.maximum(np.abs(low), np.abs(high))))

    @cached_property
    def hull(self) -> Hull:
        """The hull over which optimistic rewards are bounded; by default an ellipsoid around the sides."""
        low, high = self.sides
        half = np.diag(0.5 * (high - low)) * float(low.size) ** 0.5
        return Hull(np.empty((0, low.size)), 0.5 * (low + high), half, False)

    def excess(self, point: Floats) -> float:
        """Return the distance of a point from the set, relative to its size; at most 0: inside."""
        offset = (point - self.middle)[np.newaxis]
        (far,) = self.reach(self.middle, offset)
        return 1.0 / float(far) - 1.0 if far > 0.0 else (np.inf if np.any(offset) else -1.0)

    def contains(self, point: ArrayLike) -> bool:
        """Return whether a point is in the set, up to rounding.

        Args:
            point: The features (d,).

        Returns:
            True if the set contains the point.

        Raises:
            InvalidActions: The point has another dimension or is not finite.
        """
        vector = check_vector(point, "the point", InvalidActions)
        if self.dimension not in (None, vector.size):
            self._check_dimension("the point", vector.size)
        return self.excess(vector) <= ROUNDING

    def find_exits(self, start: Floats, directions: Floats) -> Floats:
        """Return where the rays from a start inside leave the set (M, d)."""
        return start + self.reach(start, directions)[:, np.newaxis] * directions

    def retract(self, points: Floats) -> Floats:
        """Return points of the set near the given ones; points outside are moved towards the middle."""
        offsets = points - self.middle
        return self.middle + np.minimum(self.reach(self.middle, offsets), 1.0)[:, np.newaxis] * offsets

    def with_dimension(self, dimension: int) -> "Convex":
        """Return the set, or raise InvalidActions for another dimension."""
        if self.dimension != dimension:
            self._check_dimension("the safe action", dimension)
        return self

    def _check_dimension(self, other: str, dimension: int) -> None:
        subject = f"the number of features of the {type(self).__name__}"
        code = ErrorCode.DIMENSION_MISMATCH
        raise InvalidActions.must_agree(code, subject, self.dimension, f"that of {other}", dimension)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dimension or 'any number of'} features)"


class EllipsoidSet(Convex):
    """The points x with (x − c)ᵀ P⁻¹ (x − c) ≤ 1.

    The half-axes are the square roots of P's eigenvalues, along its eigenvectors.

    Args:
        shape: P (d, d), symmetric and positive definite.
        center: c (d,); None: the origin.

    Raises:
        InvalidActions: P is not symmetric and positive definite, or the dimensions differ.

    Example:
        >>> EllipsoidSet([[4.0, 0.0], [0.0, 1.0]]).support(np.array([[1.0, 0.0]]))
        array([[2., 0.]])
    """

    shape: Floats
    """P (d, d)."""
    center: Floats | None
    """c (d,); None: the origin, in any dimension."""

    def __init__(self, shape: ArrayLike, center: ArrayLike | None = None) -> None:
        matrix, what = check_array(shape, "the ellipsoid's shape", InvalidActions), "the ellipsoid's shape"
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
            raise InvalidActions.must_be(ErrorCode.WRONG_SHAPE, what, matrix.shape, "a square matrix (d, d)")
        if not np.abs(matrix - matrix.T).max() <= 1e-12 * np.abs(matrix).max():
            rule = "symmetric, the P of (x − c)ᵀ P⁻¹ (x − c) ≤ 1"
            raise InvalidActions.must_be(ErrorCode.INVALID_ACTION_SET, what, matrix.tolist(), rule)
        smallest, largest = np.linalg.eigvalsh(matrix)[[0, -1]]
        if not smallest > 1e-13 * largest:
            rule = "greater than 0, the matrix being positive definite"
            raise InvalidActions.must_be(ErrorCode.INVALID_ACTION_SET, f"an eigenvalue of {what}", smallest, rule)
        self.shape = copy_read_only(matrix)
        self.middle = copy_read_only(
            np.zeros(len(matrix)) if center is None else check_vector(center, "the ellipsoid's center", InvalidActions)
        )
        if self.middle.size != len(matrix):
            raise InvalidActions.must_agree(
                ErrorCode.DIMENSION_MISMATCH,
                "the size of the center",
                self.middle.size,
                "that of the shape",
                len(matrix),
            )
        self.center = self.middle
        self._factor = copy_read_only(np.asarray(np.linalg.cholesky(matrix)))  # F, P = FFᵀ: c + F v, ‖v‖ ≤ 1
        self._inverse = copy_read_only(np.asarray(np.linalg.inv(self._factor)))
        self._measure(self._factor, float(np.linalg.norm(self._factor, 2)))

    def _measure(self, factor: Floats, axis: float) -> None:
        """Set the size of the set from F (d, d) and the longest half-axis."""
        self.spread, self.longest = factor, float(np.linalg.norm(self.middle)) + axis
        self.hull = Hull(np.empty((0, self.middle.size)), self.middle, factor, True)

    @property
    def dimension(self) -> int | None:
        return None if self.center is None else int(self.center.size)

    def excess(self, point: Floats) -> float:
        """Return ‖F⁻¹(x − c)‖ − 1."""
        return float(np.linalg.norm(np.dot(self._inverse, point - self.middle))) - 1.0

    def reach(self, start: Floats, directions: Floats) -> Floats:
        """Return the larger root t of ‖w + t v‖² = 1, where w = F⁻¹(start − c) and v is F⁻¹ times the direction.

        a t² + 2b t − c = 0  with  a = ‖v‖²,  b = <v, w>,  c = 1 − ‖w‖² ≥ 0
        """
        w, v = np.dot(self._inverse, start - self.middle), np.dot(directions, self._inverse.T)
        a, b, c = np.einsum("ij,ij->i", v, v), v @ w, max(1.0 - float(w @ w), 0.0)
        root = np.sqrt(b * b + a * c)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(b > 0.0, c / (b + root), (root - b) / a)  # the form without cancellation
        return np.where(a > 0.0, t, 0.0)

    def support(self, directions: Floats) -> Floats:
        """Return c + P v/√(vᵀPv); any boundary point where v is zero."""
        turned = np.dot(directions, self._factor)
        sizes, first = np.linalg.norm(turned, axis=1, keepdims=True), np.zeros_like(turned)
        first[:, 0] = 1.0
        units = np.divide(turned, sizes, out=first, where=sizes > 0.0)
        best: Floats = self.middle + np.dot(units, self._factor.T)
        return best

    def description(self) -> dict[str, Any]:
        return {"kind": "ellipsoid", "shape": self.shape.tolist(), "center": self.middle.tolist()}


class BallSet(EllipsoidSet):
    """The points within a radius of a center.

    Args:
        radius: The radius, greater than 0.
        center: The center (d,); None: the origin, in any dimension.

    Raises:
        InvalidActions: The radius is not a positive number, or the center is not a vector.

    Example:
        >>> BallSet(2.0).with_dimension(2).reach(np.zeros(2), np.array([[0.0, 4.0]]))
        array([0.5])
    """

    radius: float
    """The radius."""

    def __init__(self, radius: float, center: ArrayLike | None = None) -> None:
        self.radius = check_positive(radius, "the ball's radius", InvalidActions)
        self.center = None
        if center is not None:
            self.center = copy_read_only(check_vector(center, "the ball's center", InvalidActions))
        self.middle = np.zeros(()) if self.center is None else self.center
        self._factor, self._inverse = np.array(self.radius), np.array(1.0 / self.radius)  # of any dimension
        self._measure(self.radius * np.eye(self.middle.size), self.radius)

    def with_dimension(self, dimension: int) -> Convex:
        return BallSet(self.radius, np.zeros(dimension)) if self.center is None else super().with_dimension(dimension)

    def description(self) -> dict[str, Any]:
        return {"kind": "ball", "radius": self.radius, "center": None if self.center is None else self.center.tolist()}


class BoxSet(Convex):
    """The points x with low ≤ x ≤ high in every feature.

    Args:
        low: The smallest value of each feature (d,).
        high: The largest value of each feature (d,).

    Raises:
        InvalidActions: `low` is not below `high`, or their lengths differ.

    Example:
        >>> BoxSet([0.0, 0.0], [1.0, 2.0]).vertices.tolist()
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
            raise InvalidActions.must_agree(
                ErrorCode.DIMENSION_MISMATCH, "the size of low", self.low.size, "that of high", self.high.size
            )
        for i in np.flatnonzero(self.low >= self.high):
            subject, rule = f"the box's low in feature {i}", f"below its high, {self.high[i]}"
            raise InvalidActions.must_be(ErrorCode.INVALID_ACTION_SET, subject, self.low[i], rule)
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
            rule = f"at most {MOST_HALVED} to list the 2^d corners"
            raise InvalidActions.must_be(ErrorCode.TOO_LARGE, "the dimension of the box", self.dimension, rule)
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
