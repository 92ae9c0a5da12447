"""Policies to compare with: two that know no limits, and one that takes no chances."""

import math
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from stagewise.kernels import lc_lucb, linear, opb
from stagewise.kernels.compile import Floats, Ints
from stagewise.models.arms import ArmsModel, confidence_of, union_kind
from stagewise.models.linear import RADII, LinearModel
from stagewise.policies.learning import Learning, check_unit_range
from stagewise.policies.linear import check_features
from stagewise.policies.opb import checked_count, checked_horizon, eligible_arms, logged_arms
from stagewise.policies.oplb import listed_of
from stagewise.policies.policy import State
from stagewise.policies.rays import decision_on_rays
from stagewise.policies.settings import one_of, probability, promise_numbers
from stagewise.policies.tables import leading
from stagewise.problem.actions import Flags
from stagewise.problem.checks import positive, shown
from stagewise.problem.errors import InvalidActions, InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import NO_THRESHOLDS, Thresholds, resolved
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw
from stagewise.records.explanation import Row, Table


def watched(threshold: Any, safe_action: SafeAction | None) -> Thresholds:
    """Return thresholds that a policy does not heed but that its runs can be judged by."""
    if safe_action is not None and not isinstance(safe_action, SafeAction):
        raise InvalidProblem(f"safe_action is {shown(safe_action)}; it must be a SafeAction, or None")
    return NO_THRESHOLDS if threshold is None else resolved(threshold, safe_action or SafeAction(arm=0))


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
    threshold: Any = None
    parameter_bound: float = 1.0
    action_bound: float = 1.0
    ridge: float = 1.0
    radius: str = "mixture"

    thresholds: Thresholds = field(init=False, repr=False, default=NO_THRESHOLDS)

    def __post_init__(self) -> None:
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
            if state.memory.size != linear.memory_size(linear.named_shape(flags)):
                raise InvalidActions(
                    f"the actions have {flags[0]} features; this learner has learned from actions with "
                    f"{dimension_of(state.memory.size)}, and they must agree"
                )
            return state.memory
        memory = np.empty(linear.memory_size(linear.named_shape(flags)))
        linear.start_memory(flags, numbers, memory)
        return memory

    def decide(self, state: State, actions: Any, draw: Draw) -> Decision:
        """Choose the most hopeful of the actions."""
        listed = listed_of(actions)
        count, d = listed.features.shape
        flags, numbers = self.settings(d)
        memory = self.memory(state, flags, numbers)
        self.check(listed.features)
        sheet, work = np.empty(linear.sheet_size(d, 0, count)), np.empty(linear.work_size(d, 0))
        code = lc_lucb.decide(listed.features, listed.eligible, flags, numbers, memory, sheet, work)
        return decision_on_rays(code, sheet, d, listed.eligible, flags, numbers, NO_THRESHOLDS, draw.round)

    def logged(self, actions: Any) -> Floats:
        """Return logged actions (n, d)."""
        return self.check(listed_of(actions).features)

    def check(self, features: Floats) -> Floats:
        """Return actions that the radius can be used with."""
        check_features(features, features.shape[1], self.action_bound if self.radius == "paper" else math.inf)
        return features

    def fits(self, memory: Floats) -> bool:
        """Say whether a memory can be this policy's: empty, or of some dimension."""
        return memory.ndim == 1 and (memory.size == 0 or dimension_of(memory.size) > 0)

    def absorb(self, state: State, action: Any, values: Floats) -> State:
        """Take in the reward seen with an action."""
        flags, numbers = self.settings(action.size)
        memory = self.memory(state, flags, numbers)
        linear.learn_from(action, values, flags, numbers, memory, np.empty(linear.work_size(action.size, 1)))
        return State(memory)


@dataclass(frozen=True, kw_only=True, eq=False)
class UCB(Learning):
    """The unconstrained learner over arms: the largest mean plus radius. It breaks limits.

    `threshold` is only for judging its runs.
    """

    arms: int
    horizon: int | None = None
    noise: float | None = None  # None: outcomes lie in [0, 1]
    delta: float = 0.05
    safe_action: SafeAction | None = None
    threshold: Any = None
    radius: str = "hoeffding"

    thresholds: Thresholds = field(init=False, repr=False, default=NO_THRESHOLDS)

    def __post_init__(self) -> None:
        one_of(self.radius, ("hoeffding", "paper"), "radius")
        checked_count(self.arms)
        _ = self.model, self.watched

    @cached_property
    def watched(self) -> Thresholds:
        """The thresholds its runs are judged by."""
        return watched(self.threshold, self.safe_action)

    @cached_property
    def model(self) -> ArmsModel:
        """What is assumed of the arms."""
        horizon = checked_horizon(self.horizon)
        kind = union_kind(self.radius, horizon)
        usual = 0.5 if self.radius == "hoeffding" else 1.0
        return ArmsModel(
            arms=self.arms,
            signals=1,
            noise=np.array([usual if self.noise is None else positive(self.noise, "noise")]),
            kind=kind,
            confidence=confidence_of(kind, probability(self.delta, "delta"), self.arms, 1, horizon),
            blind=1.0,
        )

    @cached_property
    def flags(self) -> Ints:
        """The whole numbers and switches that kernels read."""
        return np.array([self.arms, 0, -1, 1, 1, 0, 0], dtype=np.int64)

    @cached_property
    def numbers(self) -> Floats:
        """The settings that kernels read: noise, nothing known, no promise."""
        return np.concatenate([self.model.noise, [0.0], promise_numbers(NO_THRESHOLDS, np.empty(0), None, 1.0)])

    def start(self) -> State:
        """Return the memory of a policy that has seen nothing."""
        return State(self.model.start())

    def decide(self, state: State, actions: Any, draw: Draw) -> Decision:
        """Choose the most hopeful arm."""
        eligible = eligible_arms(actions, self.arms)
        hoped = np.empty(self.arms)
        arm = opb.decide_unconstrained(eligible, self.flags, self.numbers, state.memory, hoped)
        nothing = np.empty(0)
        table = partial(arms_table, arm, hoped, eligible)
        return Decision(arm, arm, 1.0, None, float(hoped[arm]), nothing, nothing, None, draw.round, table)

    def logged(self, actions: Any) -> Ints:
        """Return logged arms (n,)."""
        return logged_arms(actions, self.arms)

    def values(self, reward: Any, cost: Any) -> Floats:
        """Return the reward as it is learned from; in [0, 1] where that was promised."""
        values = super().values(reward, cost)
        if self.noise is None and self.radius == "hoeffding":
            check_unit_range(values, np.empty(0), ())
        return values

    def absorb(self, state: State, action: Any, values: Floats) -> State:
        """Take in one pull, in place."""
        self.model.absorb(state.memory, int(action), values)
        return state


def dimension_of(size: int) -> int:
    """Return the d of a reward regression's memory of this size, d² + d + 2; 0: there is none."""
    d = round(math.sqrt(max(size - 2, 0)) - 0.5)
    return d if d > 0 and d * d + d + 2 == size else 0


def arms_table(played: int, hoped: Floats, eligible: Flags) -> Table:
    """Return the leading arms with their optimistic rewards."""
    rows = tuple(
        Row(f"arm {i}", float(hoped[i]), (), float(i == played), i == played) for i in leading(hoped, eligible, played)
    )
    return Table((), (), (), "played", rows, len(hoped) - len(rows), "the arm with the largest hoped reward")


@dataclass(frozen=True, kw_only=True, eq=False)
class AlwaysSafe(Learning):
    """Play the safe action in every round and learn nothing: what any learner must beat."""

    safe_action: SafeAction
    threshold: Any

    thresholds: Thresholds = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.safe_action, SafeAction):
            raise InvalidProblem(f"safe_action is {self.safe_action!r}; it must be a SafeAction")
        object.__setattr__(self, "thresholds", resolved(self.threshold, self.safe_action))

    def start(self) -> State:
        """Return an empty memory."""
        return State(np.empty(0))

    def decide(self, state: State, actions: Any, draw: Draw) -> Decision:
        """Play the safe action."""
        safe, values = self.safe_action, self.thresholds.values
        costs = self.thresholds.safe
        return Decision(
            safe.features.copy() if safe.arm is None else safe.arm,
            -1 if safe.arm is None else safe.arm,
            0.0 if safe.arm is None else 1.0,
            None,
            1.0 if safe.reward is None else safe.reward,
            values if costs is None else costs,
            values,
            "this policy plays nothing else",
            draw.round,
            self.table,
        )

    def table(self) -> Table:
        """Return the one action there is."""
        limits = self.thresholds
        known = limits.values if limits.safe is None else limits.safe
        label = "safe action" if self.safe_action.arm is None else f"arm {self.safe_action.arm}"
        hoped = 1.0 if self.safe_action.reward is None else self.safe_action.reward
        row = Row(label, hoped, tuple(known), 1.0, True)
        return Table(limits.names, tuple(limits.signs), tuple(limits.values), "played", (row,), 0, "as always")

    def logged(self, actions: Any) -> Floats:
        """Return the logged actions, of which nothing is learned."""
        return np.asarray(actions)

    def absorb(self, state: State, action: Any, values: Floats) -> State:
        """Learn nothing."""
        return state
