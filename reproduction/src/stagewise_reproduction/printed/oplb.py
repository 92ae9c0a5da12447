"""Algorithm 2, OPLB, with the printed bonus, radii and optimisation problem (34)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.rules.cone_program import Columns, compute_pessimistic_costs
from stagewise_reproduction.exact.branch import find_best_by_norms
from stagewise_reproduction.exact.norms import Norms
from stagewise_reproduction.printed.lclucb import PrintedLCLUCB
from stagewise_reproduction.printed.ridge import compute_widths


@dataclass(frozen=True, kw_only=True, eq=False)
class PrintedOPLB(PrintedLCLUCB):
    """Maximise ⟨x_π, θ̂⟩ + α_r β_t(δ, d) ‖x_π‖ over the mixtures whose pessimistic cost (32) is at most τ.

    The problem is a convex maximum: the search ends when value and bound are within `tolerance`, or after `budget` cone
    programs; `decision.solver_gap` bounds what may be missing.
    """

    tolerance: float = 1e-2
    budget: int = 60

    mixes: ClassVar[bool] = True

    def decide(self, state: Any, actions: Any, draw: RandomKey = RandomKey()) -> Decision:  # noqa: B008 (a draw cannot change)
        """Return lines 3 to 7 of the algorithm."""
        fit, (reward_confidence_scale, cost_confidence_scale) = self.estimates(state), self.scales()
        points = np.vstack([actions.features, self.safe])
        rewards, bonus = points @ fit.reward, reward_confidence_scale * fit.reward_radius
        norms = Norms(rewards, np.linalg.cholesky(fit.inverse).T @ points.T, bonus, np.zeros((1, self.safe.size)), 0.0)
        within = self.basis.T @ fit.cost_inverse @ self.basis
        images = np.linalg.cholesky(within).T @ (points @ self.basis).T
        costs, radii = (points @ fit.cost)[np.newaxis], np.array([cost_confidence_scale * fit.cost_radius])
        columns = Columns(costs, images, radii, np.array([self.threshold]), len(points) - 1)
        best = find_best_by_norms(
            columns, rewards + bonus * compute_widths(points, fit.inverse), norms, self.tolerance, self.budget
        )
        shares = best.shares / best.shares.sum()
        rng = np.random.default_rng([draw.seed, draw.run, draw.round, 0])
        index = int(np.searchsorted(np.cumsum(shares), rng.random() * float(shares.sum()), side="right"))
        index = min(index, len(shares) - 1)
        return Decision(
            action=points[index].copy(),
            action_index=index if index < len(shares) - 1 else None,
            step_size=1.0,
            probabilities=shares,
            optimistic_reward=best.value,
            pessimistic_cost=compute_pessimistic_costs(columns, shares),
            thresholds=np.array([self.threshold]),
            reason_details=None,
            round=draw.round,
            solver_gap=max(0.0, best.bound - best.value),
        )
