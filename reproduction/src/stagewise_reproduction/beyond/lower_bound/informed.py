"""A policy that knows both instances and only tests which one it plays: how tight the lower bound is."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from stagewise.problem.safe_action import SafeAction
from stagewise.records.decision import Decision
from stagewise.records.outcome import Outcome
from stagewise.records.random_key import RandomKey

TEST, FIRST, SECOND = np.array([2, 0, 0, 1, 0]) / 3, np.array([2, 1, 0, 0, 0]) / 3, np.array([0, 1, 0, 2, 0]) / 3


@dataclass(frozen=True, kw_only=True)
class InformedPolicy:
    """A policy that knows every mean but the cost of arm 3, which is one of two values.

    The state is the log likelihood ratio of the two. Until Wald's test ends, with error δ on either side, a third of
    the probability is on arm 3 and the rest on the safe arm, which is within the limit in both instances. Then the best
    mixture of the accepted instance is played.
    """

    safe_action: SafeAction
    threshold: float
    delta: float

    mixes: ClassVar[bool] = True

    @property
    def costs(self) -> tuple[float, float]:
        """The cost of arm 3 in ν' and in ν."""
        cost: Any = self.safe_action.cost
        cheap = float(np.ravel(cost)[0])
        return cheap, cheap + 3.0 * (self.threshold - cheap)

    def start(self) -> float:
        """Return the initial log likelihood ratio."""
        return 0.0

    def decide(self, state: float, actions: Any, draw: RandomKey = RandomKey()) -> Decision:  # noqa: B008 (a draw cannot change)
        """Return a draw from the mixture of the test, or from the best mixture of the accepted instance."""
        end = math.log(1.0 / self.delta)
        mixture = TEST if abs(state) < end else FIRST if state > 0.0 else SECOND
        chance = np.random.default_rng([draw.seed, draw.run, draw.round, 0]).random()
        arm = int(np.searchsorted(np.cumsum(mixture), chance, side="right"))
        limit = np.array([self.threshold])
        return Decision(arm, arm, 1.0, mixture, 1.0, limit, limit, None, draw.round)

    def learn(self, state: float, decision: Decision, outcome: Outcome) -> float:
        """Return the log likelihood ratio of ν to ν' with unit Gaussian noise; it is fixed once the test is over."""
        if decision.action != 3 or abs(state) >= math.log(1.0 / self.delta):
            return state
        (cheap, costly), observed = self.costs, float(np.ravel(np.asarray(outcome.cost))[0])
        return state + (costly - cheap) * (observed - 0.5 * (cheap + costly))
