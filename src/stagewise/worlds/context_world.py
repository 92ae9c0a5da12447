"""The world with contexts: a new user in every round."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from stagewise.engine.loop import CROSSED, PLAIN
from stagewise.engine.world_draws import fill_user_means
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
from stagewise.problem.formatting import safe_repr
from stagewise.worlds.linear_world import NOISES, compute_linear_means
from stagewise.worlds.named_costs import check_probabilities, encode_signals, order_by_signal, parse_means, parse_noise
from stagewise.worlds.user_actions import Users
from stagewise.worlds.user_world import UserWorld
from stagewise.worlds.world import get_signal_names

FeatureForm = Literal["crossed", "plain"]
TOLERANCE = 1e-9


class ContextWorld(UserWorld):
    """A simulated world with a new user u in every round, and K actions with mean reward and costs <θ_a, u>.

    A user is a constant 1 and then d − 1 numbers, uniform on (0, 1). Every round offers a `FiniteSet` that names one
    of the actions as the safe one; its cost depends on the user too.

    Args:
        reward: θ of every action (K, d).
        cost: The same for every cost, (K, d) or (m, K, d), or by name; named costs are matched with limits.
        noise: The standard deviation of the noise, for all signals or for each; 0.1 by default.
        outcomes: "bernoulli" (1 with the mean as probability, no other noise), "gaussian", "uniform" or "rademacher".
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
    kinds = NOISES

    def __init__(
        self,
        *,
        reward: ArrayLike,
        cost: ArrayLike | Mapping[str, ArrayLike],
        noise: PerSignal | Mapping[str, float] | None = None,
        outcomes: Literal["bernoulli", "gaussian", "uniform", "rademacher"] = "bernoulli",
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
        self.outcomes = check_choice(outcomes, tuple(NOISES), "outcomes")
        self.noise = copy_read_only(parse_noise(noise, signals, self.names, self.outcomes))
        if self.outcomes == "bernoulli":
            low, high = -self.actions.most(-self.parameters), self.actions.most(self.parameters)
            check_probabilities(low, high, signals, "bernoulli", TOLERANCE)

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
            raise InvalidActions(
                ErrorCode.UNKNOWN_ACTION,
                "the action is {row}; it must be {action} and then a user of {dimension}",
                row=safe_repr(row.tolist()),
                action=action,
                dimension=users.dimension - 1,
            )
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
    """Return a float as an integer if it is one."""
    return int(value) if value.is_integer() else value


def parse_segments(segments: Any, offsets: Any, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return the shares (G,) of the segments and their offsets (1 + m, K, G)."""
    if segments is None or offsets is None:
        if segments is not offsets:
            raise InvalidProblem(
                ErrorCode.CONFLICTING_SETTINGS,
                "segments and segment_offsets must be given together, the shares of the segments and their offsets",
            )
        return np.empty(0), np.empty((*shape, 0))
    shares, added = check_vector(segments, "segments", InvalidProblem), check_array(offsets, "segment_offsets")
    hint = "; 60 % is 0.6" if abs(float(shares.sum()) - 100.0) <= 1e-6 else ""
    if not (np.all(shares > 0.0) and abs(float(shares.sum()) - 1.0) <= TOLERANCE):
        raise InvalidProblem(
            ErrorCode.INVALID_PROBABILITY,
            "segments is {shares}; it must hold shares above 0 that sum to 1{hint}",
            shares=shares.tolist(),
            hint=hint,
        )
    if added.shape != (*shape, shares.size):
        raise InvalidProblem(
            ErrorCode.WRONG_SHAPE,
            "segment_offsets has shape {shape}; it must be {value}: signals, actions and segments",
            shape=added.shape,
            value=(*shape, shares.size),
        )
    return shares, added
