"""The world of logged users: every round has one of them, with known means of every action."""

from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from stagewise.engine.loop import LOGGED
from stagewise.engine.world_draws import SHRUNK, fill_logged_features
from stagewise.problem.checks import (
    Floats,
    PerSignal,
    check_array,
    check_integer,
    check_per_signal,
    check_vector,
    copy_read_only,
)
from stagewise.problem.context_columns import MOST_LEVELS
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidFile, InvalidProblem
from stagewise.records.random_key import RandomKey
from stagewise.worlds.context_world import UserActions, UserWorld
from stagewise.worlds.noisy_world import get_signal_names, parse_means


class ListedUsers(UserActions):
    """K actions for one of n listed users in every round, uniformly drawn (see `engine.world_draws`)."""

    __slots__ = ("context", "segment_columns", "segments", "table")

    table: Floats  # (n, 1 + context + segment_columns): a constant 1, numbers in [−1, 1], the numbers of segments
    context: int
    segment_columns: int
    segments: int  # how many segments the users of a division belong to, at most
    crossed: ClassVar[bool] = False

    def __init__(self, count: int, table: Floats, segment_columns: int, safe: int) -> None:
        self.count, self.table, self.segment_columns, self.safe = count, table, segment_columns, safe
        self.context = table.shape[1] - 1 - segment_columns
        segment_counts = [np.unique(column).size for column in table[:, 1 + self.context :].T]
        self.segments = max(segment_counts, default=0)

    @property
    def dimension(self) -> int:
        return 1 + int(self.table.shape[1])

    @property
    def draw_parameters(self) -> Floats:
        """The table, row after row, from which a loop draws."""
        return self.table.reshape(-1)

    def fill(self, features: Floats, draw: RandomKey) -> None:
        fill_logged_features(features, self.draw_parameters, *draw)

    def max_means(self, directions: Floats) -> Floats:
        """Return the largest mean (M, K) of each action over all users, for means (M, n K)."""
        return np.asarray(directions.reshape(len(directions), -1, self.count).max(axis=1))

    def __repr__(self) -> str:
        return f"ListedUsers({self.count} actions, {len(self.table)} users)"


class UserTableWorld(UserWorld):
    """A simulated world with one of n users in every round, uniformly drawn, and known means of K actions for each
    user.

    Args:
        users: The contexts of the users (n, w): numbers in [−1, 1] and the features of categories,
            as `problem.encode_columns` returns them, and then the indices of segments.
        reward: Mean rewards (n, K), in [0, 1].
        cost: Mean costs (n, K) or (m, n, K), in [0, 1].
        noise: The scale of the noise, for all signals or for each: with 1 outcomes are 0 or 1; s has s² of that
            variance.
        safe: The index of the safe action. It may violate a limit for some users; such rounds are counted.
        segment_columns: The number of columns of `users` that are segments.

    Raises:
        InvalidProblem: Shapes do not agree, or a value is out of range.

    Example:
        >>> world = UserTableWorld(users=[[0.5], [-0.5]], reward=[[0.1, 0.5]] * 2, cost=[[0.0, 0.02]] * 2)
        >>> offered = world.actions_in(RandomKey(seed=1))
        >>> offered.features[1], world.action_means(1, offered.features[1])
        (array([ 1. ,  1. , -0.5]), array([0.5 , 0.02]))
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
        segment_columns: int = 0,
    ) -> None:
        means, contexts = parse_means(reward, check_array(cost, "cost"), "n, K")[0], check_array(users, "users")
        _, n, count = means.shape
        if contexts.ndim != 2 or len(contexts) != n:
            code, subject, rule = ErrorCode.WRONG_SHAPE, "the shape of users", f"({n}, w), a row for each user"
            raise InvalidProblem.must_be(code, subject, contexts.shape, rule)
        width = contexts.shape[1]
        segment_count = check_integer(
            segment_columns, "segment_columns", f"from 0 to {width}, the columns of users", 0, width
        )
        numbers, segments = contexts[:, : width - segment_count], contexts[:, width - segment_count :]
        are_indices = (segments >= 0.0) & (segments == np.floor(segments))
        if not (np.all(np.abs(numbers) <= MOST_LEVELS**0.5) and np.all(are_indices)):
            text = "users holds numbers outside [-10, 10], or segments that are not whole numbers from 0"
            raise InvalidProblem(ErrorCode.CONTEXT_OUT_OF_RANGE, text)
        if not (means.min() >= 0.0 and means.max() <= 1.0):
            rule = f"in [0, 1]; they lie in [{means.min():g}, {means.max():g}]"
            raise InvalidProblem(ErrorCode.OUT_OF_RANGE, "the means must lie {rule}", rule=rule)
        self.parameters = copy_read_only(means.reshape(len(means), -1))  # (1 + m, n K)
        last = f"from 0 to {count - 1}, being one of the actions"
        rows = copy_read_only(np.column_stack([np.ones(n), contexts]))
        self.actions = ListedUsers(count, rows, segment_count, check_integer(safe, "safe", last, 0, count - 1))
        self.noise = copy_read_only(check_per_signal(noise, get_signal_names(len(means) - 1), "noise"))
        if not self.noise.max() <= 1.0:
            noise, rule = float(self.noise.max()), "at most 1, where outcomes are 0 or 1"
            raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, "noise", noise, rule)

    @property
    def draw_kind(self) -> int:
        return LOGGED

    @classmethod
    def from_description(cls, described: dict[str, Any]) -> Self:
        text = "the world has kind 'UserTableWorld', which cannot be rebuilt from a file: its tables are not stored"
        raise InvalidFile(ErrorCode.NOT_SERIALIZABLE, text)

    @property
    def table(self) -> Floats:
        """The means (1 + m, n, K) of all users."""
        return self.parameters.reshape(len(self.parameters), -1, self.actions.count)

    def means(self, action: Any) -> Floats:
        """Raise: features do not identify an action."""
        raise InvalidActions(
            ErrorCode.UNSUPPORTED, "features do not identify an action; use action_means(index, features)"
        )

    def action_means(self, index: int, features: Any) -> Floats:
        last = self.actions.count - 1
        action = check_integer(index, "the index", f"from 0 to {last}", 0, last, InvalidActions)
        row = check_vector(features, "the action", InvalidActions)
        user = self._user_rows.get((row[1:] + 0.0).tobytes())
        if user is None or row[0] != action:
            rule = f"{action} and then a listed user"
            raise InvalidActions.must_be(ErrorCode.UNKNOWN_ACTION, "the action", row.tolist(), rule)
        return self.table[:, user, action].copy()

    @cached_property
    def _user_rows(self) -> dict[bytes, int]:
        """The rows of the users, by their contexts; equal contexts must have equal means."""
        rows: dict[bytes, int] = {}
        for row, user in enumerate(self.actions.table + 0.0):  # + 0.0: −0.0 becomes 0.0
            first = rows.setdefault(user.tobytes(), row)
            if first != row and not np.array_equal(self.table[:, first], self.table[:, row]):
                fact = "are equal and have different means; remove one of them"
                raise InvalidProblem(
                    ErrorCode.CONFLICTING_SETTINGS, "users {first} and {row} {fact}", first=first, row=row, fact=fact
                )
        return rows

    def description(self) -> dict[str, Any]:
        """Return the world as JSON holds it; the tables, which may be large, by their SHA-256."""
        users = self.actions
        return {
            "kind": type(self).__name__,
            "users": len(users.table),
            "actions": users.count,
            "segment_columns": users.segment_columns,
            "digest": sha256(users.table.tobytes() + self.parameters.tobytes()).hexdigest(),
            "noise": self.noise.tolist(),
            "safe": users.safe,
        }
