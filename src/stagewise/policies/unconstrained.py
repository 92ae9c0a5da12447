"""UCB and LinUCB: learners that ignore limits, for comparison."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.engine.model import RoundSpec, Rule
from stagewise.models.arms import ArmInterval
from stagewise.models.regression import RADII, Radius
from stagewise.models.ridge import RIDGE, LinearModel
from stagewise.policies.arms import (
    build_arms_memory,
    build_arms_model,
    check_arms,
    check_logged_rows,
    explain_unit_range,
    get_arms_spec,
    learn_arms_log,
    list_arms,
    locate_arm,
    locate_arms,
    resolve_interval,
)
from stagewise.policies.decisions import build_ray_decision, parse_listed_actions
from stagewise.policies.linear_policy import check_bound_read, check_features, compute_ridge
from stagewise.policies.policy import PlayedAction, PolicyState
from stagewise.policies.rounds import Rounds
from stagewise.policies.settings import (
    UnconstrainedPolicy,
    build_unconstrained_rounds,
    check_probability,
    copy_settings,
    set_derived,
)
from stagewise.problem.actions import Listed
from stagewise.problem.checks import PerSignal, check_choice, check_positive, check_size
from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.problem.thresholds import NO_THRESHOLDS
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.rules.ray import RAY


@dataclass(frozen=True, kw_only=True, eq=False)
class UCB(UnconstrainedPolicy):
    """The unconstrained learner over arms: play the largest mean plus radius. It ignores limits.

    `threshold` only measures the violations of its runs.

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> from stagewise.problem.actions import ArmSet
        >>> policy = UCB(arms=2)
        >>> policy.decide(policy.start(), ArmSet(2)).action
        0
    """

    arms: int
    """The number of arms."""
    horizon: int | None = None
    """The number of rounds for which the intervals hold; None: all rounds."""
    noise: PerSignal | None = None
    """R: rewards are R-sub-Gaussian around their means; None: they lie in [0, 1]."""
    interval: ArmInterval | None = None
    """The kind of confidence interval of an arm (docs/theory/arms.md). None: "kl", or "hoeffding" with `noise`."""

    rule: ClassVar[Rule] = RAY

    def __post_init__(self) -> None:
        copy_settings(self)
        set_derived(self, interval=resolve_interval(self, "kl"))
        check_size(self.arms, "arms")
        model = build_arms_model(self, NO_THRESHOLDS, 1, 1.0, 0.0, np.empty(0))
        set_derived(self, rounds=build_unconstrained_rounds(self.rule, tuple(model.build_blocks())))
        _ = self.evaluation_thresholds  # raises its errors now

    def choose(self, state: PolicyState, actions: Any, draw: RandomKey) -> Decision:
        result = self.rounds.play(state.memory, list_arms(self.arms), check_arms(actions, self.arms), draw)
        decision = build_ray_decision(result, NO_THRESHOLDS, draw.round, "arm")
        return decision._replace(action=result.code, step_size=1.0)._with(decision._table)

    locate, locate_rows, check_logged_actions, learn_log = locate_arm, locate_arms, check_logged_rows, learn_arms_log
    get_round_spec, build_run_memory = get_arms_spec, build_arms_memory
    why_unit_range = cached_property(explain_unit_range)


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
    norm_bound: float = 1.0
    """S ≥ ‖θ*‖."""
    action_bound: float = 1.0
    """L ≥ ‖x‖; used only by radius="paper"."""
    ridge: float | None = None
    """λ of the regression; None: d R²/S²."""
    radius: Radius = "joint"
    """The kind of confidence radius (docs/theory/joint-radius.md)."""

    rule: ClassVar[Rule] = RAY

    def __post_init__(self) -> None:
        copy_settings(self)
        check_bound_read(self.action_bound, check_choice(self.radius, RADII, "radius") == "paper")
        self.get_rounds(2)  # raises its errors now
        _ = self.evaluation_thresholds

    @cached_property
    def rounds_by_dimension(self) -> dict[int, Rounds]:
        """The rounds by dimension, which the first action determines."""
        return {}

    def get_rounds(self, dimension: int) -> Rounds:
        """Return the rounds on actions of this dimension."""
        found = self.rounds_by_dimension.get(dimension)
        if found is None:
            model = LinearModel(
                safe=np.zeros(dimension),
                names=("reward",),
                reward=0.0,
                costs=np.empty(0),
                noise=np.array([check_positive(self.noise, "noise")]),
                norm_bound=np.array([check_positive(self.norm_bound, "norm_bound")]),
                action_bound=check_positive(self.action_bound, "action_bound"),
                ridge=self.compute_ridge(dimension),
                confidence=np.array([math.log(1.0 / check_probability(self.delta, "delta"))]),
                radius=self.radius,
            )
            found = build_unconstrained_rounds(self.rule, tuple(model.build_blocks()), model.safe)
            self.rounds_by_dimension[dimension] = found
        return found

    def compute_ridge(self, dimension: int) -> float:
        """Return λ for actions of this dimension."""
        return compute_ridge(self.ridge, dimension, float(self.noise), float(self.norm_bound))

    def start(self) -> PolicyState:
        """Return an empty memory; the first action determines the dimension."""
        return PolicyState(np.empty(0))

    def open(self, memory: Floats, dimension: int) -> tuple[Rounds, Floats]:
        """Return the rounds of a dimension, and the memory or a new one."""
        rounds = self.get_rounds(dimension)
        if memory.size and not rounds.fits(memory):
            sizes = dimension, "that of this learner's earlier actions", self.get_dimension(memory)
            raise InvalidActions.must_agree(
                ErrorCode.DIMENSION_MISMATCH, "the number of features of the actions", *sizes
            )
        return rounds, memory if memory.size else rounds.start()

    def choose(self, state: PolicyState, actions: Any, draw: RandomKey) -> Decision:
        listed = self.check_actions(parse_listed_actions(actions))
        rounds, memory = self.open(state.memory, listed.features.shape[1])
        return build_ray_decision(
            rounds.play(memory, listed.features, listed.eligible, draw), NO_THRESHOLDS, draw.round
        )

    def learn_in_place(self, state: PolicyState, played: PlayedAction, values: Floats) -> PolicyState:
        rounds, memory = self.open(state.memory, played.action.size)
        return PolicyState(rounds.learn(memory, played.action, played.ray, played.step, values))

    def learn_log(self, state: PolicyState, actions: Any, values: Any) -> PolicyState:
        rounds, memory = self.open(state.memory, actions.shape[1])
        return PolicyState(rounds.learn_rows(memory, *self.locate_rows(actions), np.array(values)))

    def cache_offered(self, state: PolicyState, decision: Decision) -> PolicyState:
        if decision._offered is None:
            return state
        offered = self.check_logged_actions(decision._offered)
        rounds, memory = self.open(self.check_state(state).memory, offered.shape[1])
        return PolicyState(rounds.cache(memory, offered))

    def check_logged_actions(self, actions: Any) -> Floats:
        return self.check_actions(parse_listed_actions(actions)).features

    def check_actions(self, listed: Listed) -> Listed:
        d = listed.features.shape[1]
        check_features(listed, d, self.compute_ridge(d), self.action_bound if self.radius == "paper" else math.inf)
        return listed

    def fits(self, memory: Floats) -> bool:
        """Return whether a memory can belong to this policy: empty, or of some dimension."""
        return memory.shape == (0,) or (memory.ndim == 1 and self.get_dimension(memory) > 0)

    def get_dimension(self, memory: Floats) -> int:
        """Return the dimension of a memory; 0: it fits none."""
        sizes = range(2 if self.radius == "paper" else 1, int(math.sqrt(memory.size)) + 1)
        return next((d for d in sizes if self.get_rounds(d).fits(memory)), 0)

    def get_round_spec(self, actions: Any) -> RoundSpec | None:
        return RoundSpec((RIDGE,), self.rule)

    def arrays(self, dimension: int) -> tuple[Ints, Floats]:
        rounds = self.get_rounds(dimension)
        return rounds.layout, rounds.settings

    def build_run_memory(
        self, offered: Any, features: Floats, fresh: bool, learned: PolicyState | None = None
    ) -> Floats:
        self.check_actions(offered)
        memory = None if learned is None or not learned.memory.size else learned.memory
        return self.get_rounds(features.shape[1]).start_run(memory, features, fresh)
