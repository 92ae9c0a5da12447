"""Algorithm 5 as printed, followed by LC-LUCB, where reward and cost of the safe action are unknown."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.workspace import SAFE_ACTION_COST_UNCERTAIN
from stagewise.policies.settings import CAUSES
from stagewise.records.decision import Decision
from stagewise.records.outcome import Outcome
from stagewise.records.random_key import RandomKey
from stagewise_reproduction.printed.lclucb import PrintedLCLUCB
from stagewise_reproduction.printed.ridge import RegressionSums


class WarmUp(NamedTuple):
    """The averages of Algorithm 5."""

    rounds: int
    reward_sum: float
    cost_sum: float
    reward: float | None  # r̂₀(T₀ʳ), once its condition has held
    cost: float | None  # ĉ₀(T₀ᶜ)


class PolicyState(NamedTuple):
    """The state of the warm-up and of the regressions, which include the rounds of the warm-up."""

    warm_up: WarmUp
    sums: RegressionSums


@dataclass(frozen=True, kw_only=True, eq=False)
class PrintedUnknownBaseline(PrintedLCLUCB):
    """Play x₀ until ĉ₀ + 3√(2 log(1/δ)/t) ≤ τ and r̂₀ + 3√(2 log(1/δ)/t) ≤ 1; then LC-LUCB with α_r/α_c = Δ̂_r/Δ̂_c.

    Both scalings are at least 1, as Algorithm 1 requires: the smaller one is 1. The cost is estimated in all d
    directions. If no action is certified, the safe action is played, and its `cause` says so.
    """

    def start(self) -> PolicyState:
        """Return the state before the first round."""
        return PolicyState(WarmUp(0, 0.0, 0.0, None, None), self.start_sums())

    def decide(self, state: Any, actions: Any, draw: RandomKey = RandomKey()) -> Decision:  # noqa: B008 (a draw cannot change)
        """Return the safe action during the warm-up, and lines 3 and 4 of Algorithm 1 after it."""
        reward, cost = state.warm_up.reward, state.warm_up.cost
        if reward is None or cost is None:
            return self.decide_warm_up(draw)
        ratio = (1.0 - reward) / (self.threshold - cost)
        return self.choose_best(state.sums, max(1.0, ratio), max(1.0, 1.0 / ratio), actions, draw)

    def decide_warm_up(self, draw: RandomKey) -> Decision:
        """Return a round of the warm-up."""
        limit, nothing = np.array([self.threshold]), -math.inf
        return Decision(
            self.safe.copy(), None, 0.0, None, nothing, limit, limit, CAUSES[SAFE_ACTION_COST_UNCERTAIN], draw.round
        )

    def learn(self, state: Any, decision: Decision, outcome: Outcome) -> PolicyState:
        """Return the state after a round."""
        warm_up = state.warm_up
        if warm_up.reward is None or warm_up.cost is None:
            warm_up = self.update_averages(warm_up, float(outcome.reward), float(np.ravel(np.asarray(outcome.cost))[0]))
        return PolicyState(warm_up, self.add_outcome(state.sums, decision, outcome))

    def update_averages(self, before: WarmUp, reward: float, cost: float) -> WarmUp:
        """Return lines 2 to 5 of Algorithm 5: an average is fixed when its condition first holds."""
        rounds, rewards, costs = before.rounds + 1, before.reward_sum + reward, before.cost_sum + cost
        margin = 3.0 * math.sqrt(2.0 * math.log(1.0 / self.delta) / rounds)
        kept_reward, kept_cost = before.reward, before.cost
        if kept_reward is None and rewards / rounds + margin <= 1.0:
            kept_reward = rewards / rounds
        if kept_cost is None and costs / rounds + margin <= self.threshold:
            kept_cost = costs / rounds
        return WarmUp(rounds, rewards, costs, kept_reward, kept_cost)
