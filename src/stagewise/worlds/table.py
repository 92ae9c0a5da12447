"""A world of listed actions with any means: it knows them one by one, whatever function made them."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from stagewise.problem.actions import Finite
from stagewise.problem.checks import Floats, PerSignal, array, shown
from stagewise.problem.errors import InvalidActions, InvalidProblem
from stagewise.records.draw import Draw
from stagewise.worlds.noisy import Outcomes, TabledWorld


class TableWorld(TabledWorld):
    """K actions whose rewards and costs are no linear function of their features; the safe action is one of them.

    Args:
        features: Features (K, d), or a Finite set of them.
        reward: Mean rewards (K,).
        cost: Mean costs (K,) or (m, K).
        noise: Standard deviation of what is gaussian, for all signals or for each.
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
        cost: ArrayLike,
        noise: PerSignal = 0.1,
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
        """Return the world as plain values, enough to build it again."""
        return {**super().description(), "features": self.actions.features.tolist()}

    def actions_in(self, draw: Draw) -> Finite:
        """Return what can be chosen from in a round."""
        return self.actions

    def row(self, action: Any) -> int:
        """Return where an action stands."""
        place = array(action, "the action", InvalidActions)
        key = (place + 0.0).tobytes()
        if place.ndim != 1 or key not in self._rows:
            raise InvalidActions(f"the action {shown(action)} is not among the rows of this world")
        return self._rows[key]

    def means(self, action: Any) -> Floats:
        """Return the expected reward and costs (1 + m,) of an action."""
        return self.table[:, self.row(action)].copy()
