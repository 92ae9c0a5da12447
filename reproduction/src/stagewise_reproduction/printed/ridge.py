"""The paper's estimates and radii as printed: (3), (4) and the theorem on confidence sets in Section 4.1."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.problem.safe_action import SafeAction
from stagewise.records.decision import Decision
from stagewise.records.outcome import Outcome


class RegressionSums(NamedTuple):
    """The sums of the regressions."""

    rounds: int  # t − 1
    gram: Floats  # (d, d) Σ_t
    rewards: Floats  # (d,) Σ R_s X_s
    cost_gram: Floats  # (n, n) Σ_t^{o,⊥} in coordinates of the complement, or of all d directions
    costs: Floats  # (n,)


class Estimates(NamedTuple):
    """Ridge estimates in ℝ^d, the matrices of their norms, and their radii."""

    reward: Floats  # (d,) θ̂_t
    inverse: Floats  # (d, d) Σ_t⁻¹
    reward_radius: float  # β_t(δ, d)
    cost: Floats  # (d,) μ̂_t, with its known part along x₀
    cost_inverse: Floats  # (d, d) the pseudo-inverse of Σ_t^{o,⊥}
    cost_radius: float  # β_t(δ, d − 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class PrintedRegression:
    """The reward in all d directions, the cost in the complement of the safe action; δ for each of them.

    Where the cost of the safe action is None, the cost is estimated in all directions too.
    """

    safe_action: SafeAction
    threshold: float
    noise: float
    norm_bound: float = 1.0
    action_bound: float = 1.0
    ridge: float = 1.0
    delta: float = 0.01

    is_optimistic: ClassVar[bool] = True

    @cached_property
    def safe(self) -> Floats:
        """The safe action's features."""
        return np.asarray(self.safe_action.features, dtype=np.float64)

    @cached_property
    def knows_cost(self) -> bool:
        """Whether the safe action's cost is known; a linear cost is 0 at the origin."""
        return self.safe_action.cost is not None or not self.safe.any()

    @cached_property
    def known_cost(self) -> Floats:
        """The part of μ that is known, c₀ x₀ / ‖x₀‖²."""
        length = float(self.safe @ self.safe)
        if not self.knows_cost or length == 0.0:
            return np.zeros(self.safe.size)
        cost: Any = self.safe_action.cost
        return float(np.ravel(cost)[0]) / length * self.safe

    @cached_property
    def basis(self) -> Floats:
        """Orthonormal columns (d, n) that span the directions in which the cost is estimated."""
        if not self.knows_cost or not self.safe.any():
            return np.eye(self.safe.size)
        return np.asarray(np.linalg.svd(self.safe[np.newaxis])[2][1:].T, dtype=np.float64)

    def start(self) -> Any:
        """Return the state before the first round."""
        return self.start_sums()

    def start_sums(self) -> RegressionSums:
        """Return regressions without data."""
        d, n = self.basis.shape
        return RegressionSums(0, self.ridge * np.eye(d), np.zeros(d), self.ridge * np.eye(n), np.zeros(n))

    def learn(self, state: Any, decision: Decision, outcome: Outcome) -> Any:
        """Return the state after a round."""
        return self.add_outcome(state, decision, outcome)

    def add_outcome(self, sums: RegressionSums, decision: Decision, outcome: Outcome) -> RegressionSums:
        """Return the sums of (3) and (4) with one more round."""
        x = np.asarray(decision.action, dtype=np.float64)
        inside, observed_cost = x @ self.basis, float(np.ravel(np.asarray(outcome.cost))[0])
        return RegressionSums(
            sums.rounds + 1,
            sums.gram + np.outer(x, x),
            sums.rewards + float(outcome.reward) * x,
            sums.cost_gram + np.outer(inside, inside),
            sums.costs + (observed_cost - float(x @ self.known_cost)) * inside,
        )

    def radius(self, count: int, size: int) -> float:
        """Return β_t(δ, n) = R √(n log((1 + (t−1)L²/λ)/δ)) + √λ S."""
        growth = 1.0 + count * self.action_bound**2 / self.ridge
        growth_term = math.sqrt(size * math.log(growth / self.delta))
        return self.noise * growth_term + math.sqrt(self.ridge) * self.norm_bound

    def estimates(self, sums: RegressionSums) -> Estimates:
        """Return (4), the norms of (5) and their radii."""
        inverse: Floats = np.asarray(np.linalg.inv(sums.gram), dtype=np.float64)
        within: Floats = np.asarray(np.linalg.inv(sums.cost_gram), dtype=np.float64)
        size = self.safe.size
        return Estimates(
            inverse @ sums.rewards,
            inverse,
            self.radius(sums.rounds, size),
            self.known_cost + self.basis @ (within @ sums.costs),
            self.basis @ within @ self.basis.T,
            self.radius(sums.rounds, size - 1 if self.knows_cost else size),
        )


def compute_widths(points: Floats, inverse: Floats) -> Floats:
    """Return ‖x‖ in the norm of a matrix for every row."""
    squares: Floats = ((points @ inverse) * points).sum(axis=-1)
    return np.sqrt(np.maximum(squares, 0.0))
