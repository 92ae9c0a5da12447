"""Settings that policies share, checked in one place."""

import dataclasses
import math
from typing import Any, Literal, get_args

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.layout import DIRECTIONAL, INFLATED
from stagewise.kernels.promise import (
    NOT_FINITE,
    NOTHING_SAFE,
    OVER,
    PREFERRED,
    TOO_LITTLE,
    UNEXPLAINED,
    UNSOLVED,
    WARMING,
)
from stagewise.problem.checks import kept, number, one_of, shown, switch
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.thresholds import Thresholds
from stagewise.problem.words import percent
from stagewise.records.reason import Cause, Reason

Optimism = Literal["inflated", "directional"]
RAREST = 1e-100  # a probability of failure below it could not be divided among signals and arms
FALSE_ALARMS = 1e-6  # the level of every test that holds a declared value against the data; no part of δ
CAUSES = {  # by the code of a kernel; from DISPUTED on see `contradictions`
    PREFERRED: Cause(Reason.NO_BETTER_ACTION),
    WARMING: Cause(Reason.SAFE_COST_UNCERTAIN),
    NOTHING_SAFE: Cause(Reason.NO_SAFE_ACTION),
    NOT_FINITE: Cause(Reason.BOUNDS_NOT_FINITE),
    UNEXPLAINED: Cause(Reason.NO_PLAUSIBLE_FUNCTION),
    UNSOLVED: Cause(Reason.SOLVER_FAILED),
    OVER: Cause(Reason.HORIZON_OVER),
    TOO_LITTLE: Cause(Reason.SAFE_SHARE_TOO_SMALL),
}


def keep(policy: Any) -> None:
    """Keep every setting of a policy as it was given, whatever becomes of the caller's lists and arrays."""
    for setting in dataclasses.fields(policy):
        if setting.init:
            object.__setattr__(policy, setting.name, kept(getattr(policy, setting.name), setting.name))


def settle(policy: Any, **values: Any) -> None:
    """Write down what follows from the settings of a policy that is frozen."""
    for name, value in values.items():
        object.__setattr__(policy, name, value)


def probability(value: Any, name: str) -> float:
    """Return a number strictly between 0 and 1."""
    result = number(value, name)
    if not 0.0 < result < 1.0:
        raise InvalidProblem(
            f"{name} is {result}; it must lie strictly between 0 and 1, being a probability of failure{percent(result)}"
        )
    if result < RAREST:
        raise InvalidProblem(f"{name} is {result}; it must be at least {RAREST:g}, as no bound is surer than that")
    return result


def hope_switch(policy: Any) -> int:
    """Return the switch of a policy's optimism, 0 where it samples; refuse a reward_scale that would not be read."""
    optimism = one_of(policy.optimism, get_args(Optimism), "optimism")
    inflates = optimism == "inflated" and getattr(policy, "inflates", True)
    if policy.reward_scale is not None and not inflates:
        instead = "optimism is directional" if optimism == "directional" else "optimism is sampled"
        raise InvalidProblem(
            f"reward_scale is {shown(policy.reward_scale)}; leave it out, since it scales inflated optimism, and here "
            f"{instead}"
        )
    return DIRECTIONAL if optimism == "directional" else INFLATED if inflates else 0


def gone_with(exact: str) -> dict[str, str]:
    """Return what became of the settings of method='exact', which this class of the reproduction has."""
    why = f"with method='exact', which is {exact} of stagewise_reproduction.exact (reproduction/ in the repository)"
    return dict.fromkeys(("tolerance", "budget", "search"), why)


def check_method(method: Any, methods: tuple[str, ...], exact: str) -> None:
    """Refuse a method that a policy does not have; the paper's own maximum stands beside the package."""
    if isinstance(method, str) and method == "exact" and "exact" not in methods:
        raise InvalidProblem(
            f"method is 'exact'; here it must be one of {', '.join(map(repr, methods))}, the best of which beats the "
            f"paper's own maximum at a fraction of its time; that is {exact} of stagewise_reproduction.exact now "
            "(reproduction/ in the repository)"
        )
    one_of(method, methods, "method")


def promise_numbers(
    thresholds: Thresholds, ceilings: Floats, reward_scale: float | None, cost_scale: float, watch: Any = False
) -> Floats:
    """Return how the array of settings begins: α_r, α_c, log 1/a | thresholds | limits | ceilings, all signed."""
    if reward_scale is not None and not number(reward_scale, "reward_scale") >= 1.0:
        raise InvalidProblem(
            f"reward_scale is {reward_scale}; it must be at least 1, or hoped rewards are not optimistic"
        )
    if not number(cost_scale, "cost_scale") >= 1.0:
        raise InvalidProblem(f"cost_scale is {cost_scale}; it must be at least 1, or costs could exceed their bounds")
    signed = thresholds.signs * thresholds.values
    alarm = math.log(1.0 / FALSE_ALARMS) if switch(watch, "watch") else math.inf
    scales = np.array([0.0 if reward_scale is None else float(reward_scale), float(cost_scale), alarm])
    return np.concatenate([scales, signed, thresholds.limits, ceilings])
