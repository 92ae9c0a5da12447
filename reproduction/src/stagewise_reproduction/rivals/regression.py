"""What the rivals share: a ridge regression of reward and cost on features, one cost, and a safe action of cost 0."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.problem.safe_action import SafeAction
from stagewise.records.decision import Decision
from stagewise.records.outcome import Outcome
from stagewise.records.random_key import RandomKey

FIRST = RandomKey()


class Sums(NamedTuple):
    """A regression's sums, and what a method keeps beside them."""

    inverse: Floats  # (d, d) V⁻¹
    fits: Floats  # (2, d) Σ y x, of the reward and of the cost
    log_det: float  # log det V/λᵈ
    rounds: int
    own: Any  # of the method


@dataclass(frozen=True, kw_only=True, eq=False)
class RidgeRival:
    """Settings and regression of a method whose means are linear in the features."""

    safe_action: SafeAction
    threshold: float
    noise: float
    norm_bound: float = 1.0
    ridge: float | None = None
    """λ; None: the number of features times R²/S², as in the library."""
    delta: float = 0.01
    safe_index: int | None = None
    """Where the safe action stands among the listed ones; None: beside them, at 0."""

    @property
    def size(self) -> int:
        """The number of features."""
        return len(np.asarray(self.safe_action.features))

    @property
    def strength(self) -> float:
        """The ridge."""
        return self.size * (self.noise / self.norm_bound) ** 2 if self.ridge is None else self.ridge

    def start(self) -> Sums:
        """Return the state before the first round."""
        return Sums(np.eye(self.size) / self.strength, np.zeros((2, self.size)), 0.0, 0, self.start_own())

    def start_own(self) -> Any:
        """Return what the method keeps before the first round."""
        return None

    def learn(self, state: Sums, decision: Decision, outcome: Outcome) -> Sums:
        """Return the state after a round."""
        x = np.asarray(decision.action, dtype=np.float64)
        values = np.array([float(outcome.reward), float(np.ravel(np.asarray(outcome.cost))[0])])
        pull = state.inverse @ x
        growth = 1.0 + float(x @ pull)
        return Sums(
            state.inverse - np.outer(pull, pull) / growth,
            state.fits + np.outer(values, x),
            state.log_det + math.log(growth),
            state.rounds + 1,
            self.learn_own(state, decision, values),
        )

    def learn_own(self, state: Sums, decision: Decision, values: Floats) -> Any:
        """Return what the method keeps after a round."""
        return state.own

    def radius(self, log_det: float) -> float:
        """Return β = √(R² (log det V/λᵈ + 2 log 2/δ) + λS²): δ/2 each for the reward and the cost."""
        square = self.noise**2 * (log_det + 2.0 * math.log(2.0 / self.delta))
        return math.sqrt(square + self.strength * self.norm_bound**2)

    def build_decision(
        self, features: Floats, index: int | None, step: float, cost: float, draw: RandomKey, chances: Any = None
    ) -> Decision:
        """Return the point `step` of the way to a listed action; `cost`: its pessimistic cost, NaN: none is claimed."""
        if index is None:
            index, step = self.safe_index, 1.0
        return Decision(
            action=np.zeros(self.size) if index is None else step * features[index],
            action_index=index,
            step_size=0.0 if index is None else step,
            probabilities=chances,
            optimistic_reward=math.nan,
            pessimistic_cost=np.array([cost]),
            thresholds=np.array([self.threshold]),
            reason_details=None,
            round=draw.round,
        )


def build_random(draw: RandomKey) -> np.random.Generator:
    """Return the random numbers of one round."""
    return np.random.default_rng([draw.seed, draw.run, draw.round])
