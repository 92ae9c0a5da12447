"""LinUCB: the linear learner that knows no limits."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.kernels.layout import FEATURES, RETURNS
from stagewise.kernels.loop.round import RAYS, Form
from stagewise.kernels.signals.radius import RADII, Radius
from stagewise.models.linear import LinearModel
from stagewise.policies.arrays import assembled, fitting_memory
from stagewise.policies.learning import REWARD
from stagewise.policies.linear import check_bound_read, check_features, ridge_of
from stagewise.policies.policy import State
from stagewise.policies.rays import decision_on_rays, listed_of
from stagewise.policies.settings import keep, probability, promise_numbers
from stagewise.policies.watching import WatchedPolicy
from stagewise.problem.actions import Listed
from stagewise.problem.checks import one_of, positive
from stagewise.problem.errors import InvalidActions
from stagewise.problem.thresholds import NO_THRESHOLDS
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw


@dataclass(frozen=True, kw_only=True, eq=False)
class LinUCB(WatchedPolicy):
    """The unconstrained linear learner (OFUL): the action with the largest <x, θ̂> + β ‖x‖. It breaks limits.

    `threshold` is only for judging its runs. Rays are taken by their far ends.

    >>> policy = LinUCB(noise=0.1)
    >>> policy.decide(policy.start(), np.eye(2), Draw()).index
    0
    """

    noise: float
    """R: rewards are R-sub-Gaussian around their means."""
    delta: float = 0.05
    """The confidence sets hold with probability 1 − δ."""
    norm_bound: float = 1.0
    """S ≥ ‖θ*‖."""
    action_bound: float = 1.0
    """L ≥ ‖x‖, which only radius="paper" rests on."""
    ridge: float | None = None
    """λ of the regression; None: d R²/S²."""
    radius: Radius = "joint"
    """How far the truth may lie from an estimate (docs/theory/joint-radius.md)."""

    form: ClassVar[Form] = Form(ridge=1, rule=RAYS)
    learns: ClassVar[str] = REWARD

    def __post_init__(self) -> None:
        keep(self)
        check_bound_read(self.action_bound, one_of(self.radius, RADII, "radius") == "paper")
        self.arrays(2)
        _ = self.watched

    @cached_property
    def prepared(self) -> dict[int, tuple[Ints, Floats]]:
        """The settings of each dimension met so far."""
        return {}

    def arrays(self, dimension: int) -> tuple[Ints, Floats]:
        if dimension in self.prepared:
            return self.prepared[dimension]
        model = LinearModel(
            safe=np.zeros(dimension),
            names=("reward",),
            reward=0.0,
            costs=np.empty(0),
            noise=np.array([positive(self.noise, "noise")]),
            norm_bound=np.array([positive(self.norm_bound, "norm_bound")]),
            action_bound=positive(self.action_bound, "action_bound"),
            ridge=self.ridge_for(dimension),
            confidence=np.array([math.log(1.0 / probability(self.delta, "delta"))]),
            radius=self.radius,
        )
        promise = promise_numbers(NO_THRESHOLDS, np.empty(0), None, 1.0)
        self.prepared[dimension] = assembled((RETURNS, 0, -1), promise, model.safe, tuple(model.parts()))
        return self.prepared[dimension]

    def ridge_for(self, dimension: int) -> float:
        """Return λ for actions of this dimension."""
        return ridge_of(self.ridge, dimension, float(self.noise), float(self.norm_bound))

    def start(self) -> State:
        """Return an empty memory: the first action seen tells the dimension."""
        return State(np.empty(0))

    def remembered(self, state: State, dimension: int) -> tuple[Ints, Floats, Floats]:
        """Return layout, settings and the state's memory, or that of a learner which has seen nothing."""
        layout, settings = self.arrays(dimension)
        if not state.memory.size:
            return layout, settings, self.begun(layout, settings)
        if not fitting_memory(state.memory, layout, 0):
            raise InvalidActions(
                f"the actions have {layout[FEATURES]} features; this learner has learned from actions with "
                f"{self.dimension_of(state.memory)}, and they must agree"
            )
        return layout, settings, state.memory

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        listed = self.fitting(listed_of(actions))
        seen = self.chosen(self.form, state, listed.features, listed.eligible, draw)
        return decision_on_rays(seen, NO_THRESHOLDS, draw.round)

    def logged(self, actions: Any) -> Floats:
        return self.fitting(listed_of(actions)).features

    def fitting(self, listed: Listed) -> Listed:
        bound = self.action_bound if self.radius == "paper" else math.inf
        d = listed.features.shape[1]
        check_features(listed, d, self.ridge_for(d), bound)
        return listed

    def fits(self, memory: Floats) -> bool:
        """Say whether a memory can be this policy's: empty, or of some dimension."""
        return memory.shape == (0,) or (memory.ndim == 1 and self.dimension_of(memory) > 0)

    def dimension_of(self, memory: Floats) -> int:
        """Return of which dimension a memory is; 0: of none."""
        sizes = range(2 if self.radius == "paper" else 1, int(math.sqrt(memory.size)) + 1)
        return next((d for d in sizes if fitting_memory(memory, self.arrays(d)[0], 0)), 0)
