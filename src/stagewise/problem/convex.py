"""What a convex set of actions can say of itself; balls, ellipsoids, boxes and polytopes are such sets."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from stagewise.problem.checks import Floats, array
from stagewise.problem.errors import InvalidActions

ROUNDING = 1e-9  # how far outside, as a share of its size, a point still counts as inside


class Convex(ABC):
    """Every point of a closed, bounded, convex set can be played.

    A convex set that holds the safe action x₀ is star-convex around it: with a point it holds the whole ray to it.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def dimension(self) -> int | None:
        """The number of features; None: as many as it is asked for."""

    @property
    @abstractmethod
    def middle(self) -> Floats:
        """A point well inside."""

    @property
    @abstractmethod
    def spread(self) -> Floats:
        """A matrix G (d, d) with middle + G v about as large as the set, for ‖v‖ ≤ 1."""

    @property
    @abstractmethod
    def longest(self) -> float:
        """No point of the set has a larger norm."""

    @abstractmethod
    def excess(self, point: Any) -> float:
        """Return by how much a point is outside, as a share of the set's size; at most 0: inside."""

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
        """Return the set as plain values, enough to build it again."""

    def contains(self, point: Any) -> bool:
        """Say whether a point is in the set, up to rounding."""
        given = point_of(point, "the point")
        if self.dimension not in (None, given.size):
            raise InvalidActions(f"the point has {given.size} features; the {type(self).__name__} has {self.dimension}")
        return self.excess(given) <= ROUNDING

    def exits(self, start: Floats, directions: Floats) -> Floats:
        """Return where the rays from a start inside leave the set (M, d)."""
        return start + self.reach(start, directions)[:, np.newaxis] * directions

    def retracted(self, points: Floats) -> Floats:
        """Return points of the set near those given: what is outside is pulled in towards the middle."""
        offsets = points - self.middle
        return self.middle + np.minimum(self.reach(self.middle, offsets), 1.0)[:, np.newaxis] * offsets

    def placed(self, dimension: int) -> "Convex":
        """Return the set in so many dimensions, or refuse another number."""
        if self.dimension != dimension:
            raise InvalidActions(
                f"the actions are a {type(self).__name__} with {self.dimension} features; the safe action has "
                f"{dimension}, and they must agree"
            )
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dimension or 'any number of'} features)"


def point_of(value: Any, name: str) -> Floats:
    """Return one vector with finite entries."""
    point = array(value, name, InvalidActions)
    if point.ndim != 1 or point.size == 0:
        raise InvalidActions(f"{name} has shape {point.shape}; it must be one vector of length d")
    return point
