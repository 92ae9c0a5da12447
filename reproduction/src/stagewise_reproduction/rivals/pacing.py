"""Average-budget pacing: a price of cost that spending moves."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise_reproduction.rivals.regression import FIRST, RidgeRival, Sums


@dataclass(frozen=True, kw_only=True, eq=False)
class Pacing(RidgeRival):
    """Play the largest optimistic reward minus price times estimated cost; the price follows what was spent.

    It keeps the limit on average over time, and promises nothing of a round.
    """

    learning_rate: float = 0.05
    bonus: float = 3.0  # of the reward, in posterior standard deviations

    def start_own(self) -> float:
        return 1.0

    def decide(self, state: Sums, actions: Any, draw: RandomKey = FIRST) -> Decision:
        """Return the listed action with the largest score, or the safe action."""
        features = np.asarray(actions.features)
        reward, cost = (state.fits @ state.inverse) @ features.T
        widths = np.sqrt(np.einsum("ij,jk,ik->i", features, state.inverse, features))
        score = reward + self.bonus * self.noise * widths - state.own * cost
        best = int(np.argmax(score))
        return self.build_decision(features, best if score[best] > 0.0 else None, 1.0, np.nan, draw)

    def learn_own(self, state: Sums, decision: Decision, values: Floats) -> float:
        return max(0.0, float(state.own) + self.learning_rate * (float(values[1]) - self.threshold))
