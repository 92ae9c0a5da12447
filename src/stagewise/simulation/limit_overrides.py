"""Policies and problems under other limits, for sweeps."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_mapping, check_number, copy_value, is_listing
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import join_names, safe_repr, suggest_name
from stagewise.problem.thresholds import AtLeast, list_thresholds, parse_threshold

NamedLimits = tuple[tuple[str, Any], ...]  # limits by name


def parse_limit(value: Any, what: str = "thresholds") -> Any:
    """Return one threshold: a number or a special kind."""
    check_number(parse_threshold(value).number, f"an entry of {what}")
    return copy_value(value)


def parse_limit_lists(limits: Any) -> dict[str, list[Any]]:
    """Return the values of limits by name."""
    if not isinstance(limits, Mapping) or not limits:
        raise InvalidProblem(
            ErrorCode.WRONG_TYPE,
            "limits is {limits}; it must map names of limits to lists of numbers, such as "
            "{{'opt_out': [0.01, 0.015, 0.02]}}",
            limits=safe_repr(limits),
        )
    found = {}
    for name, values in check_mapping(limits, "limits").items():
        if not isinstance(name, str) or not is_listing(values):
            raise InvalidProblem(
                ErrorCode.WRONG_TYPE,
                "limits has {name}: {values}; each name needs a list of numbers",
                name=safe_repr(name),
                values=safe_repr(values),
            )
        found[name] = [parse_limit(value, f"limits of {name!r}") for value in values]
    return found


def replace_threshold(policy: Any, threshold: Any) -> Any:
    """Return the policy with another threshold."""
    return (
        policy if threshold is None else dataclasses.replace(check_settable(policy, "thresholds"), threshold=threshold)
    )


def replace_limits(policy: Any, limits: NamedLimits) -> Any:
    """Return the policy or problem with other limits of these names; directions stay."""
    if not limits:
        return policy
    if isinstance(policy, Problem):
        own = dict(policy.limits)
        for name, value in limits:
            limit = own[check_limit_name(name, tuple(own))]
            own[name] = dataclasses.replace(limit, value=keep_direction(limit.value, value))
        return dataclasses.replace(policy, limits=own)
    given, names = list_thresholds(check_settable(policy, "limits").threshold)
    for name, value in limits:
        index = names.index(check_limit_name(name, names))
        given[index] = keep_direction(given[index], value)
    by_name = isinstance(policy.threshold, Mapping)
    return dataclasses.replace(policy, threshold=dict(zip(names, given, strict=True)) if by_name else given)


def check_settable(policy: Any, what: str) -> Any:
    """Return the policy if its threshold can be set."""
    if not dataclasses.is_dataclass(policy) or isinstance(policy, type) or not hasattr(policy, "threshold"):
        raise InvalidProblem(
            ErrorCode.UNUSED_SETTING,
            "{what} is given, and {name} has no threshold; leave it out",
            what=what,
            name=type(policy).__name__,
        )
    return policy


def check_limit_name(name: str, names: tuple[str, ...]) -> str:
    """Return the name if a limit has it."""
    if name not in names:
        raise InvalidProblem(
            ErrorCode.UNKNOWN_SIGNAL,
            "limits has {name}, which is not a limit; the limits are {names}{name_2}",
            name=safe_repr(name),
            names=join_names(names),
            name_2=suggest_name(name, names),
        )
    return name


def keep_direction(old: Any, new: Any) -> Any:
    """Return a new limit in the direction of the old one, unless it has its own.

    >>> keep_direction(AtLeast(0.9), 0.8), keep_direction(0.1, 0.2)
    (AtLeast(value=0.8), 0.2)
    """
    return AtLeast(new) if parse_threshold(old).at_least and not parse_threshold(new).at_least else new
