"""Ellipsoids and balls."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from stagewise.problem.checks import Floats, check_array, check_number, check_vector, copy_read_only
from stagewise.problem.convex import Convex, Hull
from stagewise.problem.errors import ErrorCode, InvalidActions


class Ellipsoid(Convex):
    """The points x with (x − c)ᵀ P⁻¹ (x − c) ≤ 1.

    The half-axes are the square roots of P's eigenvalues, along its eigenvectors.

    Args:
        shape: P (d, d), symmetric and positive definite.
        center: c (d,); None: the origin.

    Raises:
        InvalidActions: P is not symmetric and positive definite, or the dimensions differ.

    Example:
        >>> Ellipsoid([[4.0, 0.0], [0.0, 1.0]]).support(np.array([[1.0, 0.0]]))
        array([[2., 0.]])
    """

    shape: Floats
    """P (d, d)."""
    center: Floats | None
    """c (d,); None: the origin, in any dimension."""

    def __init__(self, shape: ArrayLike, center: ArrayLike | None = None) -> None:
        matrix = check_array(shape, "the ellipsoid's shape", InvalidActions)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
            raise InvalidActions(
                ErrorCode.WRONG_SHAPE,
                "the ellipsoid's shape has shape {shape}; it must be a square matrix (d, d)",
                shape=matrix.shape,
            )
        if not np.abs(matrix - matrix.T).max() <= 1e-12 * np.abs(matrix).max():
            raise InvalidActions(
                ErrorCode.INVALID_ACTION_SET,
                "the ellipsoid's shape is not symmetric; give P of (x − c)ᵀ P⁻¹ (x − c) ≤ 1",
            )
        smallest, largest = np.linalg.eigvalsh(matrix)[[0, -1]]
        if not smallest > 1e-13 * largest:
            raise InvalidActions(
                ErrorCode.INVALID_ACTION_SET,
                "the ellipsoid's shape has the eigenvalues {smallest:.3g} and {largest:.3g}; it must be "
                "positive definite",
                smallest=smallest,
                largest=largest,
            )
        self.shape = copy_read_only(matrix)
        self.middle = copy_read_only(
            np.zeros(len(matrix)) if center is None else check_vector(center, "the ellipsoid's center", InvalidActions)
        )
        if self.middle.size != len(matrix):
            raise InvalidActions(
                ErrorCode.DIMENSION_MISMATCH,
                "the ellipsoid's center has {size} features and its shape has {shape_size}; they must agree",
                size=self.middle.size,
                shape_size=len(matrix),
            )
        self.center = self.middle
        self._factor = copy_read_only(
            np.asarray(np.linalg.cholesky(matrix))
        )  # F with P = FFᵀ: the set is c + F v, ‖v‖ ≤ 1
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


class Ball(Ellipsoid):
    """The points within a radius of a center.

    Args:
        radius: The radius, greater than 0.
        center: The center (d,); None: the origin, in any dimension.

    Raises:
        InvalidActions: The radius is not a positive number, or the center is not a vector.

    Example:
        >>> Ball(2.0).with_dimension(2).reach(np.zeros(2), np.array([[0.0, 4.0]]))
        array([0.5])
    """

    radius: float
    """The radius."""

    def __init__(self, radius: float, center: ArrayLike | None = None) -> None:
        self.radius = check_number(radius, "the ball's radius", InvalidActions)
        if not self.radius > 0.0:
            raise InvalidActions(
                ErrorCode.OUT_OF_RANGE, "the ball's radius is {radius}; it must be greater than 0", radius=self.radius
            )
        self.center = (
            None if center is None else copy_read_only(check_vector(center, "the ball's center", InvalidActions))
        )
        self.middle = np.zeros(()) if self.center is None else self.center
        self._factor, self._inverse = np.array(self.radius), np.array(1.0 / self.radius)  # of any dimension
        self._measure(self.radius * np.eye(self.middle.size), self.radius)

    def with_dimension(self, dimension: int) -> Convex:
        return Ball(self.radius, np.zeros(dimension)) if self.center is None else super().with_dimension(dimension)

    def description(self) -> dict[str, Any]:
        return {"kind": "ball", "radius": self.radius, "center": None if self.center is None else self.center.tolist()}
