"""What all policies do with an outcome: check it, sign it, take it in."""

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.policies.policy import State
from stagewise.problem.checks import number
from stagewise.problem.errors import InvalidOutcome
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.outcome import Outcome


class Learning:
    """The verb `learn`, from the policy's `absorb`."""

    thresholds: Thresholds

    @abstractmethod
    def absorb(self, state: State, action: Any, values: Floats) -> State:
        """Take in the reward and the signed costs (1 + m,) seen with an action, in place where possible."""

    def learn(self, state: State, decision: Decision, outcome: Outcome) -> State:
        """Return the memory after the decision's outcome was seen; the old one stays as it was."""
        return self.absorb(State(state.memory.copy()), decision.action, self.values(outcome.reward, outcome.cost))

    def values(self, reward: Any, cost: Any) -> Floats:
        """Return the reward and the costs (1 + m,) as they are learned from: finite, signed so that less is better."""
        m = self.thresholds.signs.size
        if type(reward) is float and type(cost) is float and m == 1 and math.isfinite(reward) and math.isfinite(cost):
            return np.array([reward, self.thresholds.signs[0] * cost])
        values = np.empty(1 + m)
        values[0] = number(reward, "the reward", InvalidOutcome)
        if m:
            if cost is None:
                raise InvalidOutcome(f"the cost is missing; it is needed for {', '.join(self.thresholds.names)}")
            values[1:] = self.thresholds.signs * self.thresholds.costs(cost)
        return values
