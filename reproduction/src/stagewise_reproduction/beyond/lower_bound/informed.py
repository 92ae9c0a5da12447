"""Who knows both instances and only tests which of them it is in: how close to the lower bound one can come."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from stagewise.problem.safe_action import SafeAction
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw
from stagewise.records.outcome import Outcome

TEST, FIRST, SECOND = np.array([2, 0, 0, 1, 0]) / 3, np.array([2, 1, 0, 0, 0]) / 3, np.array([0, 1, 0, 2, 0]) / 3


@dataclass(frozen=True, kw_only=True)
class Informed:
    """Knows every mean but the cost of arm 3, which is one of two; the state is the log likelihood ratio of the two.

    Until Wald's test ends, with error δ on either side, a third of the mass is on arm 3 and the rest on the safe arm:
    within the limit in both instances. Then the best mixture of the instance that was found is played.
    """

    safe_action: SafeAction
    threshold: float
    delta: float

    mixes: ClassVar[bool] = True

    @property
    def costs(self) -> tuple[float, float]:
        """What arm 3 costs in ν' and in ν."""
        cost: Any = self.safe_action.cost
        cheap = float(np.ravel(cost)[0])
        return cheap, cheap + 3.0 * (self.threshold - cheap)

    def start(self) -> float:
        """Return nothing learned."""
        return 0.0

    def decide(self, state: float, actions: Any, draw: Draw = Draw()) -> Decision:  # noqa: B008 (a draw cannot change)
        """Return a draw from the mixture of the test, or from the best one of what it found."""
        end = math.log(1.0 / self.delta)
        mixture = TEST if abs(state) < end else FIRST if state > 0.0 else SECOND
        chance = np.random.default_rng([draw.seed, draw.run, draw.round, 0]).random()
        arm = int(np.searchsorted(np.cumsum(mixture), chance, side="right"))
        limit = np.array([self.threshold])
        return Decision(arm, arm, 1.0, mixture, 1.0, limit, limit, None, draw.round)

    def learn(self, state: float, decision: Decision, outcome: Outcome) -> float:
        """Return the log likelihood ratio of ν to ν', both with unit Gaussian noise; it stays once the test is over."""
        if decision.action != 3 or abs(state) >= math.log(1.0 / self.delta):
            return state
        (cheap, dear), seen = self.costs, float(np.ravel(np.asarray(outcome.cost))[0])
        return state + (dear - cheap) * (seen - 0.5 * (cheap + dear))
