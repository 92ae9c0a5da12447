"""LinUCB: the linear learner that knows no limits."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from stagewise.kernels import lc_lucb, linear
from stagewise.kernels.compile import Floats, Ints
from stagewise.kernels.shape import named_shape
from stagewise.kernels.sight import sheet_size
from stagewise.models.linear import RADII, LinearModel
from stagewise.policies.learning import Learning
from stagewise.policies.linear import absorbed, check_features, fitting_memory, following
from stagewise.policies.listed import listed_of
from stagewise.policies.policy import Played, State
from stagewise.policies.rays import decision_on_rays
from stagewise.policies.settings import keep, probability, promise_numbers
from stagewise.policies.watching import watched
from stagewise.problem.actions import Listed
from stagewise.problem.checks import one_of, positive
from stagewise.problem.errors import InvalidActions
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import NO_THRESHOLDS, Threshold, Thresholds
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw


@dataclass(frozen=True, kw_only=True, eq=False)
class LinUCB(Learning):
    """The unconstrained linear learner (OFUL): the action with the largest <x, θ̂> + β ‖x‖. It breaks limits.

    `threshold` is only for judging its runs. Rays are taken by their far ends.

    >>> policy = LinUCB(noise=0.1)
    >>> policy.decide(policy.start(), np.eye(2), Draw()).index
    0
    """

    noise: float
    delta: float = 0.05
    safe_action: SafeAction | None = None
    threshold: Threshold | None = None
    parameter_bound: float = 1.0
    action_bound: float = 1.0
    ridge: float = 1.0
    radius: str = "mixture"

    thresholds: Thresholds = field(init=False, repr=False, default=NO_THRESHOLDS)

    def __post_init__(self) -> None:
        keep(self)
        one_of(self.radius, tuple(RADII), "radius")
        self.settings(2)
        _ = self.watched

    @cached_property
    def watched(self) -> Thresholds:
        """The thresholds its runs are judged by."""
        return watched(self.threshold, self.safe_action)

    @cached_property
    def prepared(self) -> dict[int, tuple[Ints, Floats]]:
        """The settings of each dimension met so far."""
        return {}

    def settings(self, dimension: int) -> tuple[Ints, Floats]:
        """Return what kernels read, for actions of this dimension."""
        if dimension not in self.prepared:
            self.prepared[dimension] = self.prepare(dimension)
        return self.prepared[dimension]

    def prepare(self, dimension: int) -> tuple[Ints, Floats]:
        """Work the settings out."""
        model = LinearModel(
            safe=np.zeros(dimension),
            names=("reward",),
            reward=0.0,
            costs=np.empty(0),
            noise=np.array([positive(self.noise, "noise")]),
            parameter_bound=np.array([positive(self.parameter_bound, "parameter_bound")]),
            action_bound=positive(self.action_bound, "action_bound"),
            ridge=positive(self.ridge, "ridge"),
            confidence=np.array([math.log(1.0 / probability(self.delta, "delta"))]),
            radius=self.radius,
        )
        flags = model.flags(directional=False, inflated=False, offers_safe=False)
        return flags, np.concatenate([model.numbers(), promise_numbers(NO_THRESHOLDS, np.empty(0), None, 1.0)])

    def start(self) -> State:
        """Return an empty memory: the first action seen tells the dimension."""
        return State(np.empty(0))

    def memory(self, state: State, flags: Ints, numbers: Floats) -> Floats:
        """Return the state's memory, or that of a learner which has seen nothing."""
        if state.memory.size:
            if state.memory[0] != flags[0]:
                raise InvalidActions(
                    f"the actions have {flags[0]} features; this learner has learned from actions with "
                    f"{int(state.memory[0])}, and they must agree"
                )
            return state.memory
        memory = np.empty(linear.memory_size(named_shape(flags), 0))
        linear.start_memory(flags, numbers, memory)
        return memory

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        """Choose the most hopeful of the actions."""
        listed = self.fitting(listed_of(actions))
        count, d = listed.features.shape
        flags, numbers = self.settings(d)
        memory = self.memory(state, flags, numbers)
        sheet, work = np.empty(sheet_size(d, 0, count)), np.empty(linear.work_size(d, 0, 0))
        code = lc_lucb.decide(listed.features, listed.eligible, flags, numbers, memory, sheet, work)
        return decision_on_rays(
            code, sheet, listed.features, listed.eligible, flags, numbers, NO_THRESHOLDS, draw.round
        )

    def logged(self, actions: Any) -> Floats:
        """Return logged actions (n, d)."""
        return self.fitting(listed_of(actions)).features

    def fitting(self, listed: Listed) -> Listed:
        """Return the action set if the radius can be used with it."""
        bound = self.action_bound if self.radius == "paper" else math.inf
        check_features(listed, listed.features.shape[1], self.ridge, bound)
        return listed

    def fits(self, memory: Floats) -> bool:
        """Say whether a memory can be this policy's: empty, or of some dimension."""
        if memory.shape == (0,):
            return True
        sized = memory.ndim == 1 and memory.size > linear.HEAD and 1.0 <= memory[0] <= memory.size
        return sized and fitting_memory(memory, self.settings(int(memory[0]))[0])

    def take(self, state: State, played: Played, values: Floats) -> State:
        """Take in the reward seen with an action."""
        flags, numbers = self.settings(played.action.size)
        memory = self.memory(state, flags, numbers)
        absorbed(played, values, flags, numbers, memory)
        return State(memory)

    def follow(self, state: State, decision: Decision) -> State:
        """Follow the first candidates that are ever offered, until others are."""
        if decision.offered is None:
            return state
        offered = self.logged(decision.offered)
        flags, numbers = self.settings(offered.shape[1])
        return State(following(offered, flags, numbers, self.memory(self.own(state), flags, numbers)))
