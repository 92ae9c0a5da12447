"""Rivals that turn a regression oracle's estimates into a mixture by inverse gap weighting (SquareCB).

LOE2D (Guo, Liu 2024): a virtual queue prices the cost. Conservative C-SquareCB (arXiv 2412.06165): explore only while
the sum of pessimistic costs is within the budget of the rounds so far. Both bound a sum, not a round.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise_reproduction.rivals.regression import FIRST, RidgeRival, Sums, build_random


def weigh_gaps(values: Floats, rate: float) -> Floats:
    """Return p_a = 1/(K + γ (max − value_a)), and the rest for the best."""
    best = int(np.argmax(values))
    chances = 1.0 / (len(values) + rate * (values[best] - values))
    chances[best] = 0.0
    chances[best] = 1.0 - float(chances.sum())
    return np.asarray(chances)


@dataclass(frozen=True, kw_only=True, eq=False)
class EstimationToDecision(RidgeRival):
    """What both share: γ_t = rate √t, and a draw from the mixture."""

    rate: float = 20.0
    mixes = True

    def weigh(self, state: Sums, values: Floats) -> Floats:
        """Return the weights of the listed actions and of the safe one beside them, whose value is 0."""
        rate = self.rate * math.sqrt(state.rounds + 1.0)
        beside = weigh_gaps(np.append(values, 0.0), rate) if self.safe_index is None else weigh_gaps(values, rate)
        return beside if self.safe_index is None else np.append(beside, 0.0)

    def sample(
        self, state: Sums, features: Floats, values: Floats, draw: RandomKey, cost: float = math.nan
    ) -> Decision:
        """Return a draw from the mixture over the listed actions and the safe one beside them, if any."""
        chances = self.weigh(state, values)
        drawn = int(build_random(draw).choice(len(chances), p=chances))
        index = drawn if drawn < len(features) else None
        return self.build_decision(features, index, 1.0, cost, draw, chances)


@dataclass(frozen=True, kw_only=True, eq=False)
class LOE2D(EstimationToDecision):
    """Inverse gap weighting of reward minus queue times cost; the queue grows by cost − τ.

    Reconstructed from the abstract: the queue's weight 1/V with V = √t and the regression are ours.
    """

    def start_own(self) -> float:
        return 0.0

    def decide(self, state: Sums, actions: Any, draw: RandomKey = FIRST) -> Decision:
        """Return a draw from the mixture."""
        features = np.asarray(actions.features)
        reward, cost = (state.fits @ state.inverse) @ features.T
        price = float(state.own) / math.sqrt(state.rounds + 1.0)
        return self.sample(state, features, reward - price * cost, draw)

    def learn_own(self, state: Sums, decision: Decision, values: Floats) -> float:
        return max(0.0, float(state.own) + float(values[1]) - self.threshold)


@dataclass(frozen=True, kw_only=True, eq=False)
class ConservativeSquareCB(EstimationToDecision):
    """Inverse gap weighting of the reward, while the sum of pessimistic costs stays within τ times the rounds.

    Reconstructed from the abstract, which constrains the sum of rewards; here the sum of costs is constrained. The
    radius of the regression replaces the oracle's regret bound.
    """

    safe_cost: float = 0.0
    """An upper bound on the safe action's mean cost, below the limit."""

    def start_own(self) -> float:
        return 0.0  # Σ pessimistic costs

    def decide(self, state: Sums, actions: Any, draw: RandomKey = FIRST) -> Decision:
        """Return a draw from the mixture, or the safe action."""
        features = np.asarray(actions.features)
        reward, cost = (state.fits @ state.inverse) @ features.T
        chances = self.weigh(state, reward)
        widths = np.sqrt(np.einsum("ij,jk,ik->i", features, state.inverse, features))
        high = float(chances[:-1] @ (cost + self.radius(state.log_det) * widths))
        if state.own + high > self.threshold * (state.rounds + 1):
            return self.build_decision(features, None, 1.0, self.safe_cost, draw)
        return self.sample(state, features, reward, draw, high)

    def learn_own(self, state: Sums, decision: Decision, values: Floats) -> float:
        return float(state.own) + float(decision.pessimistic_cost[0])
