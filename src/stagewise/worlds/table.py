"""A world of listed actions with any means: it knows them one by one, whatever function made them."""

from typing import Any

import numpy as np

from stagewise.kernels.world import fill_outcome
from stagewise.problem.actions import Finite
from stagewise.problem.checks import Floats, array, frozen, one_per, shown
from stagewise.problem.errors import InvalidActions, InvalidProblem
from stagewise.records.draw import Draw
from stagewise.records.outcome import Outcome
from stagewise.worlds.arms import OUTCOMES


class TableWorld:
    """K actions with features (K, d), mean rewards (K,) and mean costs (K,) or (m, K).

    For rewards and costs that are no linear function of the features. The safe action must be one of the rows.
    `outcomes` is "gaussian" (standard deviation `noise`), "bernoulli" or "clipped-gaussian".

    >>> world = TableWorld(features=[[0.0], [1.0]], reward=[0.1, 0.7], cost=[0.0, 0.2], noise=0.1)
    >>> world.means([1.0])
    array([0.7, 0.2])
    """

    def __init__(self, *, features: Any, reward: Any, cost: Any, noise: Any = 0.1, outcomes: str = "gaussian") -> None:
        actions = features if isinstance(features, Finite) else Finite(features)
        rewards, costs = array(reward, "reward"), np.atleast_2d(array(cost, "cost"))
        if rewards.shape != (len(actions),) or costs.ndim != 2 or costs.shape[1] != len(actions):
            raise InvalidProblem(
                f"reward has shape {rewards.shape} and cost {costs.shape}; they must be (K,) and (m, K) "
                f"for the {len(actions)} actions"
            )
        if outcomes not in OUTCOMES:
            raise InvalidProblem(f"outcomes is {outcomes!r}; it must be one of {', '.join(map(repr, OUTCOMES))}")
        names = ("reward", *(f"cost {j + 1}" for j in range(len(costs))))
        self.actions = actions
        self.table = frozen(np.vstack([rewards, costs]))
        self.noise = frozen(one_per(noise, names, "noise"))
        self.outcomes = outcomes
        self._rows: dict[bytes, int] = {}
        for row, action in enumerate(actions.features + 0.0):  # + 0.0: there is one zero
            known = self._rows.setdefault(action.tobytes(), row)
            if not np.array_equal(self.table[:, known], self.table[:, row]):
                raise InvalidProblem(f"rows {known} and {row} have the same features and other means; one must go")

    def description(self) -> dict[str, Any]:
        """Return the world as plain values, enough to build it again."""
        return {
            "kind": type(self).__name__,
            "features": self.actions.features.tolist(),
            "reward": self.table[0].tolist(),
            "cost": self.table[1:].tolist(),
            "outcomes": self.outcomes,
            "noise": self.noise.tolist(),
        }

    @property
    def costs(self) -> int:
        """The number of costs m."""
        return len(self.table) - 1

    def actions_in(self, draw: Draw) -> Finite:
        """Return what can be chosen from in a round."""
        return self.actions

    def row(self, action: Any) -> int:
        """Return where an action stands."""
        key = (np.ascontiguousarray(action, dtype=np.float64) + 0.0).tobytes()
        if key not in self._rows:
            raise InvalidActions(f"the action {shown(action)} is not among the rows of this world")
        return self._rows[key]

    def means(self, action: Any) -> Floats:
        """Return the expected reward and costs (1 + m,) of an action."""
        return self.table[:, self.row(action)].copy()

    def outcome(self, action: Any, draw: Draw) -> Outcome:
        """Return what is seen when the action is played in this round."""
        means = self.means(action)
        seen = np.empty(means.size)
        fill_outcome(OUTCOMES[self.outcomes], means, self.noise, draw.seed, draw.run, draw.round, seen)
        return Outcome(float(seen[0]), seen[1:])
