"""Policies to compare with: the safe action, Safe-LTS, and learners that ignore limits."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.engine.model import RoundSpec, Rule
from stagewise.models.arms import ArmInterval
from stagewise.models.regression import RADII, Radius
from stagewise.models.ridge import AUTHORS, PLAIN, RIDGE, THEORY, LinearModel
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
from stagewise.policies.decisions import SafeActionBasis, build_ray_decision, parse_listed_actions
from stagewise.policies.linear_policy import LinearPolicy, check_bound_read, check_features, compute_ridge
from stagewise.policies.policy import NOTHING, BasePolicy, PlayedAction, PolicyState
from stagewise.policies.rounds import Rounds, assemble_arrays
from stagewise.policies.settings import (
    Optimism,
    UnconstrainedPolicy,
    build_unconstrained_rounds,
    check_probability,
    copy_settings,
    get_round_safe_action,
    parse_safe_action,
    set_derived,
)
from stagewise.problem.actions import Listed
from stagewise.problem.checks import PerSignal, check_array, check_choice, check_positive, check_size
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import NO_THRESHOLDS, Threshold, Thresholds, resolve_thresholds
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.records.reason import FallbackReason, ReasonDetails
from stagewise.rules.ray import RAY, SAMPLED_RAY


@dataclass(frozen=True, kw_only=True, eq=False)
class AlwaysSafe(BasePolicy):
    """Play the safe action in every round and learn nothing: the baseline for every learner.

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> policy = AlwaysSafe(safe_action=SafeAction(arm=1, cost=0.0), threshold=0.1)
        >>> policy.decide(policy.start(), None).action
        1
    """

    safe_action: SafeAction
    """The action that is played."""
    threshold: Threshold
    """The limits on expected costs: a number, one per constraint, or a mapping by name."""

    thresholds: Thresholds = field(init=False, repr=False)

    learns: ClassVar[str] = NOTHING
    has_parts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        copy_settings(self)
        set_derived(self, thresholds=resolve_thresholds(self.threshold, parse_safe_action(self.safe_action)))

    def start(self) -> PolicyState:
        return PolicyState(np.empty(0))

    def fits(self, memory: Floats) -> bool:
        return memory.shape == (0,)

    def choose(self, state: PolicyState, actions: Any, draw: RandomKey) -> Decision:
        safe, limits = self.safe_action, self.thresholds
        features, index = safe.features, None
        if safe.is_per_round:
            of_round = get_round_safe_action(actions, type(self).__name__)
            features, index = of_round.features, None if of_round.safe_index < 0 else of_round.safe_index
        action, index, step = (features.copy(), index, 0.0) if safe.arm is None else (safe.arm, safe.arm, 1.0)
        reward, cause = self.basis.optimistic_reward, ReasonDetails(FallbackReason.ALWAYS_SAFE)
        fields = (action, index, step, None, reward, limits.at_safe, limits.values, cause, draw.round)
        return Decision(*fields)._with(self.basis)

    @cached_property
    def basis(self) -> SafeActionBasis:
        """The data of its explanations: the safe action."""
        label = "safe action" if self.safe_action.arm is None else f"arm {self.safe_action.arm}"
        optimistic_reward = 1.0 if self.safe_action.reward is None else self.safe_action.reward
        return SafeActionBasis(self.thresholds, label, optimistic_reward, "always played")

    def check_logged_actions(self, actions: Any) -> Floats:
        """Return the logged actions; nothing is learned from them."""
        rows = check_array(actions, "the logged actions", InvalidActions)
        if rows.ndim == 0:
            rule = "a list with one action per row"
            raise InvalidActions.must_be(ErrorCode.WRONG_TYPE, "the value of the logged actions", rows.item(), rule)
        return rows

    def learn_in_place(self, state: PolicyState, played: PlayedAction, values: Floats) -> PolicyState:
        return state

    def learn_log(self, state: PolicyState, actions: Any, values: Any) -> PolicyState:
        return state

    def cache_offered(self, state: PolicyState, decision: Decision) -> PolicyState:
        return state

    def get_round_spec(self, actions: Any) -> RoundSpec:
        """Return how compiled loops play this policy."""
        return RoundSpec()

    def arrays(self, dimension: int) -> tuple[Ints, Floats]:
        """Return the arrays of compiled loops: no models and no limits."""
        return assemble_arrays((0, 0, -1), np.zeros(3), np.zeros(dimension), ())


INFLATIONS = {"theory": THEORY, "none": PLAIN, "authors": AUTHORS}


@dataclass(frozen=True, kw_only=True, eq=False)
class SafeLTS(LinearPolicy):
    """Safe-LTS (Moradipari, Amani, Alizadeh, Thrampoulidis 2019), on rays from any safe action.

    Play the longest safe step on the ray that is best for a sampled θ̃ ~ N(θ̂, (inflation · β_r)² V⁻¹). The inflation is
    "theory" (1 + 2LS/(τ − c₀), as in its authors' regret proof, for x₀ = 0 and equal noises), "none" (1; equally safe,
    without a regret proof, often better) or "authors" (√n/min(1, τ), as in the authors' public code).

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> import numpy as np
        >>> from stagewise.records.random_key import RandomKey
        >>> from stagewise.problem.safe_action import SafeAction
        >>> policy = SafeLTS(safe_action=SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
        >>> policy.decide(policy.start(), np.eye(2), RandomKey(seed=1)).pessimistic_cost.round(6)
        array([0.5])
    """

    inflation: Literal["theory", "none", "authors"] = "theory"
    """The scale of the samples of θ̃, in radii: see above."""
    optimism: Optimism = field(init=False, repr=False, default="inflated")
    per_action_bounds: bool = field(init=False, repr=False, default=False)

    rule: ClassVar[Rule] = SAMPLED_RAY
    inflates: ClassVar[bool] = False  # the uncertainty of costs does not raise a sampled reward

    @property
    def sampling(self) -> int:
        return INFLATIONS[self.inflation]

    def __post_init__(self) -> None:
        check_choice(self.inflation, tuple(INFLATIONS), "inflation")
        super().__post_init__()
        least = float((self.thresholds.signs * self.thresholds.values).min())
        if self.inflation == "authors" and not least > 0.0:
            remedy = "choose another, since this one divides by the threshold and needs upper limits greater than 0"
            raise InvalidProblem.conflict("inflation", self.inflation, f"a threshold is {least:g}", remedy)

    @property
    def is_optimistic(self) -> bool:
        """False: a sampled reward is not an upper confidence bound."""
        return False


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
