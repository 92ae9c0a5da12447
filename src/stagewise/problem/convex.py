"""What a convex set of actions can say of itself; balls, ellipsoids, boxes and polytopes are such sets."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from stagewise.problem.action_set import ActionSet
from stagewise.problem.actions import Finite, Listed
from stagewise.problem.checks import Floats, vector_of
from stagewise.problem.errors import InvalidActions

ROUNDING = 1e-9  # how far outside, as a share of its size, a point still counts as inside


class Hull(NamedTuple):
    """A body around a set that rules can calculate with: the mixtures of points, or center + factor v for ‖v‖ ≤ 1."""

    points: Floats  # (N, d); empty: an ellipsoid
    center: Floats  # (d,)
    factor: Floats  # (d, d)
    exact: bool  # whether it is the set itself; if not, bounds over it hold for the set too, and are looser

    def shrunk(self, start: Floats, share: float) -> "Hull":
        """Return start + share (hull − start)."""
        points, center = start + share * (self.points - start), start + share * (self.center - start)
        return Hull(points, center, share * self.factor, self.exact)


def hull_of(points: Floats) -> Hull:
    """Return a set that is the mixtures of these points."""
    return Hull(points, points[0], np.zeros((points.shape[1], 0)), True)


class Convex(ActionSet, ABC):
    """Every point of a closed, bounded, convex set can be played.

    A convex set that holds the safe action x₀ is star-convex around it: with a point it holds the whole ray to it.
    A new set says its `dimension`, how far it reaches, which point supports it, and how it is described. The rest
    follows; what it knows better, such as `longest` and a tighter `hull`, it may say itself.
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
        """Return the set as plain values: its kind, and what its constructor takes."""

    @classmethod
    def rebuilt(cls, description: dict[str, Any]) -> Self:
        return cls(**{name: value for name, value in description.items() if name != "kind"})

    @property
    def vertices(self) -> Floats:
        """The extreme points (N, d), where they can be listed."""
        if not self.count:
            raise InvalidActions(
                f"the actions are a {type(self).__name__}, whose extreme points are infinitely many; this policy needs "
                "a list: Finite, Rays, Box or Polytope"
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
        """Refuse: there are infinitely many rays."""
        raise InvalidActions(
            f"the actions are a {type(self).__name__}, which LCLUCB and ROFUL choose from; this policy needs Rays"
        )

    def as_list(self) -> Listed:
        """Return the vertices: every other point is a mixture of them."""
        return Finite.borrowed(self.vertices)

    @cached_property
    def sides(self) -> tuple[Floats, Floats]:
        """The lowest and the highest value of each feature: the smallest box around the set."""
        axes = np.eye(self.dimension or 0)
        return self.support(-axes).diagonal(), self.support(axes).diagonal()

    @cached_property
    def middle(self) -> Floats:
        """A point well inside."""
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
        """No point of the set has a larger norm."""
        low, high = self.sides
        return float(np.linalg.norm(np.maximum(np.abs(low), np.abs(high))))

    @cached_property
    def hull(self) -> Hull:
        """The set as rules see it: what is hoped for is bounded over it. By default an ellipsoid around the sides."""
        low, high = self.sides
        half = np.diag(0.5 * (high - low)) * float(low.size) ** 0.5
        return Hull(np.empty((0, low.size)), 0.5 * (low + high), half, False)

    def excess(self, point: Floats) -> float:
        """Return by how much a point is outside, as a share of the set's size; at most 0: inside."""
        offset = (point - self.middle)[np.newaxis]
        (far,) = self.reach(self.middle, offset)
        return 1.0 / float(far) - 1.0 if far > 0.0 else (np.inf if np.any(offset) else -1.0)

    def contains(self, point: ArrayLike) -> bool:
        """Say whether a point is in the set, up to rounding."""
        given = vector_of(point, "the point", InvalidActions)
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
