"""Action sets that are drawn anew in every round."""

from typing import Any, ClassVar, Self

import numpy as np

from stagewise.engine.world_draws import fill_directions, fill_round_safe_action
from stagewise.problem.actions import ActionSet, FiniteSet, Listed, Rays
from stagewise.problem.checks import MOST, Floats, check_positive, check_size
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.safe_action import RoundSafeAction
from stagewise.records.random_key import RandomKey
from stagewise.worlds.world import check_draw


class RandomActions(ActionSet):
    """`count` actions, each uniform on the unit sphere in `dimension` dimensions, drawn anew in every round.

    With `safe`, every round's set names its own safe action: a point drawn at this distance from 0.
    """

    __slots__ = ("count", "dimension", "safe")

    count: int

    dimension: int

    safe: float | None

    kind: ClassVar[type[Listed]]  # the class of a round's set
    fresh = True

    def __init__(self, count: int, dimension: int, safe: float | None = None) -> None:
        self.safe = None if safe is None else check_positive(safe, "safe")
        self.count, self.dimension = check_size(count, "count"), check_size(dimension, "dimension")
        if self.count * self.dimension > MOST:
            raise InvalidProblem(
                ErrorCode.TOO_LARGE,
                "count is {count} and dimension {dimension}; their product must be at most {most:,}, to "
                "fit into memory",
                count=self.count,
                dimension=self.dimension,
                most=MOST,
            )

    def draw(self, draw: RandomKey) -> Listed:
        features = np.empty((self.count, self.dimension))
        fill_directions(features, *check_draw(draw))
        if self.safe is None:
            return self.kind.from_view(features)
        point = np.empty(self.dimension)
        fill_round_safe_action(point, features.size, self.safe, *check_draw(draw))
        return self.kind.from_view(features, RoundSafeAction(-1, point))

    @property
    def names_safe(self) -> bool:
        return self.safe is not None

    def max_at_safe(self, directions: Floats) -> Floats:
        """Return the largest value of a safe action along each direction."""
        return np.asarray((self.safe or 0.0) * np.linalg.norm(directions, axis=1))

    def mean_at_safe(self, directions: Floats) -> Floats:
        """Return zeros: every direction is drawn as often as its opposite."""
        return np.zeros(len(directions))

    def most(self, directions: Floats) -> Floats:
        """Return the norms of the directions, each of which may be drawn."""
        return np.asarray(np.linalg.norm(directions, axis=1))

    def description(self) -> list[Any]:
        """Return count and dimension, and the norm of safe actions if rounds have their own."""
        return [self.count, self.dimension, *([] if self.safe is None else [self.safe])]

    @classmethod
    def from_description(cls, description: Any) -> Self:
        return cls(*description)

    def __repr__(self) -> str:
        safe = "" if self.safe is None else f", safe={self.safe:g}"
        return f"{type(self).__name__}(count={self.count}, dimension={self.dimension}{safe})"


class RandomRays(RandomActions):
    """Rays that are drawn anew in every round, with ends uniform on the unit sphere.

    Args:
        count: The number of rays of a round.
        dimension: The number of features.
        safe: The distance from 0 of the round's own safe action, where the rays start; by default they start at the
            policy's safe action.

    Raises:
        InvalidProblem: A number is invalid, or the set does not fit into memory.

    Example:
        >>> RandomRays(count=3, dimension=2).draw(RandomKey(seed=1)).features.shape
        (3, 2)
    """

    __slots__ = ()
    kind, between = Rays, True


class RandomFiniteSet(RandomActions):
    """A finite set of actions that is drawn anew in every round, uniform on the unit sphere.

    Args:
        count: The number of actions of a round.
        dimension: The number of features.
        safe: The distance from 0 of the round's own safe action, which is not one of the listed ones; by default the
            policy has one safe action for all rounds.

    Raises:
        InvalidProblem: A number is invalid, or the set does not fit into memory.

    Example:
        >>> RandomFiniteSet(count=3, dimension=2).draw(RandomKey(seed=1))
        FiniteSet(3 actions, 2 features)
    """

    __slots__ = ()
    kind = FiniteSet
