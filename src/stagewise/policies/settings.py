"""Settings that policies share, checked in one place."""

import dataclasses
import math
from typing import Any, Literal, get_args

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.engine.layout import DIRECTIONAL, INFLATED
from stagewise.engine.limits import (
    BOUNDS_NOT_FINITE,
    HORIZON_EXCEEDED,
    NO_BETTER_ACTION,
    NO_CERTIFIED_ACTION,
    NO_PLAUSIBLE_FUNCTION,
    SAFE_ACTION_COST_UNCERTAIN,
    SAFE_SHARE_TOO_SMALL,
    SOLVER_FAILED,
)
from stagewise.problem.checks import check_bool, check_choice, check_number, copy_value
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import safe_repr, suggest_percent
from stagewise.problem.thresholds import Thresholds
from stagewise.records.reason import Reason, ReasonDetails

Optimism = Literal["inflated", "directional"]
SMALLEST_PROBABILITY = 1e-100  # smaller probabilities of failure cannot be divided among signals and arms
FALSE_ALARMS = 1e-6  # significance level of the tests of declared values; not part of δ
CAUSES = {  # by kernel code; for contradictions see `contradictions`
    NO_BETTER_ACTION: ReasonDetails(Reason.NO_BETTER_ACTION),
    SAFE_ACTION_COST_UNCERTAIN: ReasonDetails(Reason.SAFE_ACTION_COST_UNCERTAIN),
    NO_CERTIFIED_ACTION: ReasonDetails(Reason.NO_CERTIFIED_ACTION),
    BOUNDS_NOT_FINITE: ReasonDetails(Reason.BOUNDS_NOT_FINITE),
    NO_PLAUSIBLE_FUNCTION: ReasonDetails(Reason.NO_PLAUSIBLE_FUNCTION),
    SOLVER_FAILED: ReasonDetails(Reason.SOLVER_FAILED),
    HORIZON_EXCEEDED: ReasonDetails(Reason.HORIZON_EXCEEDED),
    SAFE_SHARE_TOO_SMALL: ReasonDetails(Reason.EXPLORATION_WEIGHT_TOO_SMALL),
}


def copy_settings(policy: Any) -> None:
    """Copy the mutable settings of a policy, so that later changes by the caller have no effect."""
    for setting in dataclasses.fields(policy):
        if setting.init:
            object.__setattr__(policy, setting.name, copy_value(getattr(policy, setting.name), setting.name))


def set_derived(policy: Any, **values: Any) -> None:
    """Set derived fields of a frozen policy."""
    for name, value in values.items():
        object.__setattr__(policy, name, value)


def check_probability(value: Any, name: str) -> float:
    """Return a number strictly between 0 and 1."""
    result = check_number(value, name)
    if not 0.0 < result < 1.0:
        raise InvalidProblem(
            ErrorCode.OUT_OF_RANGE,
            "{name} is {result}; it must be strictly between 0 and 1, since it is a probability of failure{result_2}",
            name=name,
            result=result,
            result_2=suggest_percent(result),
        )
    if result < SMALLEST_PROBABILITY:
        raise InvalidProblem(
            ErrorCode.OUT_OF_RANGE,
            "{name} is {result}; it must be at least {smallest_probability:g}, since no bound can be more certain",
            name=name,
            result=result,
            smallest_probability=SMALLEST_PROBABILITY,
        )
    return result


def get_optimism_switch(policy: Any) -> int:
    """Return the switch of a policy's optimism, 0 if it samples; reject an unused reward_confidence_scale."""
    optimism = check_choice(policy.optimism, get_args(Optimism), "optimism")
    inflates = optimism == "inflated" and getattr(policy, "inflates", True)
    if policy.reward_confidence_scale is not None and not inflates:
        instead = "optimism is directional" if optimism == "directional" else "optimism is sampled"
        raise InvalidProblem(
            ErrorCode.UNUSED_SETTING,
            "reward_confidence_scale is {reward_confidence_scale}; leave it out: it scales inflation, and {instead}",
            reward_confidence_scale=safe_repr(policy.reward_confidence_scale),
            instead=instead,
        )
    return DIRECTIONAL if optimism == "directional" else INFLATED if inflates else 0


def check_method(method: Any, methods: tuple[str, ...], exact: str) -> None:
    """Raise InvalidProblem for an unknown method; the exact method is in the reproduction."""
    if isinstance(method, str) and method == "exact" and "exact" not in methods:
        raise InvalidProblem(
            ErrorCode.UNSUPPORTED,
            "method is 'exact'; it must be one of {repr}, and the paper's exact maximum is {exact} "
            "of stagewise_reproduction.exact (reproduction/ in the repository)",
            repr=", ".join(map(repr, methods)),
            exact=exact,
        )
    check_choice(method, methods, "method")


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
        raise InvalidProblem(
            ErrorCode.OUT_OF_RANGE,
            "reward_confidence_scale is {reward_confidence_scale}; it must be at least 1, or bounds of "
            "the reward are not optimistic",
            reward_confidence_scale=reward_confidence_scale,
        )
    if not check_number(cost_confidence_scale, "cost_confidence_scale") >= 1.0:
        raise InvalidProblem(
            ErrorCode.OUT_OF_RANGE,
            "cost_confidence_scale is {cost_confidence_scale}; it must be at least 1, or costs exceed their bounds",
            cost_confidence_scale=cost_confidence_scale,
        )
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
