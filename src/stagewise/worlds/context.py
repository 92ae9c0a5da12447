"""A world of users: another one in every round, for whom one of the same actions is chosen."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from stagewise.kernels.context import fill_user_means
from stagewise.kernels.loop.play import CROSSED, PLAIN
from stagewise.problem.checks import Floats, PerSignal, array, frozen, one_of, shown, vector_of, whole
from stagewise.problem.errors import InvalidActions, InvalidProblem
from stagewise.worlds.linear import NOISES, linear_means
from stagewise.worlds.named import by_signal, check_probabilities, noise_of, plain_signals, truth_of
from stagewise.worlds.user_world import UserWorld
from stagewise.worlds.users import Users
from stagewise.worlds.world import signals

FeatureForm = Literal["crossed", "plain"]
SLIGHT = 1e-9


class ContextWorld(UserWorld):
    """In every round another user u, and K actions with mean reward and costs <θ_a, u>, seen with noise.

    A user is a constant 1 and then d − 1 numbers uniform on (0, 1). Every round's set is a `Finite` that names one of
    the actions as the round's safe one: what that costs depends on the user too.

    Args:
        reward: θ of every action (K, d).
        cost: The same for every cost, (K, d) or (m, K, d), or by name: limits then meet the costs of their names.
        noise: Standard deviation of the noise, for all signals or for each; None: 0.1.
        outcomes: "bernoulli" (1 with the mean as probability, without any other noise), "gaussian", "uniform" or
            "rademacher".
        safe: Which action is the safe one.
        features: "crossed": action a has the features e_a ⊗ u (K d), of which all means are linear; "plain": its
            number and then u, for policies with a model of every action.
        segments: The shares (G,) of segments, one of which every user belongs to.
        offsets: What a segment adds to the mean of every signal and action, (1 + m, K, G). Crossed features then hold
            a 1 for the user's segment behind u, plain ones its number.

    >>> world = ContextWorld(reward=[[0.1, 0.0], [0.1, 0.4]], cost=[[0.0, 0.01], [0.0, 0.05]])
    >>> from stagewise.records.draw import Draw
    >>> offered = world.actions_in(Draw(seed=1))
    >>> offered, world.means(offered.features[0]).round(3)
    (Finite(2 actions, 4 features, 0 safe), array([0.1  , 0.001]))
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
        offsets: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> None:
        table, self.names = truth_of(reward, cost, "K, d")
        shares, added = segmented(segments, by_signal(offsets, self.names, "offsets"), table.shape[:2])
        (_, count, d), called = table.shape, signals(len(table) - 1, self.names)
        self.parameters = frozen(np.concatenate([table, added], axis=2).reshape(len(table), -1))  # (1 + m, K (d + G))
        last = f"from 0 to {count - 1}, being one of the actions"
        crossed = one_of(features, ("crossed", "plain"), "features") == "crossed"
        self.actions = Users(count, d, np.cumsum(shares), crossed, whole(safe, "safe", last, 0, count - 1))
        self.shares = shares
        self.outcomes = one_of(outcomes, tuple(NOISES), "outcomes")
        self.noise = frozen(noise_of(noise, called, self.names, self.outcomes))
        if self.outcomes == "bernoulli":
            low, high = -self.actions.most(-self.parameters), self.actions.most(self.parameters)
            check_probabilities(low, high, called, "bernoulli", SLIGHT)

    @property
    def draws(self) -> int:
        return CROSSED if self.actions.crossed else PLAIN

    @property
    def knows_points(self) -> bool:
        return self.actions.crossed

    @property
    def norms(self) -> Floats:
        """How long the parameters (1 + m,) of every signal are: all of them, or of the longest action by itself."""
        each = np.linalg.norm(self.parameters.reshape(len(self.parameters), self.actions.count, -1), axis=2)
        return np.asarray(np.linalg.norm(each, axis=1) if self.actions.crossed else each.max(axis=1))

    def means(self, action: Any) -> Floats:
        """Return the expected reward and costs (1 + m,) of crossed features."""
        if not self.actions.crossed:
            raise InvalidActions("plain features do not say which action they are of; ask means_of(index, features)")
        return linear_means(self.parameters, action)

    def means_of(self, index: int, features: Any) -> Floats:
        users, last = self.actions, self.actions.count - 1
        action = whole(index, "the index", f"from 0 to {last}", 0, last, InvalidActions)
        if users.crossed:
            return self.means(features)
        row, means = vector_of(features, "the action", InvalidActions), np.empty(len(self.parameters))
        if row.size != users.dimension or row[0] != action:
            raise InvalidActions(
                f"the action is {shown(row.tolist())}; it must be {action} and then a user of {users.dimension - 1}"
            )
        segment = 0
        if users.ends.size:
            highest = users.ends.size - 1
            segment = whole(
                number_of(float(row[-1])), "the segment", f"from 0 to {highest}", 0, highest, InvalidActions
            )
        fill_user_means(self.parameters, action, users.width, users.ends.size, row[1:], segment, means)
        return means

    def description(self) -> dict[str, Any]:
        """Return the world as plain values, enough to build it again."""
        users = self.actions
        blocks = self.parameters.reshape(len(self.parameters), users.count, users.width)
        table, added = blocks[:, :, : users.numbers], blocks[:, :, users.numbers :]
        told = {**self.told(table), "safe": users.safe, "features": "crossed" if users.crossed else "plain"}
        if users.ends.size:
            told |= {"segments": self.shares.tolist(), "offsets": plain_signals(added, self.names)}
        return told


def number_of(value: float) -> Any:
    """Return a float as the whole number that it is, or as it is."""
    return int(value) if value.is_integer() else value


def segmented(segments: Any, offsets: Any, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return the shares (G,) of the segments, and what they add (1 + m, K, G)."""
    if segments is None or offsets is None:
        if segments is not offsets:
            raise InvalidProblem("segments and offsets belong together: the shares of segments, and what each adds")
        return np.empty(0), np.empty((*shape, 0))
    shares, added = vector_of(segments, "segments", InvalidProblem), array(offsets, "offsets")
    whole = "; 60 % is 0.6" if abs(float(shares.sum()) - 100.0) <= 1e-6 else ""
    if not (np.all(shares > 0.0) and abs(float(shares.sum()) - 1.0) <= SLIGHT):
        raise InvalidProblem(f"segments is {shares.tolist()}; they must be shares above 0 that add up to 1{whole}")
    if added.shape != (*shape, shares.size):
        raise InvalidProblem(
            f"offsets has shape {added.shape}; it must be {(*shape, shares.size)}: signals, actions and segments"
        )
    return shares, added
