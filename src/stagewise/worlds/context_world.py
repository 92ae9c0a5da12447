"""Worlds with a new user in every round, and the world whose means are linear in a context."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from stagewise.engine.loop import CROSSED, PLAIN
from stagewise.engine.world_draws import SHRUNK, fill_crossed_features, fill_plain_features, fill_user_means
from stagewise.problem.actions import ActionSet, FiniteSet
from stagewise.problem.checks import (
    Floats,
    PerSignal,
    check_array,
    check_choice,
    check_integer,
    check_vector,
    copy_read_only,
)
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem
from stagewise.problem.safe_action import RoundSafeAction
from stagewise.records.outcome import Outcome
from stagewise.records.random_key import RandomKey
from stagewise.worlds.linear_world import NOISES, compute_linear_means
from stagewise.worlds.noisy_world import (
    NoisyWorld,
    check_probabilities,
    encode_signals,
    get_signal_names,
    order_by_signal,
    parse_means,
    parse_noise,
)
from stagewise.worlds.world import check_draw

FeatureForm = Literal["crossed", "plain"]
TOLERANCE = 1e-9


class UserWorld(NoisyWorld):
    """A world whose actions are identified by their index and the user's context."""

    parameters: Floats  # (1 + m, …) what the means are made of

    @abstractmethod
    def action_means(self, index: int, features: Any) -> Floats:
        """Return the expected reward and costs (1 + m,) of a listed action, given its features."""

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """Return the world as JSON holds it."""

    def action_outcome(self, index: int, features: Any, draw: RandomKey) -> Outcome:
        """Return the outcome of a listed action that is played in this round."""
        return self.draw_outcome(self.action_means(index, features), draw)

    @property
    def plain_users(self) -> Any:
        return None if self.actions.crossed else self.actions

    @property
    def draw_parameters(self) -> tuple[int, Floats]:
        return self.actions.safe, self.actions.draw_parameters.copy()

    def means_at(self, index: int, actions: Any) -> Floats:
        return self.action_means(index, actions.at(index))

    def means_played(self, index: int, action: Any, actions: Any) -> Floats:
        return self.means_at(index if index >= 0 else self.actions.safe, actions)

    def outcome_played(self, index: int, action: Any, actions: Any, draw: RandomKey) -> Outcome:
        played = index if index >= 0 else self.actions.safe
        return self.action_outcome(played, actions.at(played), draw)


class UserActions(ActionSet):
    """K actions for a new user in every round, one of which is the safe action (see `engine.world_draws`)."""

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
        return self.numbers - 1

    @property
    def segment_columns(self) -> int:
        return int(self.ends.size > 0)

    @property
    def segments(self) -> int:
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


class ContextWorld(UserWorld):
    """A simulated world with a new user u in every round, and K actions with mean reward and costs <θ_a, u>.

    A user is a constant 1 and then d − 1 numbers, uniform on (0, 1). Every round offers a `FiniteSet` that names one
    of the actions as the safe one; its cost depends on the user too.

    Args:
        reward: θ of every action (K, d).
        cost: The same for every cost, (K, d) or (m, K, d), or by name; named costs are matched with limits.
        noise: The standard deviation of the noise, for all signals or for each; 0.1 by default. For "shrunk" outcomes
            the distance between the two values that there are for a mean.
        outcomes: "bernoulli" (1 with the mean as probability, no other noise), "gaussian", "uniform", "rademacher", or
            "shrunk": a distance s between (1 − s) times the mean and that plus s, which stay in [0, 1].
        safe: The index of the safe action.
        features: "crossed": action a has the features e_a ⊗ u (K d), in which all means are linear. "plain": its index
            and then u, for policies with one model for each action.
        segments: The shares (G,) of segments; every user belongs to one.
        segment_offsets: What a segment adds to the mean of every signal and action, (1 + m, K, G). Crossed features
            then end with a one-hot vector of the user's segment, plain ones with its index.

    Raises:
        InvalidProblem: Shapes do not agree, a mean is out of range, or a setting is invalid.

    Example:
        >>> world = ContextWorld(reward=[[0.1, 0.0], [0.1, 0.4]], cost=[[0.0, 0.01], [0.0, 0.05]])
        >>> from stagewise.records.random_key import RandomKey
        >>> offered = world.actions_in(RandomKey(seed=1))
        >>> offered, world.means(offered.features[0]).round(3)
        (FiniteSet(2 actions, 4 features, 0 safe), array([0.1  , 0.001]))
    """

    actions: Users
    kinds: ClassVar[Mapping[str, int]] = NOISES | {"shrunk": SHRUNK}

    def __init__(
        self,
        *,
        reward: ArrayLike,
        cost: ArrayLike | Mapping[str, ArrayLike],
        noise: PerSignal | Mapping[str, float] | None = None,
        outcomes: Literal["bernoulli", "gaussian", "uniform", "rademacher", "shrunk"] = "bernoulli",
        safe: int = 0,
        features: FeatureForm = "crossed",
        segments: ArrayLike | None = None,
        segment_offsets: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> None:
        table, self.names = parse_means(reward, cost, "K, d")
        shares, added = parse_segments(
            segments, order_by_signal(segment_offsets, self.names, "segment_offsets"), table.shape[:2]
        )
        (_, count, d), signals = table.shape, get_signal_names(len(table) - 1, self.names)
        self.parameters = copy_read_only(
            np.concatenate([table, added], axis=2).reshape(len(table), -1)
        )  # (1 + m, K (d + G))
        last = f"from 0 to {count - 1}, being one of the actions"
        crossed = check_choice(features, ("crossed", "plain"), "features") == "crossed"
        self.actions = Users(count, d, np.cumsum(shares), crossed, check_integer(safe, "safe", last, 0, count - 1))
        self.shares = shares
        self.outcomes = check_choice(outcomes, tuple(self.kinds), "outcomes")
        self.noise = copy_read_only(parse_noise(noise, signals, self.names, self.outcomes))
        if self.outcomes == "shrunk" and not self.noise.max() <= 1.0:
            rule = "at most 1, where outcomes are 0 or 1"
            raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, "noise", float(self.noise.max()), rule)
        if self.outcomes in ("bernoulli", "shrunk"):
            low, high = -self.actions.most(-self.parameters), self.actions.most(self.parameters)
            check_probabilities(low, high, signals, self.outcomes, TOLERANCE)

    @property
    def draw_kind(self) -> int:
        return CROSSED if self.actions.crossed else PLAIN

    @property
    def has_linear_means(self) -> bool:
        return self.actions.crossed

    @property
    def norms(self) -> Floats:
        """The norms (1 + m,) of the parameters of every signal: of all actions together, or of the largest action."""
        each = np.linalg.norm(self.parameters.reshape(len(self.parameters), self.actions.count, -1), axis=2)
        return np.asarray(np.linalg.norm(each, axis=1) if self.actions.crossed else each.max(axis=1))

    def means(self, action: Any) -> Floats:
        """Return the expected reward and costs (1 + m,) of crossed features."""
        if not self.actions.crossed:
            raise InvalidActions(
                ErrorCode.UNSUPPORTED, "features='plain' do not identify an action; use action_means(index, features)"
            )
        return compute_linear_means(self.parameters, action)

    def action_means(self, index: int, features: Any) -> Floats:
        users, last = self.actions, self.actions.count - 1
        action = check_integer(index, "the index", f"from 0 to {last}", 0, last, InvalidActions)
        if users.crossed:
            return self.means(features)
        row, means = check_vector(features, "the action", InvalidActions), np.empty(len(self.parameters))
        if row.size != users.dimension or row[0] != action:
            rule = f"{action} and then a user of {users.dimension - 1}"
            raise InvalidActions.must_be(ErrorCode.UNKNOWN_ACTION, "the action", row.tolist(), rule)
        segment = 0
        if users.ends.size:
            highest = users.ends.size - 1
            segment = check_integer(
                to_integer(float(row[-1])), "the segment", f"from 0 to {highest}", 0, highest, InvalidActions
            )
        fill_user_means(self.parameters, action, users.width, users.ends.size, row[1:], segment, means)
        return means

    def description(self) -> dict[str, Any]:
        """Return the world as JSON holds it, enough to rebuild it."""
        users = self.actions
        blocks = self.parameters.reshape(len(self.parameters), users.count, users.width)
        table, added = blocks[:, :, : users.numbers], blocks[:, :, users.numbers :]
        form = "crossed" if users.crossed else "plain"
        description = {**self.describe_rows(table), "safe": users.safe, "features": form}
        if users.ends.size:
            description |= {"segments": self.shares.tolist(), "segment_offsets": encode_signals(added, self.names)}
        return description


def to_integer(value: float) -> Any:
    return int(value) if value.is_integer() else value


def parse_segments(segments: Any, offsets: Any, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return the shares (G,) of the segments and their offsets (1 + m, K, G)."""
    if segments is None or offsets is None:
        if segments is not offsets:
            text = "segments and segment_offsets must be given together, the shares of the segments and their offsets"
            raise InvalidProblem(ErrorCode.CONFLICTING_SETTINGS, text)
        return np.empty(0), np.empty((*shape, 0))
    shares, added = check_vector(segments, "segments", InvalidProblem), check_array(offsets, "segment_offsets")
    hint = "; 60 % is 0.6" if abs(float(shares.sum()) - 100.0) <= 1e-6 else ""
    if not (np.all(shares > 0.0) and abs(float(shares.sum()) - 1.0) <= TOLERANCE):
        code, rule = ErrorCode.INVALID_PROBABILITY, f"shares above 0 that sum to 1{hint}"
        raise InvalidProblem.must_be(code, "segments", shares.tolist(), rule)
    if added.shape != (*shape, shares.size):
        rule = f"{(*shape, shares.size)}: signals, actions and segments"
        raise InvalidProblem.must_be(ErrorCode.WRONG_SHAPE, "the shape of segment_offsets", added.shape, rule)
    return shares, added
