"""Safe-PE (Hutchinson et al.; arXiv 2308.15006): directions at their longest safe scaling, eliminated in phases."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.problem.actions import RaySet
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise_reproduction.rivals.regression import FIRST, RidgeRival, Sums


class Phase(NamedTuple):
    """A phase: what is played how often, and its sums."""

    number: int
    steps: Floats  # (M,) the scaling of every direction; 0 where it was dropped
    left: Floats  # (M,) rounds that are left
    counts: Floats  # (M,) all rounds of the phase
    sums: Floats  # (2, M) outcomes


def compute_design(points: Floats, iterations: int = 200) -> Floats:
    """Return weights (M,) that nearly minimise the largest ‖x‖² in the norm of (Σ w x xᵀ)⁻¹, by Frank and Wolfe."""
    weights = np.full(len(points), 1.0 / len(points))
    for _ in range(iterations):
        gram = (points * weights[:, np.newaxis]).T @ points + 1e-9 * np.eye(points.shape[1])
        forms = np.einsum("ij,jk,ik->i", points, np.linalg.inv(gram), points)
        worst, rank = int(np.argmax(forms)), np.linalg.matrix_rank(points)
        gain = (forms[worst] / rank - 1.0) / max(forms[worst] - 1.0, 1e-9)
        weights = (1.0 - gain) * weights
        weights[worst] += gain
    return np.asarray(weights)


@dataclass(frozen=True, kw_only=True, eq=False)
class SafePE(RidgeRival):
    """Phases of doubling length over the directions of one fixed set of rays; the horizon is known.

    Reconstructed from the abstract: the design, the union over directions and phases, and the constants are ours. A
    phase estimates by least squares from its own rounds; then steps grow to the longest that is safe, and directions
    are dropped whose plausible value is below another's certain one.
    """

    directions: Floats  # (M, d)
    horizon: int

    def start_own(self) -> Phase:
        lengths = np.linalg.norm(self.directions, axis=1)
        return self.plan(0, np.minimum(1.0, self.threshold / (self.norm_bound * lengths)))

    def plan(self, number: int, steps: Floats) -> Phase:
        """Return a phase that plays these steps."""
        active = np.flatnonzero(steps)
        points = steps[active, np.newaxis] * self.directions[active]
        counts = np.zeros(len(steps))
        counts[active] = np.ceil(2.0**number * 4.0 * self.size * compute_design(points))
        return Phase(number, steps, counts.copy(), counts, np.zeros((2, len(steps))))

    def decide(self, state: Sums, actions: RaySet, draw: RandomKey = FIRST) -> Decision:
        """Return the next point of the phase."""
        phase = state.own
        index = int(np.argmax(phase.left))
        return self.build_decision(self.directions, index, float(phase.steps[index]), self.threshold, draw)

    def learn_own(self, state: Sums, decision: Decision, values: Floats) -> Phase:
        phase, index = state.own, int(decision.action_index or 0)
        left, sums = phase.left.copy(), phase.sums.copy()
        left[index] -= 1.0
        sums[:, index] += values
        phase = phase._replace(left=left, sums=sums)
        return phase if left.any() else self.end_phase(phase)

    def end_phase(self, phase: Phase) -> Phase:
        """Return the next phase, from the estimates of this one."""
        phases, count = math.ceil(math.log2(self.horizon)), len(self.directions)
        points = phase.steps[:, np.newaxis] * self.directions
        inverse = np.linalg.pinv((points * phase.counts[:, np.newaxis]).T @ points)
        fits = phase.sums @ points @ inverse
        level = math.sqrt(2.0 * math.log(4.0 * count * phases / self.delta))
        widths = self.noise * level * np.sqrt(np.einsum("ij,jk,ik->i", self.directions, inverse, self.directions))
        reward, cost = self.directions @ fits[0], self.directions @ fits[1]
        safe = np.minimum(1.0, self.threshold / np.maximum(cost + widths, self.threshold))
        plausible = np.minimum(1.0, self.threshold / np.maximum(cost - widths, self.threshold))
        steps = np.where(phase.steps > 0.0, np.maximum(phase.steps, safe), 0.0)
        certain = np.max(np.where(steps > 0.0, steps * (reward - widths), 0.0))
        kept = (steps > 0.0) & (plausible * (reward + widths) >= certain)
        return self.plan(phase.number + 1, np.where(kept, steps, 0.0))
