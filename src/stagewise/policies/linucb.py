"""LinUCB: the unconstrained linear learner."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.engine.layout import ENFORCES_LIMITS, FEATURES
from stagewise.engine.memory import fits_layout
from stagewise.engine.model import RoundSpec
from stagewise.models.regression import RADII, Radius
from stagewise.models.ridge import RIDGE, LinearModel
from stagewise.policies.arrays import assemble_arrays
from stagewise.policies.base_policy import REWARD
from stagewise.policies.linear_policy import check_bound_read, check_features, compute_ridge
from stagewise.policies.policy import State
from stagewise.policies.ray_decision import build_ray_decision, parse_listed_actions
from stagewise.policies.settings import build_constraint_settings, check_probability, copy_settings
from stagewise.policies.unconstrained import UnconstrainedPolicy
from stagewise.problem.actions import Listed
from stagewise.problem.checks import check_choice, check_positive
from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.problem.thresholds import NO_THRESHOLDS
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.rules.ray import RAY


@dataclass(frozen=True, kw_only=True, eq=False)
class LinUCB(UnconstrainedPolicy):
    """The unconstrained linear learner (OFUL): play the action with the largest <x, θ̂> + β ‖x‖. It ignores limits.

    `threshold` only measures the violations of its runs. Of rays it plays the targets.

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> policy = LinUCB(noise=0.1)
        >>> policy.decide(policy.start(), np.eye(2), RandomKey()).action_index
        0
    """

    noise: float
    """R: rewards are R-sub-Gaussian around their means."""
    delta: float = 0.05
    """The confidence sets hold with probability 1 − δ."""
    norm_bound: float = 1.0
    """S ≥ ‖θ*‖."""
    action_bound: float = 1.0
    """L ≥ ‖x‖; used only by radius="paper"."""
    ridge: float | None = None
    """λ of the regression; None: d R²/S²."""
    radius: Radius = "joint"
    """The kind of confidence radius (docs/theory/joint-radius.md)."""

    round_spec: ClassVar[RoundSpec] = RoundSpec((RIDGE,), RAY)
    learns: ClassVar[str] = REWARD

    def __post_init__(self) -> None:
        copy_settings(self)
        check_bound_read(self.action_bound, check_choice(self.radius, RADII, "radius") == "paper")
        self.arrays(2)
        _ = self.evaluation_thresholds

    @cached_property
    def arrays_by_dimension(self) -> dict[int, tuple[Ints, Floats]]:
        """The arrays by dimension."""
        return {}

    def arrays(self, dimension: int) -> tuple[Ints, Floats]:
        if dimension in self.arrays_by_dimension:
            return self.arrays_by_dimension[dimension]
        model = LinearModel(
            safe=np.zeros(dimension),
            names=("reward",),
            reward=0.0,
            costs=np.empty(0),
            noise=np.array([check_positive(self.noise, "noise")]),
            norm_bound=np.array([check_positive(self.norm_bound, "norm_bound")]),
            action_bound=check_positive(self.action_bound, "action_bound"),
            ridge=self.ridge_for(dimension),
            confidence=np.array([math.log(1.0 / check_probability(self.delta, "delta"))]),
            radius=self.radius,
        )
        constraints = build_constraint_settings(NO_THRESHOLDS, np.empty(0), None, 1.0)
        self.arrays_by_dimension[dimension] = assemble_arrays(
            (ENFORCES_LIMITS, 0, -1), constraints, model.safe, tuple(model.build_blocks())
        )
        return self.arrays_by_dimension[dimension]

    def ridge_for(self, dimension: int) -> float:
        """Return λ for actions of this dimension."""
        return compute_ridge(self.ridge, dimension, float(self.noise), float(self.norm_bound))

    def start(self) -> State:
        """Return an empty memory; the first action determines the dimension."""
        return State(np.empty(0))

    def get_arrays(self, state: State, dimension: int) -> tuple[Ints, Floats, Floats]:
        """Return layout, settings and the state's memory, or a new one."""
        layout, settings = self.arrays(dimension)
        if not state.memory.size:
            return layout, settings, self.build_memory(layout, settings)
        if not fits_layout(self.round_spec.models, state.memory, layout, 0):
            raise InvalidActions(
                ErrorCode.DIMENSION_MISMATCH,
                "the actions have {layout} features, and this learner's earlier actions had {memory}; they must agree",
                layout=layout[FEATURES],
                memory=self.get_dimension(state.memory),
            )
        return layout, settings, state.memory

    def choose(self, state: State, actions: Any, draw: RandomKey) -> Decision:
        listed = self.check_actions(parse_listed_actions(actions))
        result = self.play_round(self.round_spec, state, listed.features, listed.eligible, draw)
        return build_ray_decision(result, NO_THRESHOLDS, draw.round)

    def check_logged_actions(self, actions: Any) -> Floats:
        return self.check_actions(parse_listed_actions(actions)).features

    def check_actions(self, listed: Listed) -> Listed:
        bound = self.action_bound if self.radius == "paper" else math.inf
        d = listed.features.shape[1]
        check_features(listed, d, self.ridge_for(d), bound)
        return listed

    def fits(self, memory: Floats) -> bool:
        """Return whether a memory can belong to this policy: empty, or of some dimension."""
        return memory.shape == (0,) or (memory.ndim == 1 and self.get_dimension(memory) > 0)

    def get_dimension(self, memory: Floats) -> int:
        """Return the dimension of a memory; 0: it fits none."""
        sizes = range(2 if self.radius == "paper" else 1, int(math.sqrt(memory.size)) + 1)
        return next((d for d in sizes if fits_layout(self.round_spec.models, memory, self.arrays(d)[0], 0)), 0)
