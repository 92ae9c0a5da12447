"""The setting `cost_bound`, an upper bound on mean costs, and its checks."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.problem.checks import check_positive, is_listing, list_entries, order_by_name
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import safe_repr, suggest_percent
from stagewise.problem.thresholds import Thresholds

CostBound = float | Sequence[float | None] | Mapping[str, float | None] | Floats | Literal["unit"] | None
UNIT: Literal["unit"] = "unit"  # the default: 1, checked against the other settings; a number is not checked
ROUNDING = 1e-9


def parse_cost_bounds(cost_bound: Any, names: tuple[str, ...]) -> Floats:
    """Return one bound for each cost, infinite where none is given.

    >>> parse_cost_bounds({"a": 2, "b": None}, ("a", "b"))
    array([ 2., inf])
    """
    if isinstance(cost_bound, Mapping):
        cost_bound = order_by_name(cost_bound, names, "cost_bound")
    if isinstance(cost_bound, str):
        if cost_bound != UNIT:
            raise InvalidProblem(
                ErrorCode.WRONG_TYPE,
                "cost_bound is {cost_bound}; it must be a number, one for each cost, or None",
                cost_bound=safe_repr(cost_bound),
            )
        return np.ones(len(names))
    entries = list_entries(cost_bound, "cost_bound") if is_listing(cost_bound) else [cost_bound] * len(names)
    if len(entries) != len(names):
        raise InvalidProblem(
            ErrorCode.WRONG_SHAPE,
            "cost_bound has {entries_count} entries; it needs one number for all, or one for each of {names}",
            entries_count=len(entries),
            names=", ".join(names),
        )
    return np.array([math.inf if entry is None else check_positive(entry, "cost_bound") for entry in entries])


def compute_ceilings(thresholds: Thresholds, cost_bound: Any, lowest: float | None = None) -> Floats:
    """Return the a-priori bound on every signed mean cost; `lowest` is a lower bound on costs.

    Raises InvalidProblem for a limit that no mean cost can reach, since it would never bind.
    """
    bounds = parse_cost_bounds(cost_bound, thresholds.names)
    ceilings: Floats = np.where((thresholds.signs > 0) | (lowest is None), bounds, -float(lowest or 0.0))
    if thresholds.safe is not None:
        for name, cost, bound in zip(thresholds.names, thresholds.safe, bounds, strict=True):
            if abs(cost) > bound:
                raise InvalidProblem(
                    ErrorCode.BOUND_EXCEEDED,
                    "the safe action's {name!r} is {cost}, beyond cost_bound {bound}; set cost_bound to a "
                    "true bound on mean costs, or to None",
                    name=name,
                    cost=cost,
                    bound=bound,
                )
    for name, sign, value, ceiling in zip(thresholds.names, thresholds.signs, thresholds.values, ceilings, strict=True):
        if sign * value >= ceiling:
            side, end = ("at most", ceiling) if sign > 0 else ("at least", 0.0 - ceiling)
            share = suggest_percent(value) if end == 1.0 else ""
            raise InvalidProblem(
                ErrorCode.LIMIT_NEVER_BINDS,
                "the threshold of {name!r} is {value:g}, and its means are {side} {end:g}, so it never "
                "binds{share}; if means can go beyond that value, declare it with cost_bound",
                name=name,
                value=value,
                side=side,
                end=end,
                share=share,
            )
    return ceilings


def compute_max_action_norm(cost_bound: Any, ceilings: Floats, bounds: Floats) -> float:
    """Return the largest norm of an action under the default `cost_bound`: S ‖x‖ ≤ 1 for every cost."""
    if not isinstance(cost_bound, str):
        return math.inf
    return float(np.min(ceilings / bounds, initial=math.inf)) * (1.0 + ROUNDING)


def describe_norm_excess(what: str, size: float, allowed: float) -> str:
    """Return the message for an action whose mean cost can exceed the default bound."""
    return (
        f"{what} has norm {size:.6g}, and by the bound declared on parameters costs of norm {allowed:.6g} or more can "
        "exceed 1, which cost_bound is when left out; give cost_bound: a true bound on mean costs, or None for none"
    )


def compute_max_row_norm(features: Floats) -> float:
    """Return the largest norm of the rows."""
    return math.sqrt(float(np.vecdot(features, features).max()))
