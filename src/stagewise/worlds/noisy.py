"""What every world does with its means: it shows them with noise."""

from abc import ABC, abstractmethod
from typing import Any, Literal, Self

import numpy as np

from stagewise.kernels.world import BERNOULLI, CLIPPED, GAUSSIAN, fill_outcome
from stagewise.problem.checks import Floats, array, frozen, one_of, one_per
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.renamed import refuse_old
from stagewise.records.draw import Draw
from stagewise.records.outcome import Outcome
from stagewise.worlds.draws import checked_draw

Outcomes = Literal["bernoulli", "gaussian", "clipped-gaussian"]
OUTCOMES: dict[str, int] = {"bernoulli": BERNOULLI, "gaussian": GAUSSIAN, "clipped-gaussian": CLIPPED}


class NoisyWorld(ABC):
    """A world whose every action has a mean reward and m mean costs."""

    noise: Floats  # (1 + m,) scale of each signal's noise

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        refuse_old(cls, settings)
        return super().__new__(cls)

    @property
    @abstractmethod
    def kind(self) -> int:
        """The number by which kernels know the noise."""

    @abstractmethod
    def means(self, action: Any) -> Floats:
        """Return the expected reward and costs (1 + m,) of an action, or refuse an action that is none."""

    @property
    def costs(self) -> int:
        """The number of costs m."""
        return int(self.noise.size) - 1

    def outcome(self, action: Any, draw: Draw) -> Outcome:
        """Return what is seen when the action is played in this round."""
        means = self.means(action)
        seen = np.empty(means.size)
        fill_outcome(self.kind, means, self.noise, *checked_draw(draw), seen)
        return Outcome(float(seen[0]), seen[1:])


class TabledWorld(NoisyWorld):
    """A world of K actions whose means are known one by one."""

    actions: Any  # what is listed, and which of it is on offer

    def __init__(self, reward: Any, cost: Any, outcomes: str, noise: Any) -> None:
        rewards, costs = array(reward, "reward"), np.atleast_2d(array(cost, "cost"))
        if rewards.ndim != 1 or rewards.size == 0 or costs.ndim != 2 or costs.shape[1] != rewards.size:
            raise InvalidProblem(
                f"reward has shape {rewards.shape} and cost {costs.shape}; they must be (K,) and (m, K)"
            )
        outcomes = one_of(outcomes, tuple(OUTCOMES), "outcomes")
        table = np.vstack([rewards, costs])
        if outcomes != "gaussian" and not (table.min() >= 0.0 and table.max() <= 1.0):
            raise InvalidProblem(
                f"the means lie in [{table.min():g}, {table.max():g}]; {outcomes} needs them in [0, 1]"
            )
        self.table = frozen(table)  # (1 + m, K)
        self.outcomes: Any = outcomes
        self.noise = frozen(one_per(noise, signals(len(costs)), "noise"))

    @property
    def kind(self) -> int:
        """The number by which kernels know the outcomes."""
        return OUTCOMES[self.outcomes]

    def description(self) -> dict[str, Any]:
        """Return the world as plain values, enough to build it again."""
        return {
            "kind": type(self).__name__,
            "reward": self.table[0].tolist(),
            "cost": self.table[1:].tolist(),
            "outcomes": self.outcomes,
            "noise": self.noise.tolist(),
            **offered(self.actions),
        }


def offered(actions: Any) -> dict[str, list[int]]:
    """Return which of the listed actions are on offer, where not all are: what a description says of `only`."""
    return {"eligible": np.flatnonzero(actions.eligible).tolist()} if actions.eligible.size else {}


def signals(costs: int) -> tuple[str, ...]:
    """Return what messages call the reward and the costs."""
    return ("reward", *(f"cost {j + 1}" for j in range(costs)))
