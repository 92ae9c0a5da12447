"""Settings that policies share, with their checks, and how they become the arrays that kernels read."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.engine.layout import CERTIFIED, DIRECTIONAL, ENFORCES_LIMITS, INFLATED, OFFERS_SAFE
from stagewise.engine.model import RoundSpec, Rule
from stagewise.engine.workspace import (
    BOUNDS_NOT_FINITE,
    HORIZON_EXCEEDED,
    NO_BETTER_ACTION,
    NO_CERTIFIED_ACTION,
    NO_PLAUSIBLE_FUNCTION,
    PROPOSAL_NOT_CERTIFIED,
    SAFE_ACTION_COST_UNCERTAIN,
    SAFE_SHARE_TOO_SMALL,
    SOLVER_FAILED,
)
from stagewise.models.model_block import ModelBlockSpec
from stagewise.policies.policy import REWARD, BasePolicy
from stagewise.policies.rounds import NOTHING, Growth, Rounds, assemble_arrays
from stagewise.problem.checks import (
    LARGEST,
    check_bool,
    check_choice,
    check_number,
    check_positive,
    copy_value,
    is_listing,
    list_entries,
    order_by_name,
)
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem
from stagewise.problem.formatting import suggest_percent
from stagewise.problem.safe_action import RoundSafeAction, SafeAction
from stagewise.problem.thresholds import NO_THRESHOLDS, Threshold, Thresholds, resolve_thresholds
from stagewise.records.reason import FallbackReason, ReasonDetails

Optimism = Literal["inflated", "directional"]
CostBound = float | Sequence[float | None] | Mapping[str, float | None] | Floats | Literal["unit"] | None
UNIT: Literal["unit"] = "unit"  # the default: 1, checked against the other settings; a number is not checked
ROUNDING = 1e-9
SMALLEST_PROBABILITY = 1e-100  # smaller probabilities of failure cannot be divided among signals and arms
FALSE_ALARMS = 1e-6  # significance level of the tests of declared values; not part of δ
CERTIFICATE = OFFERS_SAFE | ENFORCES_LIMITS | CERTIFIED  # switches of a rule whose choices are certified
CAUSES = {  # by kernel code; for contradictions see `contradictions`
    NO_BETTER_ACTION: ReasonDetails(FallbackReason.NO_BETTER_ACTION),
    SAFE_ACTION_COST_UNCERTAIN: ReasonDetails(FallbackReason.SAFE_ACTION_COST_UNCERTAIN),
    NO_CERTIFIED_ACTION: ReasonDetails(FallbackReason.NO_CERTIFIED_ACTION),
    BOUNDS_NOT_FINITE: ReasonDetails(FallbackReason.BOUNDS_NOT_FINITE),
    NO_PLAUSIBLE_FUNCTION: ReasonDetails(FallbackReason.NO_PLAUSIBLE_FUNCTION),
    SOLVER_FAILED: ReasonDetails(FallbackReason.SOLVER_FAILED),
    HORIZON_EXCEEDED: ReasonDetails(FallbackReason.HORIZON_EXCEEDED),
    SAFE_SHARE_TOO_SMALL: ReasonDetails(FallbackReason.MIXTURE_WEIGHT_UNDERFLOW),
    PROPOSAL_NOT_CERTIFIED: ReasonDetails(FallbackReason.PROPOSAL_NOT_CERTIFIED),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class SafePolicy(BasePolicy):
    """The settings of a policy with optimistic rewards, pessimistic costs and a safe action."""

    safe_action: SafeAction
    """The action that is known to be safe before learning."""
    threshold: Threshold
    """The limits on every round's expected costs: a number, one per constraint, or a mapping by name."""
    delta: float = 0.05
    """The guarantee holds with probability 1 − δ."""
    optimism: Optimism = "inflated"
    """Raise optimistic rewards where costs are uncertain ("inflated"), or use optimistic costs ("directional")."""
    reward_confidence_scale: float | None = None
    """α_r of inflated optimism: α_r − 1 cost radii are added to the optimistic reward; None: the theorem's choice."""
    check_assumptions: bool = True
    """Test the declared assumptions online; a contradiction plays the safe action (docs/theory/watch.md)."""
    mean_cost_bound: CostBound = UNIT
    """A-priori bound on mean costs, or one for each; "unit": 1, which is checked; None: no bound."""
    cost_confidence_scale: float = 1.0
    """α_c: the number of radii added to costs."""
    split_delta: bool = True
    """Share δ among the reward and the constraints; otherwise each has its own δ."""

    thresholds: Thresholds = field(init=False, repr=False)

    inflates: ClassVar[bool] = True  # the uncertainty of costs raises the optimistic reward


@dataclass(frozen=True, kw_only=True, eq=False)
class UnconstrainedPolicy(BasePolicy):
    """The settings of a policy that ignores limits: those that measure its violations."""

    safe_action: SafeAction | None = None
    """The safe action that a relative `threshold` refers to; the policy does not use it."""
    threshold: Threshold | None = None
    """The limits that measure the violations of its runs; the policy ignores them."""
    delta: float = 0.05
    """The confidence sets hold with probability 1 − δ."""

    thresholds: Thresholds = field(init=False, repr=False, default=NO_THRESHOLDS)

    learns: ClassVar[str] = REWARD

    @cached_property
    def evaluation_thresholds(self) -> Thresholds:
        """The thresholds that measure its violations."""
        safe = SafeAction(arm=0) if self.safe_action is None else parse_safe_action(self.safe_action)
        if self.safe_action is not None and self.threshold is None:
            raise InvalidProblem.unused("safe_action", self.safe_action, "it is used only with a threshold")
        return NO_THRESHOLDS if self.threshold is None else resolve_thresholds(self.threshold, safe)


def copy_settings(policy: Any) -> None:
    """Copy the mutable settings of a policy, so that later changes by the caller have no effect."""
    set_derived(policy, **{s.name: copy_value(getattr(policy, s.name), s.name) for s in get_settings(policy)})


def get_settings(policy: Any) -> list[Any]:
    """Return the fields that a policy is made with."""
    return [setting for setting in dataclasses.fields(policy) if setting.init]


def set_derived(policy: Any, **values: Any) -> None:
    """Set derived fields of a frozen policy."""
    for name, value in values.items():
        object.__setattr__(policy, name, value)


def set_rounds(
    policy: Any,
    rule: Rule,
    thresholds: Thresholds,
    ceilings: Floats,
    blocks: Sequence[ModelBlockSpec],
    *,
    switches: int,
    safe: Floats = NOTHING,
    safe_index: int = -1,
    sampling: int = 0,
    declared: Floats = NOTHING,
    last: Sequence[float] = (),
    growth: Growth | None = None,
    caches: bool = True,
) -> None:
    scales = policy.reward_confidence_scale, policy.cost_confidence_scale, policy.check_assumptions
    constraints = build_constraint_settings(thresholds, ceilings, *scales)
    head = switches, sampling, safe_index
    layout, settings = assemble_arrays(head, constraints, safe, blocks, declared, last)
    spec = RoundSpec(tuple(block.model for block in blocks), rule, min(thresholds.values.size, 2))
    set_derived(policy, thresholds=thresholds, rounds=Rounds(spec, layout, settings, growth, caches))


def build_unconstrained_rounds(rule: Rule, blocks: Sequence[ModelBlockSpec], safe: Floats = NOTHING) -> Rounds:
    """Return the rounds of a policy that ignores limits."""
    constraints = build_constraint_settings(NO_THRESHOLDS, NOTHING, None, 1.0)
    spec = RoundSpec(tuple(block.model for block in blocks), rule)
    return Rounds(spec, *assemble_arrays((ENFORCES_LIMITS, 0, -1), constraints, safe, blocks))


def build_constraint_settings(
    thresholds: Thresholds,
    ceilings: Floats,
    reward_confidence_scale: float | None,
    cost_confidence_scale: float,
    watch: Any = False,
) -> Floats:
    """Return the first numbers of the settings: α_r, α_c, log 1/a | thresholds | limits | ceilings, all signed."""
    if (
        reward_confidence_scale is not None
        and not check_number(reward_confidence_scale, "reward_confidence_scale") >= 1.0
    ):
        rule = "at least 1, or upper confidence bounds of the reward are not optimistic"
        raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, "reward_confidence_scale", reward_confidence_scale, rule)
    if not check_number(cost_confidence_scale, "cost_confidence_scale") >= 1.0:
        rule = "at least 1, or costs could exceed their bounds"
        raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, "cost_confidence_scale", cost_confidence_scale, rule)
    signed = thresholds.signs * thresholds.values
    alarm = math.log(1.0 / FALSE_ALARMS) if check_bool(watch, "check_assumptions") else math.inf
    scales = np.array(
        [
            0.0 if reward_confidence_scale is None else float(reward_confidence_scale),
            float(cost_confidence_scale),
            alarm,
        ]
    )
    return np.concatenate([scales, signed, thresholds.limits, ceilings])


def check_probability(value: Any, name: str) -> float:
    """Return a number strictly between 0 and 1."""
    result = check_number(value, name)
    if not 0.0 < result < 1.0:
        rule = f"strictly between 0 and 1, since it is a probability of failure{suggest_percent(result)}"
        raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, name, result, rule)
    if result < SMALLEST_PROBABILITY:
        rule = f"at least {SMALLEST_PROBABILITY:g}, since no bound can be more certain"
        raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, name, result, rule)
    return result


def compute_confidence(policy: Any, signals: int) -> float:
    """Return log 1/δ' of each of these signals, which share δ or have one each."""
    delta = check_probability(policy.delta, "delta")
    return math.log(1.0 / (delta / (signals if check_bool(policy.split_delta, "split_delta") else 1)))


def get_optimism_switch(policy: Any) -> int:
    """Return the switch of a policy's optimism, 0 if it samples; check `reward_confidence_scale`."""
    optimism = check_choice(policy.optimism, get_args(Optimism), "optimism")
    inflates = optimism == "inflated" and policy.inflates
    if policy.reward_confidence_scale is not None and not inflates:
        instead = "optimism is directional" if optimism == "directional" else "optimism is sampled"
        reason = f"it scales inflated optimism, and here {instead}"
        raise InvalidProblem.unused("reward_confidence_scale", policy.reward_confidence_scale, reason)
    return DIRECTIONAL if optimism == "directional" else INFLATED if inflates else 0


def check_method(method: Any, methods: tuple[str, ...], exact: str) -> None:
    """Raise InvalidProblem for an unknown method; the exact method is in the reproduction."""
    if isinstance(method, str) and method == "exact" and "exact" not in methods:
        rule = (
            f"one of {', '.join(map(repr, methods))}, and the paper's exact maximum is {exact} of "
            "stagewise_reproduction.exact (reproduction/ in the repository)"
        )
        raise InvalidProblem.must_be(ErrorCode.UNSUPPORTED, "method", method, rule)
    check_choice(method, methods, "method")


def compute_certificate_numbers(policy: Any, safe_reward: float | None) -> list[float]:
    """Return ν, C and the largest mean reward of a policy with CAPS' regret certificate, checked."""
    if not 0.0 <= check_number(policy.posterior_scale, "posterior_scale") < LARGEST:
        rule = "a number of standard deviations, at least 0"
        raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, "posterior_scale", policy.posterior_scale, rule)
    if not 1.0 <= check_number(policy.max_regret_ratio, "max_regret_ratio") < math.inf:
        rule = "at least 1, the ratio of the optimistic choice itself"
        raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, "max_regret_ratio", policy.max_regret_ratio, rule)
    most = check_positive(policy.mean_reward_bound, "mean_reward_bound")
    if safe_reward is not None and safe_reward > most:
        template = (
            "the safe action's reward is {safe_reward}, above mean_reward_bound {most:g}; raise mean_reward_bound to "
            "the largest mean reward"
        )
        raise InvalidProblem(ErrorCode.BOUND_EXCEEDED, template, safe_reward=safe_reward, most=most)
    return [float(policy.posterior_scale), float(policy.max_regret_ratio), most]


# `mean_cost_bound`, an upper bound on mean costs.


def parse_mean_cost_bounds(mean_cost_bound: Any, names: tuple[str, ...]) -> Floats:
    """Return one bound for each cost, infinite where none is given.

    >>> parse_mean_cost_bounds({"a": 2, "b": None}, ("a", "b"))
    array([ 2., inf])
    """
    if isinstance(mean_cost_bound, Mapping):
        mean_cost_bound = order_by_name(mean_cost_bound, names, "mean_cost_bound")
    if isinstance(mean_cost_bound, str):
        if mean_cost_bound != UNIT:
            rule = "a number, one for each cost, or None"
            raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "mean_cost_bound", mean_cost_bound, rule)
        return np.ones(len(names))
    entries = (
        list_entries(mean_cost_bound, "mean_cost_bound")
        if is_listing(mean_cost_bound)
        else [mean_cost_bound] * len(names)
    )
    if len(entries) != len(names):
        raise InvalidProblem(
            ErrorCode.WRONG_SHAPE,
            "mean_cost_bound has {entries_count} entries; it needs one number for all, or one for each of {names}",
            entries_count=len(entries),
            names=", ".join(names),
        )
    return np.array([math.inf if entry is None else check_positive(entry, "mean_cost_bound") for entry in entries])


def compute_ceilings(thresholds: Thresholds, mean_cost_bound: Any, lowest: float | None = None) -> Floats:
    """Return the a-priori bound on every signed mean cost; `lowest` is a lower bound on costs.

    Raises InvalidProblem for a limit that no mean cost can reach, since it would never bind.
    """
    bounds = parse_mean_cost_bounds(mean_cost_bound, thresholds.names)
    ceilings: Floats = np.where((thresholds.signs > 0) | (lowest is None), bounds, -float(lowest or 0.0))
    if thresholds.safe is not None:
        for name, cost, bound in zip(thresholds.names, thresholds.safe, bounds, strict=True):
            if abs(cost) > bound:
                template = (
                    "the safe action's {name!r} is {cost}, beyond mean_cost_bound {bound}; set mean_cost_bound to a "
                    "true bound on mean costs, or to None"
                )
                raise InvalidProblem(ErrorCode.BOUND_EXCEEDED, template, name=name, cost=cost, bound=bound)
    for name, sign, value, ceiling in zip(thresholds.names, thresholds.signs, thresholds.values, ceilings, strict=True):
        if sign * value >= ceiling:
            side, end = ("at most", ceiling) if sign > 0 else ("at least", 0.0 - ceiling)
            share = suggest_percent(value) if end == 1.0 else ""
            template = (
                "the threshold of {name!r} is {value:g}, and its means are {side} {end:g}, so it never binds{share}; "
                "if means can go beyond that value, declare it with mean_cost_bound"
            )
            data = {"name": name, "value": value, "side": side, "end": end, "share": share}
            raise InvalidProblem(ErrorCode.LIMIT_NEVER_BINDS, template, **data)
    return ceilings


def compute_max_action_norm(mean_cost_bound: Any, ceilings: Floats, bounds: Floats) -> float:
    """Return the largest norm of an action under the default `mean_cost_bound`: S ‖x‖ ≤ 1 for every cost."""
    if not isinstance(mean_cost_bound, str):
        return math.inf
    return float(np.min(ceilings / bounds, initial=math.inf)) * (1.0 + ROUNDING)


def check_norm(what: str, size: float, span: float, error: type[InvalidProblem | InvalidActions]) -> None:
    """Raise an error for an action whose mean cost can exceed the default `mean_cost_bound`."""
    if size > span:
        template = (
            "{what} has norm {size:.6g}, and by the bound declared on parameters costs of norm {span:.6g} or more can "
            "exceed 1, which mean_cost_bound is when left out; give mean_cost_bound: a true bound on mean costs, or "
            "None for none"
        )
        raise error(ErrorCode.BOUND_EXCEEDED, template, what=what, size=size, span=span)


def compute_max_row_norm(features: Floats) -> float:
    return math.sqrt(float(np.vecdot(features, features).max()))


# The safe action.


def parse_safe_action(value: Any) -> SafeAction:
    """Return a safe action."""
    if not isinstance(value, SafeAction):
        rule = "a SafeAction, the one action known to be safe"
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "safe_action", value, rule)
    return value


def require_features(value: Any) -> SafeAction:
    """Return a safe action with features."""
    safe = parse_safe_action(value)
    if safe.features is None:
        what = "has no features" if safe.is_per_round else "is an arm"
        text = "the safe action {what}; this policy needs SafeAction(features=...)"
        raise InvalidProblem(ErrorCode.SAFE_ACTION_INVALID, text, what=what)
    return safe


def fill_zero_reward(safe: SafeAction) -> SafeAction:
    """Return the safe action at the zero vector with its reward, which is 0 for every linear model."""
    if safe.reward:
        template = (
            "the safe action is the zero vector but its reward is {reward}; a linear reward is 0 there, so add a "
            "constant feature or subtract the reward of doing nothing"
        )
        raise InvalidProblem(ErrorCode.SAFE_ACTION_INVALID, template, reward=safe.reward)
    return SafeAction(features=safe.features, reward=0.0, cost=safe.cost)


def require_arm(value: Any, arms: int) -> SafeAction:
    """Return a safe action that is one of the arms."""
    safe = parse_safe_action(value)
    if safe.arm is None:
        what = "is no arm" if safe.is_per_round else "has features"
        text = "the safe action {what}; a policy over arms needs SafeAction(arm=...)"
        raise InvalidProblem(ErrorCode.SAFE_ACTION_INVALID, text, what=what)
    if safe.arm >= arms:
        rule = f"one of the arms 0 to {arms - 1}"
        raise InvalidProblem.must_be(ErrorCode.SAFE_ACTION_INVALID, "the safe arm", safe.arm, rule)
    return safe


def get_round_safe_action(actions: Any, kind: str) -> RoundSafeAction:
    """Return the safe action that an action set names, for a policy whose safe action has no features."""
    of_round = getattr(actions, "round_safe_action", None)
    if not isinstance(of_round, RoundSafeAction):
        template = (
            "the actions name no safe action, and the SafeAction of this {kind} has no features; give "
            "FiniteSet(features, safe=0), RaySet(targets, safe=x0), or features that hold for every round"
        )
        raise InvalidActions(ErrorCode.SAFE_ACTION_MISSING, template, kind=kind)
    return of_round


def reject_round_safe_action(listed: Any, kind: str) -> None:
    """Raise InvalidActions where a set names a safe action and the policy has one for all rounds."""
    if listed.round_safe_action is not None:
        template = (
            "the actions name a safe action, and this {kind} has one with features for all rounds; leave safe= out, "
            "or use LCLUCB, ROFUL, SafeLTS, OPLB or CAPS with SafeAction(cost=...)"
        )
        raise InvalidActions(ErrorCode.CONFLICTING_SETTINGS, template, kind=kind)


def check_safe_range(safe: SafeAction, thresholds: Thresholds, way: str) -> None:
    """Raise InvalidProblem where a declared mean of the safe action is outside [0, 1]."""
    declared = {"reward": safe.reward}
    if thresholds.safe is not None:
        declared |= dict(zip(thresholds.names, thresholds.safe.tolist(), strict=True))
    for name, value in declared.items():
        if value is not None and not 0.0 <= value <= 1.0:
            text = "the safe action's {name!r} is {value}, outside [0, 1], the range of all outcomes; {way}"
            raise InvalidProblem(ErrorCode.OUT_OF_RANGE, text, name=name, value=value, way=way)
