"""Algorithm 4, OPNLB, with the confidence sets of Section 5.3 as printed."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from stagewise.engine.compile import Flags, Floats
from stagewise.problem.safe_action import SafeAction
from stagewise.records.decision import Decision
from stagewise.records.outcome import Outcome
from stagewise.records.random_key import RandomKey
from stagewise.rules.mixture import Vertex
from stagewise_reproduction.exact.triples import find_best_triple


class LeastSquaresState(NamedTuple):
    """The sums of the least squares."""

    rounds: int  # t − 1
    losses: tuple[Floats, Floats]  # Σ (f(X_s) − Y_s)² of every function, of the reward and of the cost
    pulls: Floats  # (K,) how often each arm was pulled


@dataclass(frozen=True, kw_only=True, eq=False)
class PrintedOPNLB:
    """The paper's maximum over mixtures of arms with ‖f − f̂_t‖ ≤ γ(t, δ/2) = 512 log(24 |G| log(2t)/(δ/2)).

    The norm is compared with γ, as Section 5.3 prints it; the lemma of Appendix G bounds its square. Costs also have
    μ(x₀) = c₀. The classes are tables, one row a function, one column an arm.

    >>> rewards, costs = [[0.1, 0.5, 0.9], [0.1, 0.9, 0.5]], [[0.0, 0.2, 0.6], [0.0, 0.6, 0.2]]
    >>> safe = SafeAction(arm=0, reward=0.1, cost=0.0)
    >>> policy = PrintedOPNLB(reward_class=rewards, cost_class=costs, safe_action=safe, threshold=0.3)
    >>> policy.decide(policy.start(), None).probabilities
    array([0.5, 0. , 0.5, 0. ])
    """

    reward_class: Any
    cost_class: Any
    safe_action: SafeAction
    threshold: float
    delta: float = 0.01

    mixes: ClassVar[bool] = True
    is_optimistic: ClassVar[bool] = True

    @cached_property
    def tables(self) -> tuple[Floats, Floats]:
        """The classes (F, K) of the reward and of the cost."""
        return np.asarray(self.reward_class, dtype=np.float64), np.asarray(self.cost_class, dtype=np.float64)

    @cached_property
    def safe_arm(self) -> int:
        """The safe arm."""
        arm: Any = self.safe_action.arm
        return int(arm)

    @cached_property
    def safe_means(self) -> tuple[float, float]:
        """Its mean reward and cost, which are known."""
        cost: Any = self.safe_action.cost
        return float(self.safe_action.reward or 0.0), float(np.ravel(cost)[0])

    @cached_property
    def solve(self) -> Any:
        """The best mixture for a set of plausible functions, cached because the set rarely changes."""
        return lru_cache(maxsize=256)(self.solve_for)

    def start(self) -> LeastSquaresState:
        """Return the state before the first round."""
        rewards, costs = self.tables
        return LeastSquaresState(0, (np.zeros(len(rewards)), np.zeros(len(costs))), np.zeros(rewards.shape[1]))

    def decide(self, state: LeastSquaresState, actions: Any, draw: RandomKey = RandomKey()) -> Decision:  # noqa: B008 (a draw cannot change)
        """Return lines 3 to 6 of the algorithm."""
        plausible = self.plausible(state)
        vertex: Vertex = self.solve(*(plausible_sets.tobytes() for plausible_sets in plausible))
        shares = np.append(vertex.shares[:-1], 0.0)
        shares[self.safe_arm] += vertex.shares[-1]
        shares /= shares.sum()
        rng = np.random.default_rng([draw.seed, draw.run, draw.round, 0])
        arm = min(int(np.searchsorted(np.cumsum(shares), rng.random(), side="right")), len(shares) - 2)
        costs = self.tables[1][plausible[1]] @ shares[:-1]
        return Decision(
            action=arm,
            action_index=arm,
            step_size=1.0,
            probabilities=shares,
            optimistic_reward=vertex.value,
            pessimistic_cost=np.array([costs.max()]),
            thresholds=np.array([self.threshold]),
            reason_details=None,
            round=draw.round,
            solver_gap=max(0.0, vertex.bound - vertex.value),
        )

    def learn(self, state: LeastSquaresState, decision: Decision, outcome: Outcome) -> LeastSquaresState:
        """Return the state after a round."""
        arm, observed = int(decision.action), (float(outcome.reward), float(np.ravel(np.asarray(outcome.cost))[0]))
        rewards, costs = (
            losses + (table[:, arm] - value) ** 2
            for losses, table, value in zip(state.losses, self.tables, observed, strict=True)
        )
        pulls = state.pulls.copy()
        pulls[arm] += 1.0
        return LeastSquaresState(state.rounds + 1, (rewards, costs), pulls)

    def radius(self, count: int, size: int) -> float:
        """Return γ(t, δ/2) of a class with that many functions."""
        return 512.0 * math.log(24.0 * size * math.log(2.0 * (count + 1)) / (self.delta / 2.0))

    def plausible(self, state: LeastSquaresState) -> tuple[Flags, Flags]:
        """Return which reward and which cost functions are in C_t."""
        plausible_sets: list[Flags] = []
        for losses, table in zip(state.losses, self.tables, strict=True):
            norms = np.sqrt((table - table[int(np.argmin(losses))]) ** 2 @ state.pulls)
            plausible_sets.append(norms <= self.radius(state.rounds, len(table)))
        at_safe: Flags = self.tables[1][:, self.safe_arm] == self.safe_means[1]
        return plausible_sets[0], plausible_sets[1] & at_safe

    def solve_for(self, rewards: bytes, costs: bytes) -> Vertex:
        """Return the maximum over π of the optimistic reward, under the pessimistic cost."""
        plausible_sets = [np.frombuffer(flags, dtype=np.bool_) for flags in (rewards, costs)]
        tables = [table[flags] for table, flags in zip(self.tables, plausible_sets, strict=True)]
        both = [np.column_stack([table, table[:, self.safe_arm]]) for table in tables]
        reward, cost = self.safe_means
        scale = (1.0 - reward) / (self.threshold - cost)
        return find_best_triple(both[0], (both[1],), np.array([self.threshold]), np.array([scale]))
