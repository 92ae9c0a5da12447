"""The same policy, or the same problem, under other limits: all that a sweep changes of it."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from stagewise.policies.problem import Problem
from stagewise.problem.checks import is_listing, kept, mapping_of, number, shown
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.given_thresholds import given_as_list
from stagewise.problem.naming import listing
from stagewise.problem.thresholds import AtLeast, taken_apart
from stagewise.problem.words import nearest

Named = tuple[tuple[str, Any], ...]  # limits by name


def limit_of(value: Any, what: str = "thresholds") -> Any:
    """Return one threshold: a number, or one of the special kinds of a number."""
    number(taken_apart(value).number, f"an entry of {what}")
    return kept(value)


def lists_of(limits: Any) -> dict[str, list[Any]]:
    """Return the limits that a sweep goes through, by name."""
    if not isinstance(limits, Mapping) or not limits:
        raise InvalidProblem(
            f"limits is {shown(limits)}; it must map names of limits to lists of numbers, as "
            "{'opt_out': [0.01, 0.015, 0.02]}"
        )
    found = {}
    for name, values in mapping_of(limits, "limits").items():
        if not isinstance(name, str) or not is_listing(values):
            raise InvalidProblem(f"limits has {shown(name)}: {shown(values)}; each name needs a list of numbers")
        found[name] = [limit_of(value, f"limits of {name!r}") for value in values]
    return found


def under_threshold(policy: Any, threshold: Any) -> Any:
    """Return the policy under another threshold."""
    return policy if threshold is None else dataclasses.replace(settable(policy, "thresholds"), threshold=threshold)


def under_limits(policy: Any, limits: Named) -> Any:
    """Return the policy or problem with other limits of these names; those from below stay from below."""
    if not limits:
        return policy
    if isinstance(policy, Problem):
        own = dict(policy.limits)
        for name, value in limits:
            limit = own[known(name, tuple(own))]
            own[name] = dataclasses.replace(limit, value=turned(limit.value, value))
        return dataclasses.replace(policy, limits=own)
    given, names = given_as_list(settable(policy, "limits").threshold)
    for name, value in limits:
        place = names.index(known(name, names))
        given[place] = turned(given[place], value)
    by_name = isinstance(policy.threshold, Mapping)
    return dataclasses.replace(policy, threshold=dict(zip(names, given, strict=True)) if by_name else given)


def settable(policy: Any, what: str) -> Any:
    """Return the policy, if it has a threshold that can be set."""
    if not dataclasses.is_dataclass(policy) or isinstance(policy, type) or not hasattr(policy, "threshold"):
        raise InvalidProblem(f"{what} is given, but {type(policy).__name__} has no threshold that could be set")
    return policy


def known(name: str, names: tuple[str, ...]) -> str:
    """Return a name that a limit has."""
    if name not in names:
        raise InvalidProblem(f"limits names {shown(name)}; the limits are {listing(names)}{nearest(name, names)}")
    return name


def turned(old: Any, new: Any) -> Any:
    """Return a new limit in the direction of the old one, unless it has its own.

    >>> turned(AtLeast(0.9), 0.8), turned(0.1, 0.2)
    (AtLeast(value=0.8), 0.2)
    """
    return AtLeast(new) if taken_apart(old).at_least and not taken_apart(new).at_least else new
