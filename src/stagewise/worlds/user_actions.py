"""Action sets of worlds with users: the same actions for a new user in every round."""

from typing import Any, ClassVar

import numpy as np

from stagewise.engine.world_draws import fill_crossed_features, fill_plain_features
from stagewise.problem.actions import ActionSet, FiniteSet
from stagewise.problem.checks import Floats
from stagewise.problem.safe_action import RoundSafeAction
from stagewise.records.random_key import RandomKey
from stagewise.worlds.world import check_draw


class UserActions(ActionSet):
    """K actions for a new user in every round, one of which is the safe action (see `kernels.user_context`)."""

    __slots__ = ("count", "safe")

    count: int  # K
    safe: int
    fresh: ClassVar[bool] = True

    def fill(self, features: Floats, draw: RandomKey) -> None:
        """Write the features (K, d) of the actions for a round's user."""
        raise NotImplementedError

    def max_means(self, directions: Floats) -> Floats:
        """Return the largest mean (M, K) of each action over all users, for parameters such as the world's."""
        raise NotImplementedError

    @property
    def names_safe(self) -> bool:
        return True

    def draw(self, draw: RandomKey) -> FiniteSet:
        features = np.empty((self.count, int(self.dimension or 0)))
        self.fill(features, check_draw(draw))
        return FiniteSet.from_view(features, RoundSafeAction(self.safe, features[self.safe]))

    def most(self, directions: Floats) -> Floats:
        return np.asarray(self.max_means(directions).max(axis=1))

    def max_at_safe(self, directions: Floats) -> Floats:
        return self.max_means(directions)[:, self.safe]

    def description(self) -> Any:
        """Return None: the world describes its users."""
        return None


class Users(UserActions):
    """Users that are drawn: a constant, numbers uniform on (0, 1), and a segment by its share."""

    __slots__ = ("crossed", "ends", "numbers")

    numbers: int  # d: a constant, and d − 1 numbers of a user
    ends: Floats  # (G,) the shares of the segments, added up; empty: there are none
    crossed: bool  # row a is e_a ⊗ (u, 1{segment}); else (a, u, segment)

    def __init__(self, count: int, numbers: int, ends: Floats, crossed: bool, safe: int) -> None:
        self.count, self.numbers, self.ends, self.crossed, self.safe = count, numbers, ends, crossed, safe

    @property
    def width(self) -> int:
        """The number of parameters of one action."""
        return self.numbers + self.ends.size

    @property
    def context(self) -> int:
        """The number of context numbers of a user."""
        return self.numbers - 1

    @property
    def segment_columns(self) -> int:
        """The number of columns of segments."""
        return int(self.ends.size > 0)

    @property
    def segments(self) -> int:
        """The number of segments."""
        return int(self.ends.size)

    @property
    def draw_parameters(self) -> Floats:
        """The cumulative shares of the segments."""
        return self.ends

    @property
    def dimension(self) -> int:
        return self.count * self.width if self.crossed else 1 + self.numbers + int(self.ends.size > 0)

    def fill(self, features: Floats, draw: RandomKey) -> None:
        (fill_crossed_features if self.crossed else fill_plain_features)(features, self.ends, *draw)

    def max_means(self, directions: Floats) -> Floats:
        """Return the largest mean (M, K) of each action over all users, for parameters (M, K w)."""
        blocks = directions.reshape(len(directions), self.count, self.width)
        numbers, offsets = blocks[:, :, : self.numbers], blocks[:, :, self.numbers :]
        largest = numbers[:, :, 0] + np.maximum(numbers[:, :, 1:], 0.0).sum(axis=2)
        return np.asarray(largest + (offsets.max(axis=2) if self.ends.size else 0.0))

    def mean_at_safe(self, directions: Floats) -> Floats:
        """Return what the safe action comes to for the mean user: (1, ½, …, ½), and every segment by its share."""
        shares = np.diff(self.ends, prepend=0.0)
        user = np.concatenate([[1.0], np.full(self.numbers - 1, 0.5), shares])
        return np.asarray(directions.reshape(len(directions), self.count, self.width)[:, self.safe] @ user)

    def __repr__(self) -> str:
        form = "crossed" if self.crossed else "plain"
        return f"Users({self.count} actions, {self.numbers} numbers, {self.ends.size} segments, {form})"
