"""Settings that policies share, checked in one place."""

import math
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.promise import TOO_LITTLE
from stagewise.problem.checks import number, positive
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.thresholds import Thresholds

OVER, UNEXPLAINED, UNSOLVED = 6, 11, 12
FALLBACKS = {
    1: "the safe action promises more than any listed one",
    2: "the safe action's own cost is not certain enough yet, so it is played to learn it",
    3: "nothing listed is safe",
    4: "the bounds are not finite",
    UNEXPLAINED: "no function of a class explains what was seen: it lacks the truth, or the noise is larger than told",
    UNSOLVED: "the solver found no mixture",
    OVER: "the horizon is over, and the radii hold no longer",
    TOO_LITTLE: "the share that is safe of anything better cannot be told from rounding",
}


def probability(value: Any, name: str) -> float:
    """Return a number strictly between 0 and 1."""
    result = number(value, name)
    if not 0.0 < result < 1.0:
        raise InvalidProblem(
            f"{name} is {result}; it must lie strictly between 0 and 1, being a probability of failure"
        )
    return result


def promise_numbers(thresholds: Thresholds, ceilings: Floats, reward_scale: float | None, cost_scale: float) -> Floats:
    """Return the end of the array of settings: α_r, α_c | thresholds | limits | ceilings, all signed."""
    if reward_scale is not None and not number(reward_scale, "reward_scale") >= 1.0:
        raise InvalidProblem(
            f"reward_scale is {reward_scale}; it must be at least 1, or hoped rewards are not optimistic"
        )
    if not number(cost_scale, "cost_scale") >= 1.0:
        raise InvalidProblem(f"cost_scale is {cost_scale}; it must be at least 1, or costs could exceed their bounds")
    signed = thresholds.signs * thresholds.values
    scales = np.array([0.0 if reward_scale is None else float(reward_scale), float(cost_scale)])
    return np.concatenate([scales, signed, thresholds.limits, ceilings])


def ceilings_of(thresholds: Thresholds, cost_bound: float | None, lowest: float | None) -> Floats:
    """Return the a-priori bound on every signed mean cost; `lowest` is what costs cannot fall below."""
    if cost_bound is None:
        return np.full(len(thresholds.names), math.inf)
    bound = positive(cost_bound, "cost_bound")
    below = bound if lowest is None else -lowest
    ceilings = np.where(thresholds.signs > 0, bound, below)
    if thresholds.safe is not None:
        for name, cost in zip(thresholds.names, thresholds.safe, strict=True):
            if abs(cost) > bound:
                raise InvalidProblem(
                    f"the safe action's {name!r} is {cost}, beyond cost_bound {bound}; "
                    "raise cost_bound to a true bound on mean costs, or set it to None"
                )
    return ceilings
