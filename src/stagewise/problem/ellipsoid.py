"""Convex sets without corners: ellipsoids, and balls."""

from typing import Any

import numpy as np

from stagewise.problem.checks import Floats, array, frozen, number
from stagewise.problem.convex import Convex, point_of
from stagewise.problem.errors import InvalidActions


class Ellipsoid(Convex):
    """The points x with (x − c)ᵀ P⁻¹ (x − c) ≤ 1, for a shape P that is symmetric and positive definite.

    Its half-axes are the roots of P's eigenvalues, along its eigenvectors.

    >>> Ellipsoid([[4.0, 0.0], [0.0, 1.0]]).support(np.array([[1.0, 0.0]]))
    array([[2., 0.]])
    """

    __slots__ = ("center", "factor", "inverse", "shape")

    shape: Floats  # (d, d) P
    center: Floats  # (d,) c
    factor: Floats  # (d, d) F with P = FFᵀ: the set is c + F v for ‖v‖ ≤ 1
    inverse: Floats  # (d, d) F⁻¹

    def __init__(self, shape: Any, center: Any = None) -> None:
        given = array(shape, "the ellipsoid's shape", InvalidActions)
        if given.ndim != 2 or given.shape[0] != given.shape[1] or given.size == 0:
            raise InvalidActions(f"the ellipsoid's shape has shape {given.shape}; it must be a square matrix (d, d)")
        if not np.abs(given - given.T).max() <= 1e-12 * np.abs(given).max():
            raise InvalidActions("the ellipsoid's shape is not symmetric; give P of (x − c)ᵀ P⁻¹ (x − c) ≤ 1")
        smallest, largest = np.linalg.eigvalsh(given)[[0, -1]]
        if not smallest > 1e-13 * largest:
            raise InvalidActions(
                f"the ellipsoid's shape has an eigenvalue of {smallest:.3g} beside one of {largest:.3g}; it must be "
                "positive definite, since every half-axis is the root of an eigenvalue"
            )
        self.shape = frozen(given)
        self.center = frozen(np.zeros(len(given)) if center is None else point_of(center, "the ellipsoid's center"))
        if self.center.size != len(given):
            raise InvalidActions(f"the ellipsoid's center has {self.center.size} features; its shape has {len(given)}")
        factor: Floats = np.asarray(np.linalg.cholesky(given), dtype=np.float64)
        self.factor = frozen(factor)
        self.inverse = frozen(np.asarray(np.linalg.inv(factor), dtype=np.float64))

    @property
    def dimension(self) -> int | None:
        """The number of features."""
        return int(self.center.size)

    @property
    def middle(self) -> Floats:
        """The center."""
        return self.center

    @property
    def spread(self) -> Floats:
        """F."""
        return self.factor

    @property
    def longest(self) -> float:
        """The center's norm and the longest half-axis together."""
        return float(np.linalg.norm(self.center) + np.linalg.norm(self.factor, 2))

    def excess(self, point: Any) -> float:
        """Return ‖F⁻¹(x − c)‖ − 1."""
        return float(np.linalg.norm(self.inverse @ (np.asarray(point) - self.center))) - 1.0

    def reach(self, start: Floats, directions: Floats) -> Floats:
        """Return the larger root t of ‖F⁻¹(start + t v − c)‖² = 1."""
        offset = self.inverse @ (start - self.center)
        return longest_chord(offset, directions @ self.inverse.T)

    def retracted(self, points: Floats) -> Floats:
        """Return the points, those outside pulled in towards the center."""
        offsets = points - self.center
        sizes = np.linalg.norm(offsets @ self.inverse.T, axis=1, keepdims=True)
        pulled: Floats = self.center + offsets / np.maximum(sizes, 1.0)
        return pulled

    def support(self, directions: Floats) -> Floats:
        """Return c + P v/√(vᵀPv)."""
        turned = directions @ self.factor
        sizes = np.linalg.norm(turned, axis=1, keepdims=True)
        units = np.divide(turned, sizes, out=first_axes(turned), where=sizes > 0.0)
        best: Floats = self.center + units @ self.factor.T
        return best

    def description(self) -> dict[str, Any]:
        """Return kind, shape and center."""
        return {"kind": "ellipsoid", "shape": self.shape.tolist(), "center": self.center.tolist()}


class Ball(Convex):
    """The points within `radius` of the center, which is the origin unless given.

    Around the origin it fits any number of features.

    >>> Ball(2.0).placed(2).reach(np.zeros(2), np.array([[0.0, 4.0]]))
    array([0.5])
    """

    __slots__ = ("center", "radius")

    radius: float
    center: Floats | None

    def __init__(self, radius: Any, center: Any = None) -> None:
        self.radius = number(radius, "the ball's radius", InvalidActions)
        if not self.radius > 0.0:
            raise InvalidActions(f"the ball's radius is {self.radius}; it must be greater than 0")
        self.center = None if center is None else frozen(point_of(center, "the ball's center"))

    @property
    def dimension(self) -> int | None:
        """The number of features, once it is known."""
        return None if self.center is None else int(self.center.size)

    @property
    def middle(self) -> Floats:
        """The center."""
        return np.zeros(()) if self.center is None else self.center

    def placed(self, dimension: int) -> Convex:
        """Return the ball in so many dimensions."""
        return Ball(self.radius, np.zeros(dimension)) if self.center is None else super().placed(dimension)

    @property
    def spread(self) -> Floats:
        """The radius along every axis."""
        return self.radius * np.eye(self.middle.size)

    @property
    def longest(self) -> float:
        """The center's norm and the radius together."""
        return float(np.linalg.norm(self.middle)) + self.radius

    def excess(self, point: Any) -> float:
        """Return ‖x − c‖/radius − 1."""
        return float(np.linalg.norm(np.asarray(point) - self.middle)) / self.radius - 1.0

    def reach(self, start: Floats, directions: Floats) -> Floats:
        """Return the larger root t of ‖start + t v − c‖² = radius²."""
        return longest_chord((start - self.middle) / self.radius, directions / self.radius)

    def retracted(self, points: Floats) -> Floats:
        """Return the nearest points of the ball."""
        offsets = points - self.middle
        sizes = np.linalg.norm(offsets, axis=1, keepdims=True) / self.radius
        nearest: Floats = self.middle + offsets / np.maximum(sizes, 1.0)
        return nearest

    def support(self, directions: Floats) -> Floats:
        """Return c + radius v/‖v‖."""
        sizes = np.linalg.norm(directions, axis=1, keepdims=True)
        units = np.divide(directions, sizes, out=first_axes(directions), where=sizes > 0.0)
        best: Floats = self.middle + self.radius * units
        return best

    def description(self) -> dict[str, Any]:
        """Return kind, radius and center."""
        return {"kind": "ball", "radius": self.radius, "center": None if self.center is None else self.center.tolist()}


def first_axes(directions: Floats) -> Floats:
    """Return the first axis for each direction: where the direction is zero, any point of the boundary will do."""
    axes = np.zeros_like(directions)
    axes[:, 0] = 1.0
    return axes


def longest_chord(offset: Floats, directions: Floats) -> Floats:
    """Return the larger root of a t² + 2b t − c = 0 for each direction v: a = ‖v‖², b = <v, w>, c = 1 − ‖w‖² ≥ 0."""
    a = np.einsum("ij,ij->i", directions, directions)
    b = directions @ offset
    c = max(1.0 - float(offset @ offset), 0.0)
    root = np.sqrt(b * b + a * c)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(b > 0.0, c / (b + root), (root - b) / a)  # the form without cancellation
    return np.where(a > 0.0, t, 0.0)
