"""Algorithm 5 and what follows it: LC-LUCB where reward and cost of the safe action are unknown, as printed."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.promise import WARMING
from stagewise.policies.settings import CAUSES
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw
from stagewise.records.outcome import Outcome
from stagewise_reproduction.printed.lclucb import PrintedLCLUCB
from stagewise_reproduction.printed.ridge import Seen


class WarmUp(NamedTuple):
    """The averages of Algorithm 5."""

    rounds: int
    reward_sum: float
    cost_sum: float
    reward: float | None  # r̂₀(T₀ʳ), once its condition has held
    cost: float | None  # ĉ₀(T₀ᶜ)


class State(NamedTuple):
    """What the warm-up and the regressions have seen; the regressions are warm-started with its rounds."""

    warm_up: WarmUp
    seen: Seen


@dataclass(frozen=True, kw_only=True, eq=False)
class PrintedUnknownBaseline(PrintedLCLUCB):
    """Play x₀ until ĉ₀ + 3√(2 log(1/δ)/t) ≤ τ and r̂₀ + 3√(2 log(1/δ)/t) ≤ 1; then LC-LUCB with α_r/α_c = Δ̂_r/Δ̂_c.

    Both scalings are at least 1, as Algorithm 1 asks: the smaller one is 1. The cost is estimated in all d directions.
    Where no action is certified any more the safe action is played; its `fallback` says so.
    """

    def start(self) -> State:
        """Return what is known before the first round."""
        return State(WarmUp(0, 0.0, 0.0, None, None), self.nothing_seen())

    def decide(self, state: Any, actions: Any, draw: Draw = Draw()) -> Decision:  # noqa: B008 (a draw cannot change)
        """Return the safe action during the warm-up, and lines 3 and 4 of Algorithm 1 after it."""
        reward, cost = state.warm_up.reward, state.warm_up.cost
        if reward is None or cost is None:
            return self.warming(draw)
        ratio = (1.0 - reward) / (self.threshold - cost)
        return self.best(state.seen, max(1.0, ratio), max(1.0, 1.0 / ratio), actions, draw)

    def warming(self, draw: Draw) -> Decision:
        """Return a round of the warm-up."""
        limit, nothing = np.array([self.threshold]), -math.inf
        return Decision(self.safe.copy(), -1, 0.0, None, nothing, limit, limit, CAUSES[WARMING], draw.round)

    def learn(self, state: Any, decision: Decision, outcome: Outcome) -> State:
        """Return what is known after a round."""
        warm_up = state.warm_up
        if warm_up.reward is None or warm_up.cost is None:
            warm_up = self.averaged(warm_up, float(outcome.reward), float(np.ravel(np.asarray(outcome.cost))[0]))
        return State(warm_up, self.added(state.seen, decision, outcome))

    def averaged(self, before: WarmUp, reward: float, cost: float) -> WarmUp:
        """Return lines 2 to 5 of Algorithm 5: an average is kept as it is when its condition first holds."""
        rounds, rewards, costs = before.rounds + 1, before.reward_sum + reward, before.cost_sum + cost
        margin = 3.0 * math.sqrt(2.0 * math.log(1.0 / self.delta) / rounds)
        kept_reward, kept_cost = before.reward, before.cost
        if kept_reward is None and rewards / rounds + margin <= 1.0:
            kept_reward = rewards / rounds
        if kept_cost is None and costs / rounds + margin <= self.threshold:
            kept_cost = costs / rounds
        return WarmUp(rounds, rewards, costs, kept_reward, kept_cost)
