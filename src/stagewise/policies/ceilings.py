"""What mean costs are at most: the setting `cost_bound`, held against the limits and against what else was declared."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.problem.checks import entries_of, is_listing, positive, shown
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.tables import in_order
from stagewise.problem.thresholds import Thresholds
from stagewise.problem.words import percent

CostBound = float | Sequence[float | None] | Mapping[str, float | None] | Floats | Literal["unit"] | None
UNIT: Literal["unit"] = "unit"  # the default: 1, refused where others allow larger costs; a number is taken as promised
ROUNDING = 1e-9


def bounds_of(cost_bound: Any, names: tuple[str, ...]) -> Floats:
    """Return one bound for each cost, infinite where there is none.

    >>> bounds_of({"a": 2, "b": None}, ("a", "b"))
    array([ 2., inf])
    """
    if isinstance(cost_bound, Mapping):
        cost_bound = in_order(cost_bound, names, "cost_bound")
    if isinstance(cost_bound, str):
        if cost_bound != UNIT:
            raise InvalidProblem(f"cost_bound is {shown(cost_bound)}; it must be a number, one for each cost, or None")
        return np.ones(len(names))
    entries = entries_of(cost_bound, "cost_bound") if is_listing(cost_bound) else [cost_bound] * len(names)
    if len(entries) != len(names):
        raise InvalidProblem(
            f"cost_bound has {len(entries)} entries; it needs one number for all, or one for each of {', '.join(names)}"
        )
    return np.array([math.inf if entry is None else positive(entry, "cost_bound") for entry in entries])


def ceilings_of(thresholds: Thresholds, cost_bound: Any, lowest: float | None = None) -> Floats:
    """Return the a-priori bound on every signed mean cost; `lowest` is what costs cannot fall below.

    A limit that no mean cost could ever reach is refused: it would be switched off.
    """
    bounds = bounds_of(cost_bound, thresholds.names)
    ceilings: Floats = np.where((thresholds.signs > 0) | (lowest is None), bounds, -float(lowest or 0.0))
    if thresholds.safe is not None:
        for name, cost, bound in zip(thresholds.names, thresholds.safe, bounds, strict=True):
            if abs(cost) > bound:
                raise InvalidProblem(
                    f"the safe action's {name!r} is {cost}, beyond cost_bound {bound}; "
                    "raise cost_bound to a true bound on mean costs, or set it to None"
                )
    for name, sign, value, ceiling in zip(thresholds.names, thresholds.signs, thresholds.values, ceilings, strict=True):
        if sign * value >= ceiling:
            side, end = ("at most", ceiling) if sign > 0 else ("at least", 0.0 - ceiling)
            share = percent(value) if end == 1.0 else ""
            raise InvalidProblem(
                f"the threshold of {name!r} is {value:g}, and its means are taken to be {side} {end:g}, so it could "
                f"never bind{share}; where means can go beyond it, give a cost_bound that says so"
            )
    return ceilings


def span_of(cost_bound: Any, ceilings: Floats, bounds: Floats) -> float:
    """Return how long an action may be where `cost_bound` was left at its default: S ‖x‖ ≤ 1 for every cost."""
    if not isinstance(cost_bound, str):
        return math.inf
    return float(np.min(ceilings / bounds, initial=math.inf)) * (1.0 + ROUNDING)


def beyond(what: str, size: float, allowed: float) -> str:
    """Return what is said of an action whose mean cost may be beyond the default bound."""
    return (
        f"{what} has norm {size:.6g}, and by the bound declared on parameters costs of norm {allowed:.6g} or more can "
        "exceed 1, which cost_bound is when left out; give cost_bound: a true bound on mean costs, or None for none"
    )


def longest(features: Floats) -> float:
    """Return the largest norm of the rows."""
    return math.sqrt(float(np.vecdot(features, features).max()))
