"""A world of users that were seen: each round has one row of a table, and the means of every action for it."""

from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from stagewise.kernels.context import fill_logged
from stagewise.kernels.loop.play import LOGGED
from stagewise.kernels.world import SHRUNK
from stagewise.problem.checks import Floats, PerSignal, array, frozen, one_per, shown, vector_of, whole
from stagewise.problem.errors import InvalidActions, InvalidFile, InvalidProblem
from stagewise.records.draw import Draw
from stagewise.worlds.named import truth_of
from stagewise.worlds.user_world import UserWorld
from stagewise.worlds.users import OfferedUsers
from stagewise.worlds.world import signals


class ListedUsers(OfferedUsers):
    """K actions for one of n listed users in every round, any of them as likely (see `kernels.context`)."""

    __slots__ = ("context", "divisions", "segments", "table")

    table: Floats  # (n, 1 + context + divisions): a constant 1, numbers in [−1, 1], the numbers of segments
    context: int
    divisions: int
    segments: int  # how many segments the users of a division belong to, at most
    crossed: ClassVar[bool] = False

    def __init__(self, count: int, table: Floats, divisions: int, safe: int) -> None:
        self.count, self.table, self.divisions, self.safe = count, table, divisions, safe
        self.context = table.shape[1] - 1 - divisions
        met = [np.unique(column).size for column in table[:, 1 + self.context :].T]
        self.segments = max(met, default=0)

    @property
    def dimension(self) -> int:
        return 1 + int(self.table.shape[1])

    @property
    def drawn(self) -> Floats:
        """What a loop draws from: the table, row after row."""
        return self.table.reshape(-1)

    def fill(self, features: Floats, draw: Draw) -> None:
        fill_logged(features, self.drawn, *draw)

    def each(self, directions: Floats) -> Floats:
        """Return the largest mean (M, K) of each action over all users, for means (M, n K) such as the world's."""
        return np.asarray(directions.reshape(len(directions), -1, self.count).max(axis=1))

    def __repr__(self) -> str:
        return f"ListedUsers({self.count} actions, {len(self.table)} users)"


class LoggedWorld(UserWorld):
    """In every round one of n users, any of them as likely, and K actions whose means are known for each user.

    Args:
        users: What is known of the users (n, w): numbers in [−1, 1], and then the numbers of segments.
        reward: Mean rewards (n, K), in [0, 1].
        cost: Mean costs (n, K) or (m, n, K), in [0, 1].
        noise: How far single outcomes are from their means, for all signals or for each: 1 is 0 or 1, as the mean says,
            and s has s² of that variance.
        safe: Which action is the safe one. It may break a limit for some users: such rounds are counted.
        divisions: How many columns of `users` are segments.

    >>> world = LoggedWorld(users=[[0.5], [-0.5]], reward=[[0.1, 0.5], [0.1, 0.2]], cost=[[0.0, 0.02], [0.0, 0.01]])
    >>> offered = world.actions_in(Draw(seed=1))
    >>> offered.features[1], world.means_of(1, offered.features[1])
    (array([ 1. ,  1. , -0.5]), array([0.2 , 0.01]))
    """

    actions: ListedUsers
    assumed = False
    outcomes = "shrunk"
    kinds: ClassVar[Mapping[str, int]] = {"shrunk": SHRUNK}

    def __init__(
        self,
        *,
        users: ArrayLike,
        reward: ArrayLike,
        cost: ArrayLike,
        noise: PerSignal = 1.0,
        safe: int = 0,
        divisions: int = 0,
    ) -> None:
        means, told = truth_of(reward, array(cost, "cost"), "n, K")[0], array(users, "users")
        _, n, count = means.shape
        if told.ndim != 2 or len(told) != n:
            raise InvalidProblem(f"users has shape {told.shape}; there must be a row for each of {n} users")
        most = f"from 0 to {told.shape[1]}, the columns of users"
        named = whole(divisions, "divisions", most, 0, told.shape[1])
        numbers, segments = told[:, : told.shape[1] - named], told[:, told.shape[1] - named :]
        if not (np.all(np.abs(numbers) <= 1.0) and np.all((segments >= 0.0) & (segments == np.floor(segments)))):
            raise InvalidProblem("users hold numbers beyond [-1, 1], or segments that are no whole numbers from 0")
        if not (means.min() >= 0.0 and means.max() <= 1.0):
            raise InvalidProblem(f"the means lie in [{means.min():g}, {means.max():g}]; they must lie in [0, 1]")
        self.parameters = frozen(means.reshape(len(means), -1))  # (1 + m, n K)
        last = f"from 0 to {count - 1}, being one of the actions"
        rows = frozen(np.column_stack([np.ones(n), told]))
        self.actions = ListedUsers(count, rows, named, whole(safe, "safe", last, 0, count - 1))
        self.noise = frozen(one_per(noise, signals(len(means) - 1), "noise"))
        if not self.noise.max() <= 1.0:
            raise InvalidProblem(f"noise is {self.noise.max():g}; at 1 outcomes are 0 or 1, and no further from a mean")

    @property
    def draws(self) -> int:
        return LOGGED

    @classmethod
    def rebuilt(cls, told: dict[str, Any]) -> Self:
        raise InvalidFile("the world is of kind 'LoggedWorld', which cannot be built again: its tables are not told")

    @property
    def table(self) -> Floats:
        """The means (1 + m, n, K) of all users."""
        return self.parameters.reshape(len(self.parameters), -1, self.actions.count)

    def means(self, action: Any) -> Floats:
        """Refuse: a user's numbers do not say which action is meant."""
        raise InvalidActions("features do not say which action they are of; ask means_of(index, features)")

    def means_of(self, index: int, features: Any) -> Floats:
        last = self.actions.count - 1
        action = whole(index, "the index", f"from 0 to {last}", 0, last, InvalidActions)
        row = vector_of(features, "the action", InvalidActions)
        place = self._places.get((row[1:] + 0.0).tobytes())
        if place is None or row[0] != action:
            raise InvalidActions(f"the action is {shown(row.tolist())}; it must be {action} and then a listed user")
        return self.table[:, place, action].copy()

    @cached_property
    def _places(self) -> dict[bytes, int]:
        """Where each user stands; those of whom the same is known must have the same means."""
        places: dict[bytes, int] = {}
        for row, user in enumerate(self.actions.table + 0.0):  # + 0.0: there is one zero
            known = places.setdefault(user.tobytes(), row)
            if known != row and not np.array_equal(self.table[:, known], self.table[:, row]):
                raise InvalidProblem(f"users {known} and {row} are the same and have other means; one must go")
        return places

    def description(self) -> dict[str, Any]:
        """Return the world as plain values; the tables, which may be large, by their SHA-256."""
        users = self.actions
        return {
            "kind": type(self).__name__,
            "users": len(users.table),
            "actions": users.count,
            "divisions": users.divisions,
            "digest": sha256(users.table.tobytes() + self.parameters.tobytes()).hexdigest(),
            "noise": self.noise.tolist(),
            "safe": users.safe,
        }
