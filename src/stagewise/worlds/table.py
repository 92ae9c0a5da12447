"""Worlds of listed actions with any means: they know them one by one, whatever function made them."""

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from stagewise.kernels.world import BERNOULLI, CLIPPED, GAUSSIAN
from stagewise.problem.actions import Finite
from stagewise.problem.checks import Floats, PerSignal, array, frozen, one_of, shown
from stagewise.problem.errors import InvalidActions, InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.worlds.named import check_probabilities, noise_of, truth_of
from stagewise.worlds.world import NoisyWorld, offered, signals, some

Outcomes = Literal["bernoulli", "gaussian", "clipped-gaussian"]
OUTCOMES: dict[str, int] = {"bernoulli": BERNOULLI, "gaussian": GAUSSIAN, "clipped-gaussian": CLIPPED}


class TabledWorld(NoisyWorld):
    """A world of K actions whose means are known one by one."""

    truth = "table"
    kinds = OUTCOMES

    def __init__(self, reward: Any, cost: Any, outcomes: str, noise: Any) -> None:
        table, self.names = truth_of(reward, cost, "K")
        called = signals(len(table) - 1, self.names)
        self.outcomes = one_of(outcomes, tuple(OUTCOMES), "outcomes")
        if self.outcomes != "gaussian":
            check_probabilities(table.min(axis=1), table.max(axis=1), called, self.outcomes)
        self.table = frozen(table)  # (1 + m, K)
        self.noise = frozen(noise_of(noise, called, self.names, self.outcomes))

    @property
    def most(self) -> Floats:
        return np.asarray(self.table.max(axis=1))

    def most_at_safe(self, signs: Floats) -> Floats:
        return self.mean_at_safe() * signs

    def mean_at_safe(self) -> Floats:
        return self.means(self.actions.safe_of_round.features)  # the same in every round

    def truths(self, actions: Any) -> Floats:
        return self.table

    def signed_parameters(self, signs: Floats) -> Floats:
        """Return nothing: all means are told beforehand."""
        return np.zeros((len(self.table), int(self.actions.dimension or 0)))

    def description(self) -> dict[str, Any]:
        """Return the world as plain values, enough to build it again."""
        return {**self.told(self.table), **offered(self.actions)}


class TableWorld(TabledWorld):
    """K actions whose rewards and costs are no linear function of their features; the safe action is one of them.

    Args:
        features: Features (K, d), or a Finite set of them.
        reward: Mean rewards (K,).
        cost: Mean costs (K,) or (m, K), or by name: limits then meet the costs of their names.
        noise: Standard deviation of what is gaussian, for all signals or for each; None: 0.1.
        outcomes: "gaussian", "bernoulli" or "clipped-gaussian".

    >>> world = TableWorld(features=[[0.0], [1.0]], reward=[0.1, 0.7], cost=[0.0, 0.2], noise=0.1)
    >>> world.means([1.0])
    array([0.7, 0.2])
    """

    actions: Finite

    def __init__(
        self,
        *,
        features: ArrayLike | Finite,
        reward: ArrayLike,
        cost: ArrayLike | Mapping[str, ArrayLike],
        noise: PerSignal | Mapping[str, float] | None = None,
        outcomes: Outcomes = "gaussian",
    ) -> None:
        super().__init__(reward, cost, outcomes, noise)
        self.actions = features if isinstance(features, Finite) else Finite(features)
        if len(self.actions) != self.table.shape[1]:
            raise InvalidProblem(
                f"there are means of {self.table.shape[1]} actions and features of {len(self.actions)}; they must agree"
            )
        self._rows: dict[bytes, int] = {}
        for row, action in enumerate(self.actions.features + 0.0):  # + 0.0: there is one zero
            known = self._rows.setdefault(action.tobytes(), row)
            if not np.array_equal(self.table[:, known], self.table[:, row]):
                raise InvalidProblem(f"rows {known} and {row} have the same features and other means; one must go")

    def description(self) -> dict[str, Any]:
        return {**super().description(), "features": self.actions.description()}

    def row(self, action: Any) -> int:
        """Return where an action stands."""
        place = array(action, "the action", InvalidActions)
        key = (place + 0.0).tobytes()
        if place.ndim != 1 or key not in self._rows:
            raise InvalidActions(f"the action {shown(action)} is not among the rows of this world")
        return self._rows[key]

    def means(self, action: Any) -> Floats:
        return self.table[:, self.row(action)].copy()

    def safe_place(self, safe: SafeAction | None) -> Any:
        if safe is None or safe.features is None:
            return None
        return self.actions.features[self.row(safe.features)]

    @classmethod
    def rebuilt(cls, told: dict[str, Any]) -> Self:
        given = dict(told)
        eligible = given.pop("eligible", None)
        features = some(Finite.rebuilt(given.pop("features")), eligible)
        return cls.again(given, features=features)
