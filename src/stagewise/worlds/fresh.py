"""Action sets that are new in every round."""

from typing import Any, ClassVar, Self

import numpy as np

from stagewise.kernels.world import fill_directions
from stagewise.problem.action_set import ActionSet
from stagewise.problem.actions import Finite, Listed, Rays
from stagewise.problem.checks import MOST, Floats, size_of
from stagewise.problem.errors import InvalidProblem
from stagewise.records.draw import Draw
from stagewise.worlds.world import checked_draw


class Fresh(ActionSet):
    """`count` actions, each uniform on the unit sphere in `dimension` dimensions, drawn anew in every round."""

    __slots__ = ("count", "dimension")

    count: int
    """How many actions a round has."""
    dimension: int
    """How many features an action has."""
    kind: ClassVar[type[Listed]]  # what the set of a round is offered as

    def __init__(self, count: int, dimension: int) -> None:
        self.count, self.dimension = size_of(count, "count"), size_of(dimension, "dimension")
        if self.count * self.dimension > MOST:
            raise InvalidProblem(
                f"count is {self.count} and dimension {self.dimension}; their product must be at most {MOST:,}, to fit "
                "into memory"
            )

    def draw(self, draw: Draw) -> Listed:
        """Return the set of one round."""
        features = np.empty((self.count, self.dimension))
        fill_directions(features, *checked_draw(draw))
        return self.kind.borrowed(features)

    def most(self, directions: Floats) -> Floats:
        """Return the lengths of the directions: every one may be drawn."""
        return np.asarray(np.linalg.norm(directions, axis=1))

    def description(self) -> list[int]:
        """Return count and dimension."""
        return [self.count, self.dimension]

    @classmethod
    def rebuilt(cls, description: Any) -> Self:
        return cls(*description)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(count={self.count}, dimension={self.dimension})"


class RandomRays(Fresh):
    """Fresh rays every round.

    >>> RandomRays(count=3, dimension=2).draw(Draw(seed=1)).features.shape
    (3, 2)
    """

    __slots__ = ()
    kind, between = Rays, True


class RandomFinite(Fresh):
    """A fresh finite set every round.

    >>> RandomFinite(count=3, dimension=2).draw(Draw(seed=1))
    Finite(3 actions, 2 features)
    """

    __slots__ = ()
    kind = Finite
