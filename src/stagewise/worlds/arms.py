"""A world of arms: it knows their means."""

from typing import Any

import numpy as np

from stagewise.kernels.world import BERNOULLI, CLIPPED, GAUSSIAN, fill_outcome
from stagewise.problem.actions import Arms
from stagewise.problem.checks import Floats, array, frozen, one_per
from stagewise.problem.errors import InvalidProblem
from stagewise.records.draw import Draw
from stagewise.records.outcome import Outcome

OUTCOMES = {"bernoulli": BERNOULLI, "gaussian": GAUSSIAN, "clipped-gaussian": CLIPPED}


class ArmsWorld:
    """K arms with mean rewards (K,) and mean costs (K,) or (m, K).

    `outcomes` is "bernoulli", "gaussian" (standard deviation `noise`) or "clipped-gaussian" (the same, cut to [0, 1];
    regret and costs are then still counted by the means given here).

    >>> ArmsWorld(reward=[0.1, 0.7], cost=[0.0, 0.2]).means(1)
    array([0.7, 0.2])
    """

    def __init__(self, *, reward: Any, cost: Any, outcomes: str = "bernoulli", noise: Any = 0.1) -> None:
        rewards, costs = array(reward, "reward"), np.atleast_2d(array(cost, "cost"))
        if rewards.ndim != 1 or rewards.size == 0 or costs.ndim != 2 or costs.shape[1] != rewards.size:
            raise InvalidProblem(
                f"reward has shape {rewards.shape} and cost {costs.shape}; they must be (K,) and (m, K)"
            )
        if outcomes not in OUTCOMES:
            raise InvalidProblem(f"outcomes is {outcomes!r}; it must be one of {', '.join(map(repr, OUTCOMES))}")
        table = np.vstack([rewards, costs])
        if outcomes != "gaussian" and not (table.min() >= 0.0 and table.max() <= 1.0):
            raise InvalidProblem(
                f"the means lie in [{table.min():g}, {table.max():g}]; {outcomes} needs them in [0, 1]"
            )
        names = ("reward", *(f"cost {j + 1}" for j in range(len(costs))))
        self.table = frozen(table)
        self.outcomes = outcomes
        self.noise = frozen(one_per(noise, names, "noise"))
        self.actions = Arms(rewards.size)

    def description(self) -> dict[str, Any]:
        """Return the world as plain values, enough to build it again."""
        return {
            "kind": type(self).__name__,
            "reward": self.table[0].tolist(),
            "cost": self.table[1:].tolist(),
            "outcomes": self.outcomes,
            "noise": self.noise.tolist(),
        }

    @property
    def costs(self) -> int:
        """The number of costs m."""
        return len(self.table) - 1

    def actions_in(self, draw: Draw) -> Arms:
        """Return what can be chosen from in a round."""
        return self.actions

    def means(self, action: Any) -> Floats:
        """Return the expected reward and costs (1 + m,) of an arm."""
        return self.table[:, int(action)].copy()

    def outcome(self, action: Any, draw: Draw) -> Outcome:
        """Return what is seen when the arm is pulled in this round."""
        means = self.means(action)
        seen = np.empty(means.size)
        fill_outcome(OUTCOMES[self.outcomes], means, self.noise, draw.seed, draw.run, draw.round, seen)
        return Outcome(float(seen[0]), seen[1:])
