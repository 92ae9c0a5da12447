"""Safe-LUCB (Amani, Alizadeh, Thrampoulidis 2019), the explore-first algorithm of the paper's Section 3."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise_reproduction.printed.lclucb import PrintedLCLUCB


@dataclass(frozen=True, kw_only=True, eq=False)
class SafeLUCB(PrintedLCLUCB):
    """Play random points of a seed set that is safe for every parameter within the norm bound; then be optimistic.

    The seed set has ⟨x, μ⟩ ≤ τ for every ‖μ‖ ≤ S. It is played for T^(2/3) of `horizon` rounds, the order of the regret
    that the paper quotes; constants are ours. Afterwards the most optimistic action is played whose pessimistic cost is
    within τ. The original constraint is x'Bθ ≤ τ with the reward's own θ and a known B; here the cost has its own
    parameter, as in the paper, and its own regression.
    """

    horizon: int

    @property
    def exploration_rounds(self) -> int:
        """The number of rounds of the first phase."""
        return math.ceil(math.pow(self.horizon, 2.0 / 3.0))

    def scales(self) -> tuple[float, float]:
        """Return 1 and 1: one radius for both, without asymmetric scaling."""
        return 1.0, 1.0

    def decide(self, state: Any, actions: Any, draw: RandomKey = RandomKey()) -> Decision:  # noqa: B008 (a draw cannot change)
        """Return a random point of the seed set, or the optimistic action."""
        if state.rounds >= self.exploration_rounds:
            return self.choose_best(state, *self.scales(), actions, draw)
        rng = np.random.default_rng([draw.seed, draw.run, draw.round, 0])
        ray = int(rng.integers(len(actions.features)))
        direction = actions.features[ray] - self.safe
        cost = float(self.known_cost @ self.safe)
        reach = self.norm_bound * float(np.linalg.norm(direction))
        step = min(1.0, (self.threshold - cost) / reach) * float(rng.random())
        limit = np.array([self.threshold])
        costs = np.array([cost + step * reach])
        return Decision(self.safe + step * direction, ray, step, None, math.inf, costs, limit, None, draw.round)
