"""Safe-LTS: linear Thompson sampling on the pessimistically safe set, the baseline of the paper's experiments."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.kernels import linear, safe_lts
from stagewise.kernels.compile import Floats
from stagewise.policies.linear import LinearPolicy
from stagewise.policies.policy import State
from stagewise.policies.rays import decision_on_rays, rays_of
from stagewise.policies.settings import one_of
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw

INFLATIONS = {"theory": safe_lts.THEORY, "none": safe_lts.NONE, "authors": safe_lts.AUTHORS}


@dataclass(frozen=True, kw_only=True, eq=False)
class SafeLTS(LinearPolicy):
    """Safe-LTS (Moradipari, Amani, Alizadeh, Thrampoulidis 2019), on rays from any safe action.

    Play the longest safe step on the ray that is best for a sampled θ̃ ~ N(θ̂, (inflation · β_r)² V⁻¹). The inflation is
    "theory" (1 + 2LS/(τ − c₀), what the regret proof needs), "none" (1; as safe, no regret proof, often better) or
    "authors" (√n/min(1, τ), what the published experiments used).
    """

    inflation: str = "theory"

    def __post_init__(self) -> None:
        one_of(self.inflation, tuple(INFLATIONS), "inflation")
        one_of(self.optimism, ("inflated",), "the optimism of SafeLTS, which samples instead,")
        super().__post_init__()

    @property
    def inflates(self) -> bool:
        """A sampled reward is not raised by the costs' uncertainty."""
        return False

    def start(self) -> State:
        """Return the memory of a policy that has seen nothing, with the factor that draws are made from."""
        memory = super().start().memory
        size = linear.learned_dimension(linear.named_shape(self.flags), bool(self.flags[4]))
        extended = np.concatenate([memory, np.zeros(size * size)])
        safe_lts.start_factor(self.flags, self.numbers, extended)
        return State(extended)

    def decide(self, state: State, actions: Any, draw: Draw) -> Decision:
        """Choose a point on one of the rays."""
        rays = self.fitting(rays_of(actions))
        flags, numbers = self.flags, self.numbers
        d, m = self.dimension, self.thresholds.values.size
        sheet = np.empty(linear.sheet_size(d, m, len(rays.features)))
        work = np.empty(linear.work_size(d, m))
        kind = INFLATIONS[self.inflation]
        code = safe_lts.decide(rays.features, rays.eligible, flags, numbers, state.memory, sheet, work, kind, *draw)
        return decision_on_rays(code, sheet, d, rays.eligible, flags, numbers, self.thresholds, draw.round)

    def absorb(self, state: State, action: Any, values: Floats) -> State:
        """Take in what was seen with an action, in place."""
        work = np.empty(linear.work_size(self.dimension, values.size))
        safe_lts.learn(action, values, self.flags, self.numbers, state.memory, work)
        return state
