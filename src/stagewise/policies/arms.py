"""OPB and CAPS over arms: one safe mixture of arms per round; and what all policies over arms share."""

from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python
from stagewise.engine.layout import ENFORCES_LIMITS, MODEL_BLOCKS, OFFERS_SAFE, SAFE_INDEX, get_model_block
from stagewise.engine.model import RoundSpec, Rule
from stagewise.engine.workspace import HORIZON_EXCEEDED
from stagewise.models.arms import (
    INTERVAL_KINDS,
    RANGED,
    RATES,
    ArmInterval,
    ArmsModel,
    build_rate_ends,
    compute_confidence,
    compute_lows,
    get_arm_means,
    get_interval_kind,
    get_kept_intervals,
    split_delta,
    tighten_arm,
)
from stagewise.policies.decisions import attach_round, build_mixture_decision
from stagewise.policies.function_mixture import RoundActions, build_safe_decision
from stagewise.policies.policy import BasePolicy, PlayedAction, PolicyState
from stagewise.policies.settings import (
    CAUSES,
    CERTIFICATE,
    Optimism,
    SafePolicy,
    check_probability,
    check_safe_range,
    compute_ceilings,
    compute_certificate_numbers,
    copy_settings,
    get_optimism_switch,
    parse_mean_cost_bounds,
    require_arm,
    set_derived,
    set_rounds,
)
from stagewise.problem.actions import ALL, ArmSet, Flags
from stagewise.problem.checks import (
    PerSignal,
    as_array,
    check_bool,
    check_choice,
    check_integer_at_least,
    check_per_signal,
    check_size,
)
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem
from stagewise.problem.thresholds import Thresholds, resolve_thresholds
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.rules.certified import CERTIFIED_MIXTURE
from stagewise.rules.mixture import MIXTURE

BLOCK = as_python(get_model_block)
ARM_MEANS, KEPT_INTERVALS, TIGHTEN_ARM = as_python(get_arm_means), as_python(get_kept_intervals), as_python(tighten_arm)
NO_FEATURES = np.empty(0)


# What all policies over arms share, with limits or without.


def resolve_interval(policy: Any, default: ArmInterval) -> Any:
    """Return the kind of interval, or the default where none is given."""
    if policy.interval is not None:
        return policy.interval
    return default if policy.noise is None else "hoeffding"


def build_arms_model(
    policy: Any, thresholds: Thresholds, signals: int, blind: float, reward: float | None, costs: Floats | None
) -> ArmsModel:
    """Return the model of the arms; δ is shared by `signals` signals."""
    names, interval = ("reward", *thresholds.names), check_choice(policy.interval, INTERVAL_KINDS, "interval")
    rounds = None if policy.horizon is None else check_integer_at_least(policy.horizon, "horizon", 1)
    if interval in RANGED and policy.noise is not None:
        fact = f"interval is {interval!r}, which needs outcomes in [0, 1] and no noise"
        raise InvalidProblem.conflict("noise", policy.noise, fact, "leave noise out or use interval='hoeffding'")
    if interval in RANGED and rounds is not None:
        fact = f"interval is {interval!r}, which holds for all rounds"
        raise InvalidProblem.conflict("horizon", rounds, fact, "leave horizon out or use interval='hoeffding'")
    kind, lows = get_interval_kind(interval, rounds), compute_lows(thresholds.signs)
    delta = check_probability(policy.delta, "delta")
    confidence, ends = compute_confidence(kind, delta, policy.arms, signals, rounds), None
    if kind == RATES:
        safe = signals > 1  # without limits there is no safe arm
        is_known = np.array([safe and reward is not None, *np.full(len(names) - 1, costs is not None)])
        ends = build_rate_ends(delta, signals - 1, policy.arms - is_known)
        confidence = float(ends.max())
    usual = 1.0 if interval == "paper" else 0.5  # numbers in [0, 1] are ½-sub-Gaussian
    return ArmsModel(
        arms=policy.arms,
        signals=len(names),
        noise=check_per_signal(usual if policy.noise is None else policy.noise, names, "noise"),
        lows=lows,
        kind=kind,
        confidence=confidence,
        blind=blind,
        reward=reward,
        costs=costs,
        ends=ends,
    )


def count_shares(costs: int, is_split: bool) -> int:
    """Return the number of signals that share δ; without sharing, as for one cost."""
    return 1 + (costs if is_split else 1)


def explain_unit_range(policy: Any) -> str:
    """Return why outcomes must lie in [0, 1]; empty: they need not."""
    if policy.noise is not None or policy.interval == "paper":
        return ""
    return (
        f"the interval {policy.interval!r} needs that range, so rescale, or use interval='hoeffding' and give `noise`"
    )


def count_most_pulls(layout: Ints, memory: Floats) -> float:
    """Return the largest number of pulls of an arm, by any signal."""
    blocks = (BLOCK(layout, memory, index) for index in range(layout[MODEL_BLOCKS]))
    return max(float(ARM_MEANS(block, memory).pulls.max()) for block in blocks)


def check_arms(actions: Any, arms: int) -> Flags:
    """Return which arms are eligible; the safe arm always is."""
    if actions is None:
        return ALL
    if not isinstance(actions, ArmSet) or actions.count != arms:
        what = f"{actions!r}" if isinstance(actions, ArmSet) else type(actions).__name__
        text = "the actions are {what}; this policy chooses among ArmSet({arms})"
        raise InvalidActions(ErrorCode.UNSUPPORTED_ACTIONS, text, what=what, arms=arms)
    return actions.eligible


def check_logged_arms(actions: Any, arms: int) -> Ints:
    """Return logged arms, one per row."""
    rule = f"a list of whole numbers from 0 to {arms - 1}"
    rows = as_array(actions, "the logged arms", InvalidActions, rule)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not np.all((rows >= 0) & (rows < arms)):
        raise InvalidActions(ErrorCode.UNKNOWN_ACTION, "the logged arms must be {rule}", rule=rule)
    return rows.astype(np.int64)


@cache
def list_arms(arms: int) -> Floats:
    """Return the arms as actions without features (K, 0)."""
    empty = np.empty((arms, 0))
    empty.flags.writeable = False  # as all actions are: kernels are compiled once
    return empty


def locate_arm(policy: Any, played: PlayedAction) -> tuple[Floats, int]:
    """Return the features of a played arm, which are none, and its index."""
    return NO_FEATURES, int(played.action)


def locate_arms(policy: Any, actions: Any) -> tuple[Floats, Ints]:
    """Return the features of logged arms, which are none, and their indices."""
    return np.empty((len(actions), 0)), actions


def learn_arms_log(policy: Any, state: PolicyState, actions: Any, values: Any) -> PolicyState:
    """Learn a log as one batch; with "rates" the saved intervals are tightened once, after all rows."""
    if policy.interval != "rates":
        return BasePolicy.learn_log(policy, state, actions, values)
    blocks = [block for _, block in policy.rounds.iter_blocks(state.memory)]
    intervals = [KEPT_INTERVALS(block, state.memory).rows.copy() for block in blocks]
    state = BasePolicy.learn_log(policy, state, actions, values)
    for block, before in zip(blocks, intervals, strict=True):
        KEPT_INTERVALS(block, state.memory).rows[:] = before
        for arm, signal in product(range(block.size), range(block.signals)):
            TIGHTEN_ARM(block, arm, signal, policy.settings, state.memory)
    return state


def check_logged_rows(policy: Any, actions: Any) -> Ints:
    """Return logged arms of a policy, one per row."""
    return check_logged_arms(actions, policy.arms)


def get_arms_spec(policy: Any, actions: Any) -> RoundSpec | None:
    """Return the spec of compiled loops over arms; None: the actions have features."""
    return policy.rounds.spec if actions.dimension == 0 else None


def build_arms_memory(
    policy: Any, offered: Any, features: Floats, fresh: bool, learned: PolicyState | None = None
) -> Floats:
    """Return the initial memory of a compiled run over arms, which are not cached."""
    memory: Floats = policy.rounds.start_run(None if learned is None else learned.memory, features, True)
    return memory


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmsPolicy(SafePolicy):
    """The settings of a policy that plays a safe mixture of arms: actions without features, known by their index."""

    arms: int
    """The number of arms."""
    horizon: int | None = None
    """The number of rounds for which the intervals hold; None: all rounds."""
    noise: PerSignal | None = None
    """R: outcomes are R-sub-Gaussian around their means, for all signals or for each; None: they lie in [0, 1]."""
    interval: ArmInterval | None = None
    """The kind of confidence interval of an arm (docs/theory/arms.md). None: the default for outcomes in [0, 1], or
    "hoeffding" with `noise`."""
    separate_models: bool = False
    """Learn each signal when it arrives, without waiting for the others, in a model of its own."""

    model: ArmsModel = field(init=False, repr=False)

    default_interval: ClassVar[ArmInterval] = "kl"
    rule: ClassVar[Rule] = MIXTURE
    mixes: ClassVar[bool] = True

    @property
    def switches(self) -> int:
        """The switches of its rule (see `engine.workspace`)."""
        return OFFERS_SAFE | ENFORCES_LIMITS | get_optimism_switch(self)

    @property
    def last_numbers(self) -> list[float]:
        """The last numbers of the settings, which its rule reads."""
        return []

    def __post_init__(self) -> None:
        copy_settings(self)
        separate_models = check_bool(self.separate_models, "separate_models")
        set_derived(self, interval=resolve_interval(self, self.default_interval))
        safe = require_arm(self.safe_action, check_size(self.arms, "arms"))
        thresholds = resolve_thresholds(self.threshold, safe)
        ceilings = compute_ceilings(thresholds, self.mean_cost_bound, 0.0 if self.requires_unit_range else None)
        bounds = parse_mean_cost_bounds(self.mean_cost_bound, thresholds.names)
        if not np.isfinite(bounds).all():
            rule = "a number, since an arm without data could otherwise have any cost and would never be tried"
            raise InvalidProblem.must_be(ErrorCode.MISSING_VALUE, "mean_cost_bound", None, rule)
        if self.requires_unit_range:
            check_safe_range(safe, thresholds, "rescale, or give `noise`")
        signals = count_shares(len(thresholds.names), check_bool(self.split_delta, "split_delta"))
        values = safe.reward, thresholds.signed_safe
        model = build_arms_model(self, thresholds, signals, max(1.0, *bounds), *values)
        model = replace(model, separate_models=separate_models)
        set_derived(self, model=model)
        set_rounds(
            self, self.rule, thresholds, ceilings, tuple(model.build_blocks()),
            switches=self.switches, safe_index=int(safe.arm or 0), last=self.last_numbers,
        )  # fmt: skip

    @property
    def interval_shares(self) -> tuple[float, ...]:
        m, delta = self.thresholds.values.size, float(self.delta)
        signals = count_shares(m, self.split_delta)
        if self.interval != "rates":
            return (delta / signals,) * (1 + m)
        upper, other = split_delta(signals - 1)
        return (delta * 2.0 * other, *([delta * (upper + other)] * m))

    def choose(self, state: PolicyState, actions: Any, draw: RandomKey) -> Decision:
        eligible, safe_index = check_arms(actions, self.arms), self.layout.item(SAFE_INDEX)
        if self.horizon is not None and count_most_pulls(self.layout, state.memory) >= self.horizon:
            offer = RoundActions(self.arms, eligible, safe_index, safe_index, None)  # the radii hold up to the horizon
            return build_safe_decision(offer, self.thresholds, draw.round, CAUSES[HORIZON_EXCEEDED])
        result = self.rounds.play(state.memory, list_arms(self.arms), eligible, draw)
        arm = result.code if result.code >= 0 else safe_index
        decision = build_mixture_decision(result, arm, self.thresholds, draw.round)
        return attach_round(decision, result, state.memory, self.thresholds)

    locate, locate_rows, check_logged_actions, learn_log = locate_arm, locate_arms, check_logged_rows, learn_arms_log
    get_round_spec, build_run_memory = get_arms_spec, build_arms_memory
    why_unit_range = cached_property(explain_unit_range)


@dataclass(frozen=True, kw_only=True, eq=False)
class OPB(ArmsPolicy):
    """The paper's Algorithm 3: with probability 1 − δ the mixture of every round keeps its limits in expectation.

    The cost of an arm that was never pulled can be as large as `mean_cost_bound`. Outcomes lie in [0, 1] and have
    likelihood-ratio intervals (`interval="kl"`), which are narrow where costs are rare, such as one opt-out in a
    hundred (docs/theory/arms.md). With `noise`, outcomes can be any R-sub-Gaussian numbers ("hoeffding"); "paper"
    assumes that they are 1-sub-Gaussian. Without a horizon the intervals hold for all rounds.

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> from stagewise.problem.actions import ArmSet
        >>> from stagewise.problem.safe_action import SafeAction
        >>> policy = OPB(arms=3, safe_action=SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
        >>> policy.decide(policy.start(), ArmSet(3), RandomKey()).probabilities
        array([0.8, 0.2, 0. , 0. ])
    """

    theorem: ClassVar[str] = "arms"


@dataclass(frozen=True, kw_only=True, eq=False)
class SafeArmPosteriorSampling(ArmsPolicy):
    """Certified posterior sampling over arms: with probability 1 − δ every round's mixture keeps its limits.

    A posterior sample of every arm's means proposes a safe mixture. It is played if the data certify that its regret
    is at most C times its uncertainty; otherwise the optimistic mixture, mixed with the safe action until it is safe,
    is played (docs/theory/caps.md). Outcomes lie in [0, 1] and have intervals that are narrow where costs are rare:
    `interval="rates"` spends most of δ on the upper bounds of costs. With `noise`, outcomes can be any R-sub-Gaussian
    numbers ("hoeffding").

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> from stagewise.problem.actions import ArmSet
        >>> from stagewise.problem.safe_action import SafeAction
        >>> safe = SafeAction(arm=0, reward=0.1, cost=0.0)
        >>> policy = SafeArmPosteriorSampling(arms=3, safe_action=safe, threshold=0.2)
        >>> policy.decide(policy.start(), ArmSet(3)).pessimistic_cost.round(6)
        array([0.2])
    """

    posterior_scale: float = 0.7
    """ν: the scale of posterior samples, in posterior standard deviations; 0: greedy."""
    max_regret_ratio: float = 5.0
    """C ≥ 1: the largest certified regret of a proposal, in units of its uncertainty."""
    mean_reward_bound: float = 1.0
    """An upper bound on all mean rewards."""
    optimism: Optimism = field(init=False, default="inflated")
    reward_confidence_scale: float | None = field(init=False, default=None)
    cost_confidence_scale: float = field(init=False, default=1.0)

    rule: ClassVar[Rule] = CERTIFIED_MIXTURE
    default_interval: ClassVar[ArmInterval] = "rates"

    @property
    def switches(self) -> int:
        return CERTIFICATE

    @property
    def last_numbers(self) -> list[float]:
        return compute_certificate_numbers(self, self.safe_action.reward)
