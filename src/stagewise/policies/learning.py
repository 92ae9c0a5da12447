"""What all policies do with an outcome: check it, sign it, take it in."""

from abc import abstractmethod
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.policies.policy import Played, State
from stagewise.problem.checks import LARGEST, observed
from stagewise.problem.errors import InvalidOutcome
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.outcome import Outcome


class Learning:
    """The verb `learn`, from the policy's `absorb`."""

    thresholds: Thresholds

    @abstractmethod
    def absorb(self, state: State, played: Played, values: Floats) -> State:
        """Take in the reward and the signed costs (1 + m,) seen with an action, in place where possible."""

    def learn(self, state: State, decision: Decision, outcome: Outcome) -> State:
        """Return the memory after the decision's outcome was seen; the old one stays as it was."""
        values = self.values(outcome.reward, outcome.cost)
        return self.absorb(self.follow(State(state.memory.copy()), decision), Played.by(decision), values)

    def follow(self, state: State, decision: Decision) -> State:
        """Return a memory that is prepared to see a decision's candidates again, in place where possible."""
        return state

    def values(self, reward: Any, cost: Any) -> Floats:
        """Return the reward and the costs (1 + m,) as they are learned from: finite, signed so that less is better."""
        m = self.thresholds.signs.size
        if type(reward) is float and type(cost) is float and m == 1 and abs(reward) < LARGEST and abs(cost) < LARGEST:
            return np.array([reward, self.thresholds.signs[0] * cost])
        values = np.empty(1 + m)
        values[0] = observed(reward, "the reward")
        if m:
            if cost is None:
                raise InvalidOutcome(f"the cost is missing; it is needed for {', '.join(self.thresholds.names)}")
            values[1:] = self.thresholds.signs * self.thresholds.costs(cost)
        for name, value in zip(("reward", *self.thresholds.names), values, strict=True):
            if abs(value) > LARGEST:
                raise InvalidOutcome(f"the {name!r} is {value}; beyond {LARGEST:g} its square cannot be reckoned with")
        return values

    def fits(self, memory: Floats) -> bool:
        """Say whether a memory can be this policy's."""
        return memory.shape == self.start().memory.shape

    @abstractmethod
    def start(self) -> State:
        """Return the memory of a policy that has seen nothing."""


def check_unit_range(values: Floats, thresholds: Thresholds, why: str) -> None:
    """Refuse signed outcomes (1 + m,) that lie outside [0, 1] in the user's own direction."""
    costs = thresholds.in_units(values[1:])
    for name, value in zip(("reward", *thresholds.names), (values[0], *costs), strict=True):
        if not 0.0 <= value <= 1.0:
            raise InvalidOutcome(f"the {name!r} is {value}, outside [0, 1]; {why}")
