"""Conformal risk control around a classifier of the cost."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise_reproduction.rivals.regression import FIRST, RidgeRival, Sums


class Calibration(NamedTuple):
    """The last rounds: what the classifier predicted of the action that was played, and the cost; and the threshold."""

    scores: Floats  # (window,) −∞ where the safe action was played
    costs: Floats  # (window,)
    highest: float  # the largest predicted cost that may be played


def calibrate(scores: Floats, costs: Floats, limit: float) -> float:
    """Return the largest λ with (Σ cost 1{score ≤ λ} + 1)/(n + 1) ≤ limit (Angelopoulos et al. 2024, B = 1).

    >>> calibrate(np.array([0.1, 0.2, 0.3]), np.array([0.0, 0.0, 1.0]), 0.3)
    0.2
    """
    order = np.argsort(scores)
    kept = (np.cumsum(costs[order]) + 1.0) / (len(costs) + 1.0) <= limit
    count = int(np.argmin(kept)) if not kept.all() else len(kept)
    return float(scores[order][count - 1]) if count else -np.inf


@dataclass(frozen=True, kw_only=True, eq=False)
class Conformal(RidgeRival):
    """Play the largest optimistic reward among the actions whose predicted cost is below a calibrated threshold.

    The threshold is renewed every `renewal` rounds on the last `window` ones. Its guarantee is of the average of
    exchangeable rounds; rounds whose actions it chose itself are not exchangeable. Any cost is allowed at first.
    """

    window: int = 2_000
    renewal: int = 500
    bonus: float = 1.0

    def start_own(self) -> Calibration:
        return Calibration(np.full(self.window, -np.inf), np.zeros(self.window), np.inf)

    def predict(self, state: Sums, features: Floats) -> Floats:
        """Return the estimated rewards and costs (2, K)."""
        return np.asarray((state.fits @ state.inverse) @ features.T)

    def decide(self, state: Sums, actions: Any, draw: RandomKey = FIRST) -> Decision:
        """Return the listed action, or the safe one."""
        features = np.asarray(actions.features)
        reward, cost = self.predict(state, features)
        widths = np.sqrt(np.einsum("ij,jk,ik->i", features, state.inverse, features))
        score = np.where(cost <= state.own.highest, reward + self.bonus * self.noise * widths, -np.inf)
        best = int(np.argmax(score))
        return self.build_decision(features, best if score[best] > 0.0 else None, 1.0, np.nan, draw)

    def learn_own(self, state: Sums, decision: Decision, values: Floats) -> Calibration:
        own, slot = state.own, state.rounds % self.window
        scores, costs = own.scores.copy(), own.costs.copy()
        played = decision.action_index not in (None, self.safe_index)
        scores[slot] = self.predict(state, np.atleast_2d(decision.action))[1, 0] if played else -np.inf
        costs[slot] = values[1] if played else 0.0
        highest, filled = own.highest, min(state.rounds + 1, self.window)
        if (state.rounds + 1) % self.renewal == 0:
            highest = calibrate(scores[:filled], costs[:filled], self.threshold)
        return Calibration(scores, costs, highest)
