"""Algorithm 2, OPLB, with the bonus, the radii and the problem of a round (34) that are printed."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from stagewise.records.decision import Decision
from stagewise.records.draw import Draw
from stagewise.rules.cone import Columns, dearest
from stagewise_reproduction.exact.branch import best_by_norms
from stagewise_reproduction.exact.norms import Norms
from stagewise_reproduction.printed.lclucb import PrintedLCLUCB
from stagewise_reproduction.printed.ridge import widths


@dataclass(frozen=True, kw_only=True, eq=False)
class PrintedOPLB(PrintedLCLUCB):
    """Maximise ⟨x_π, θ̂⟩ + α_r β_t(δ, d) ‖x_π‖ over the mixtures whose pessimistic cost (32) is at most τ.

    The problem is the maximum of a convex function: it is searched until value and bound are `tolerance` apart or
    `budget` cone programs were solved, and `decision.gap` is what may be missing.
    """

    tolerance: float = 1e-2
    budget: int = 60

    mixes: ClassVar[bool] = True

    def decide(self, state: Any, actions: Any, draw: Draw = Draw()) -> Decision:  # noqa: B008 (a draw cannot change)
        """Return lines 3 to 7 of the algorithm."""
        told, (reward_scale, cost_scale) = self.estimates(state), self.scales()
        points = np.vstack([actions.features, self.safe])
        rewards, bonus = points @ told.reward, reward_scale * told.reward_radius
        norms = Norms(rewards, np.linalg.cholesky(told.inverse).T @ points.T, bonus, np.zeros((1, self.safe.size)), 0.0)
        within = self.basis.T @ told.cost_inverse @ self.basis
        images = np.linalg.cholesky(within).T @ (points @ self.basis).T
        costs, radii = (points @ told.cost)[np.newaxis], np.array([cost_scale * told.cost_radius])
        columns = Columns(costs, images, radii, np.array([self.threshold]), len(points) - 1)
        best = best_by_norms(
            columns, rewards + bonus * widths(points, told.inverse), norms, self.tolerance, self.budget
        )
        shares = best.shares / best.shares.sum()
        rng = np.random.default_rng([draw.seed, draw.run, draw.round, 0])
        index = int(np.searchsorted(np.cumsum(shares), rng.random() * float(shares.sum()), side="right"))
        index = min(index, len(shares) - 1)
        return Decision(
            action=points[index].copy(),
            index=index if index < len(shares) - 1 else -1,
            step=1.0,
            probabilities=shares,
            hoped=best.value,
            dearest=dearest(columns, shares),
            thresholds=np.array([self.threshold]),
            cause=None,
            round=draw.round,
            gap=max(0.0, best.bound - best.value),
        )
