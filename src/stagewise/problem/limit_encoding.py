"""Encode rewards and limits as JSON or TOML values, parse them, and describe limits."""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from stagewise.problem.checks import check_mapping, check_number, safe_repr
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import join_names, suggest_name, suggest_percent
from stagewise.problem.signals import Limit, Reward, check_name
from stagewise.problem.thresholds import AtLeast, RelativeToSafe


def check_limits(value: Any) -> dict[str, Limit]:
    """Return limits by name."""
    if not isinstance(value, Mapping) or not value:
        raise InvalidProblem(
            ErrorCode.WRONG_TYPE,
            "limits is {value}; it must be a mapping from names to Limit(...), with at least one limit",
            value=safe_repr(value),
        )
    limits = check_mapping(value, "limits")
    for name, limit in limits.items():
        check_name(name, "the name of a limit")
        if not isinstance(limit, Limit):
            raise InvalidProblem(
                ErrorCode.WRONG_TYPE,
                "the limit of {name!r} is {limit}; it must be Limit({limit}, ...)",
                name=name,
                limit=safe_repr(limit),
            )
    return limits


def scale_limit(name: str, limit: Limit) -> Any:
    """Return a limit for outcomes scaled to [0, 1]."""
    below, relative, value = limit.parts
    if relative:
        if limit.safe is None:
            raise InvalidProblem(
                ErrorCode.SAFE_COST_UNKNOWN,
                "the limit of {name!r} is relative to the safe action, whose mean is unknown; give the mean as safe",
                name=name,
            )
        value = check_number(value, f"the factor of {name!r}") * limit.safe
    if isinstance(value, str):
        raise InvalidProblem(
            ErrorCode.WRONG_TYPE,
            "the limit of {name!r} is {value}; it must be a number, with two percent written as 0.02",
            name=name,
            value=safe_repr(value),
        )
    exact = check_number(value, f"the limit of {name!r}")
    if not limit.low < exact < limit.high:
        share = suggest_percent(exact) if limit.high == 1.0 else ""
        raise InvalidProblem(
            ErrorCode.LIMIT_NEVER_BINDS,
            "the limit of {name!r} is {exact:g} and its outcomes lie in [{low:g}, {high:g}], so the "
            "limit never binds or never holds{share}",
            name=name,
            exact=exact,
            low=limit.low,
            high=limit.high,
            share=share,
        )
    if limit.safe is not None and not (limit.safe > exact if below else limit.safe < exact):
        side = "above" if below else "below"
        raise InvalidProblem(
            ErrorCode.SAFE_ACTION_OVER_LIMIT,
            "the safe action's {name!r} is {safe:g}, and its limit is {limit}; the safe action must "
            "be strictly {side} the limit, since learning needs slack",
            name=name,
            safe=limit.safe,
            limit=describe_limit(limit),
            side=side,
        )
    ends = (exact - limit.low) / (limit.high - limit.low)
    return AtLeast(ends) if below else ends


def describe_limit(limit: Limit) -> str:
    """Return a limit as text."""
    below, relative, value = limit.parts
    word = "at least" if below else "at most"
    if not relative:
        return f"{word} {value:g}"
    of = "the safe action's" if limit.safe is None else f"the safe action's {limit.safe:g}"
    return f"{word} {value:g} times {of}"


def parse_signal(kind: Any, entry: Any, what: str) -> Any:
    """Return a Reward or a Limit from a table of settings."""
    if not isinstance(entry, Mapping):
        raise InvalidProblem(
            ErrorCode.WRONG_TYPE, "{what} is {entry}; it must be a table of settings", what=what, entry=safe_repr(entry)
        )
    names = [f.name for f in fields(kind)]
    unknown = next((name for name in entry if name not in names), None)
    if unknown is not None:
        raise InvalidProblem(
            ErrorCode.UNKNOWN_SETTING,
            "{what} has {unknown}, which is not one of {names}{unknown_2}",
            what=what,
            unknown=safe_repr(unknown),
            names=join_names(names),
            unknown_2=suggest_name(unknown, names),
        )
    try:
        return kind(**entry)
    except TypeError:
        first = "name" if kind is Reward else "value"
        raise InvalidProblem(ErrorCode.MISSING_VALUE, "{what} lacks {first!r}", what=what, first=first) from None


def parse_limit(entry: Any, name: str) -> Limit:
    """Return a limit from a number or a table with `at_most`, `at_least` or `times_safe`."""
    what = f"the limit of {name!r}"
    if isinstance(entry, int | float) and not isinstance(entry, bool):
        return Limit(float(entry))
    if not isinstance(entry, Mapping):
        raise InvalidProblem(
            ErrorCode.WRONG_TYPE,
            "{what} is {entry}; it must be a number or a table of settings",
            what=what,
            entry=safe_repr(entry),
        )
    ways: dict[str, Any] = {"at_most": None, "value": None, "at_least": AtLeast, "times_safe": RelativeToSafe}
    settings = dict(entry)
    chosen = [wrap for wrap in ways if wrap in settings]
    if len(chosen) != 1:
        others = [name for name in settings if name not in ways and name not in {f.name for f in fields(Limit)}]
        hint = next((match for name in others if (match := suggest_name(name, list(ways)))), "")
        has = f"has {join_names(chosen)}" if chosen else "has no number"
        raise InvalidProblem(
            ErrorCode.CONFLICTING_SETTINGS,
            "{what} {has}; it needs one of at_most, at_least and times_safe{hint}",
            what=what,
            has=has,
            hint=hint,
        )
    wrap, value = ways[chosen[0]], settings.pop(chosen[0])
    limit: Limit = parse_signal(Limit, {"value": value if wrap is None else wrap(value), **settings}, what)
    return limit


def encode_signal(signal: Reward | Limit) -> dict[str, Any]:
    """Return the settings that are not None."""
    settings = {f.name: getattr(signal, f.name) for f in fields(signal)}
    return {name: value for name, value in settings.items() if value is not None}


def encode_limit(limit: Limit) -> dict[str, Any]:
    """Return a limit as `parse_limit` reads it."""
    settings, (below, relative, value) = encode_signal(limit), limit.parts
    if below and relative:
        raise InvalidProblem(
            ErrorCode.NOT_SERIALIZABLE,
            "a lower limit relative to the safe action cannot be written to a file; give the limit as a number",
        )
    way = "at_least" if below else "times_safe" if relative else "at_most"
    del settings["value"]
    return {way: value if math.isfinite(value) else None, **settings}
