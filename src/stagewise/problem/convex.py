"""Base of the convex action sets: balls, ellipsoids, boxes and polytopes."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from stagewise.problem.action_set import ActionSet
from stagewise.problem.actions import FiniteSet, Listed
from stagewise.problem.checks import Floats, check_vector
from stagewise.problem.errors import ErrorCode, InvalidActions

ROUNDING = 1e-9  # relative tolerance of `contains`


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
    """Return the hull of the mixtures of these points."""
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
            raise InvalidActions(
                ErrorCode.UNSUPPORTED_ACTIONS,
                "the actions are a {name}, which has infinitely many extreme points; this policy needs "
                "FiniteSet, Rays, Box or Polytope",
                name=type(self).__name__,
            )
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
        raise InvalidActions(
            ErrorCode.UNSUPPORTED_ACTIONS,
            "the actions are a {name}, and this policy needs Rays; use LCLUCB or ROFUL for convex sets",
            name=type(self).__name__,
        )

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
            raise InvalidActions(
                ErrorCode.DIMENSION_MISMATCH,
                "the point has {size} features and the {name} has {dimension}; they must agree",
                size=vector.size,
                name=type(self).__name__,
                dimension=self.dimension,
            )
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
            raise InvalidActions(
                ErrorCode.DIMENSION_MISMATCH,
                "the actions are a {name} with {dimension} features and the safe action has "
                "{dimension_2}; they must agree",
                name=type(self).__name__,
                dimension=self.dimension,
                dimension_2=dimension,
            )
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dimension or 'any number of'} features)"
