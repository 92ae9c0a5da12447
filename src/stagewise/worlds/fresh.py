"""Action sets that are new in every round."""

from typing import Any, ClassVar, Self

import numpy as np

from stagewise.kernels.world import fill_directions, fill_safe_of_round
from stagewise.problem.action_set import ActionSet
from stagewise.problem.actions import Finite, Listed, Rays
from stagewise.problem.checks import MOST, Floats, positive, size_of
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.round_safe import SafeOfRound
from stagewise.records.draw import Draw
from stagewise.worlds.world import checked_draw


class Fresh(ActionSet):
    """`count` actions, each uniform on the unit sphere in `dimension` dimensions, drawn anew in every round.

    With `safe`, every round's set names its own safe action: a point drawn at this distance from 0.
    """

    __slots__ = ("count", "dimension", "safe")

    count: int
    """How many actions a round has."""
    dimension: int
    """How many features an action has."""
    safe: float | None
    """How long a round's own safe action is; None: rounds have none of their own."""
    kind: ClassVar[type[Listed]]  # what the set of a round is offered as
    fresh = True

    def __init__(self, count: int, dimension: int, safe: float | None = None) -> None:
        self.safe = None if safe is None else positive(safe, "safe")
        self.count, self.dimension = size_of(count, "count"), size_of(dimension, "dimension")
        if self.count * self.dimension > MOST:
            raise InvalidProblem(
                f"count is {self.count} and dimension {self.dimension}; their product must be at most {MOST:,}, to fit "
                "into memory"
            )

    def draw(self, draw: Draw) -> Listed:
        features = np.empty((self.count, self.dimension))
        fill_directions(features, *checked_draw(draw))
        if self.safe is None:
            return self.kind.borrowed(features)
        point = np.empty(self.dimension)
        fill_safe_of_round(point, features.size, self.safe, *checked_draw(draw))
        return self.kind.borrowed(features, SafeOfRound(-1, point))

    @property
    def names_safe(self) -> bool:
        return self.safe is not None

    def most_at_safe(self, directions: Floats) -> Floats:
        """Return how far a safe action may go along each direction."""
        return np.asarray((self.safe or 0.0) * np.linalg.norm(directions, axis=1))

    def mean_at_safe(self, directions: Floats) -> Floats:
        """Return nothing of any: every direction is drawn as often as its opposite."""
        return np.zeros(len(directions))

    def most(self, directions: Floats) -> Floats:
        """Return the lengths of the directions: every one may be drawn."""
        return np.asarray(np.linalg.norm(directions, axis=1))

    def description(self) -> list[Any]:
        """Return count and dimension, and the length of safe actions where rounds have their own."""
        return [self.count, self.dimension, *([] if self.safe is None else [self.safe])]

    @classmethod
    def rebuilt(cls, description: Any) -> Self:
        return cls(*description)

    def __repr__(self) -> str:
        safe = "" if self.safe is None else f", safe={self.safe:g}"
        return f"{type(self).__name__}(count={self.count}, dimension={self.dimension}{safe})"


class RandomRays(Fresh):
    """Fresh rays every round: `count` far ends, uniform on the unit sphere in `dimension` dimensions.

    With `safe`, rays begin at the round's own safe action, a point drawn at this distance from 0; without, at the
    policy's.

    >>> RandomRays(count=3, dimension=2).draw(Draw(seed=1)).features.shape
    (3, 2)
    """

    __slots__ = ()
    kind, between = Rays, True


class RandomFinite(Fresh):
    """A fresh finite set every round: `count` actions, uniform on the unit sphere in `dimension` dimensions.

    With `safe`, the set of every round names its own safe action beside the list, a point drawn at this distance from
    0; without, the policy knows one for all rounds.

    >>> RandomFinite(count=3, dimension=2).draw(Draw(seed=1))
    Finite(3 actions, 2 features)
    """

    __slots__ = ()
    kind = Finite
