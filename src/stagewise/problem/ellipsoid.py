"""Convex sets without corners: ellipsoids, and balls."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from stagewise.problem.checks import Floats, array, frozen, number, vector_of
from stagewise.problem.convex import Convex, Hull
from stagewise.problem.errors import InvalidActions


class Ellipsoid(Convex):
    """The points x with (x − c)ᵀ P⁻¹ (x − c) ≤ 1: a center c, and a shape P, symmetric and positive definite.

    Its half-axes are the roots of P's eigenvalues, along its eigenvectors.

    >>> Ellipsoid([[4.0, 0.0], [0.0, 1.0]]).support(np.array([[1.0, 0.0]]))
    array([[2., 0.]])
    """

    shape: Floats
    """P (d, d)."""
    center: Floats | None
    """c (d,); None: the origin of however many features."""

    def __init__(self, shape: ArrayLike, center: ArrayLike | None = None) -> None:
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
        self.middle = frozen(
            np.zeros(len(given)) if center is None else vector_of(center, "the ellipsoid's center", InvalidActions)
        )
        if self.middle.size != len(given):
            raise InvalidActions(f"the ellipsoid's center has {self.middle.size} features; its shape has {len(given)}")
        self.center = self.middle
        self._factor = frozen(np.asarray(np.linalg.cholesky(given)))  # F with P = FFᵀ: the set is c + F v, ‖v‖ ≤ 1
        self._inverse = frozen(np.asarray(np.linalg.inv(self._factor)))
        self._measure(self._factor, float(np.linalg.norm(self._factor, 2)))

    def _measure(self, factor: Floats, axis: float) -> None:
        """Say how large the set is, from F (d, d) and the longest half-axis."""
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
        """Return c + P v/√(vᵀPv); where v is zero any point of the boundary will do."""
        turned = np.dot(directions, self._factor)
        sizes, first = np.linalg.norm(turned, axis=1, keepdims=True), np.zeros_like(turned)
        first[:, 0] = 1.0
        units = np.divide(turned, sizes, out=first, where=sizes > 0.0)
        best: Floats = self.middle + np.dot(units, self._factor.T)
        return best

    def description(self) -> dict[str, Any]:
        return {"kind": "ellipsoid", "shape": self.shape.tolist(), "center": self.middle.tolist()}


class Ball(Ellipsoid):
    """The points within `radius` of the center, which is the origin unless given.

    Around the origin it fits any number of features.

    >>> Ball(2.0).placed(2).reach(np.zeros(2), np.array([[0.0, 4.0]]))
    array([0.5])
    """

    radius: float
    """How far its points are from the center, at most."""

    def __init__(self, radius: float, center: ArrayLike | None = None) -> None:
        self.radius = number(radius, "the ball's radius", InvalidActions)
        if not self.radius > 0.0:
            raise InvalidActions(f"the ball's radius is {self.radius}; it must be greater than 0")
        self.center = None if center is None else frozen(vector_of(center, "the ball's center", InvalidActions))
        self.middle = np.zeros(()) if self.center is None else self.center
        self._factor, self._inverse = np.array(self.radius), np.array(1.0 / self.radius)  # of any dimension
        self._measure(self.radius * np.eye(self.middle.size), self.radius)

    def placed(self, dimension: int) -> Convex:
        return Ball(self.radius, np.zeros(dimension)) if self.center is None else super().placed(dimension)

    def description(self) -> dict[str, Any]:
        return {"kind": "ball", "radius": self.radius, "center": None if self.center is None else self.center.tolist()}
