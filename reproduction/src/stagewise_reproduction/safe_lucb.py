"""Safe-LUCB (Amani, Alizadeh, Thrampoulidis 2019), with which Section 3 of the paper compares: explore first."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.records.decision import Decision
from stagewise.records.draw import Draw
from stagewise_reproduction.printed.lclucb import PrintedLCLUCB


@dataclass(frozen=True, kw_only=True, eq=False)
class SafeLUCB(PrintedLCLUCB):
    """Play random points of a seed set that any parameter within its norm bound keeps safe; then optimism, no lift.

    The seed set has ⟨x, μ⟩ ≤ τ for every ‖μ‖ ≤ S. It is played for T^(2/3) of `horizon` rounds, the order of the
    regret that the paper quotes; constants are ours. Afterwards the most optimistic action is played whose pessimistic
    cost is within τ. Their constraint is x'Bθ ≤ τ with the reward's own
    θ and a known B; here the cost has a parameter of its own, as in the paper, and a regression of its own.
    """

    horizon: int

    @property
    def exploring(self) -> int:
        """How many rounds the first phase takes."""
        return math.ceil(math.pow(self.horizon, 2.0 / 3.0))

    def scales(self) -> tuple[float, float]:
        """Return 1 and 1: one radius for both, without asymmetric scaling."""
        return 1.0, 1.0

    def decide(self, state: Any, actions: Any, draw: Draw = Draw()) -> Decision:  # noqa: B008 (a draw cannot change)
        """Return a random point of the seed set, or the optimistic action."""
        if state.rounds >= self.exploring:
            return self.best(state, *self.scales(), actions, draw)
        rng = np.random.default_rng([draw.seed, draw.run, draw.round, 0])
        ray = int(rng.integers(len(actions.features)))
        way = actions.features[ray] - self.safe
        cost = float(self.known_cost @ self.safe)
        reach = self.norm_bound * float(np.linalg.norm(way))
        step = min(1.0, (self.threshold - cost) / reach) * float(rng.random())
        limit = np.array([self.threshold])
        costs = np.array([cost + step * reach])
        return Decision(self.safe + step * way, ray, step, None, math.inf, costs, limit, None, draw.round)
