"""Rewards and limits as plain values, as TOML and JSON hold them, and as sentences do."""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from stagewise.problem.checks import mapping_of, number, shown
from stagewise.problem.declared import Limit, Reward, title
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.naming import listing
from stagewise.problem.thresholds import AtLeast, RelativeToSafe
from stagewise.problem.words import nearest, percent


def limits_of(value: Any) -> dict[str, Limit]:
    """Return limits by name."""
    if not isinstance(value, Mapping) or not value:
        raise InvalidProblem(
            f"limits are {shown(value)}; they must be a mapping from names to Limit(...), at least one"
        )
    given = mapping_of(value, "limits")
    for name, limit in given.items():
        title(name, "the name of a limit")
        if not isinstance(limit, Limit):
            raise InvalidProblem(f"the limit of {name!r} is {shown(limit)}; it must be Limit({shown(limit)}, ...)")
    return given


def scaled_limit(name: str, limit: Limit) -> Any:
    """Return a limit for outcomes scaled to [0, 1]."""
    below, relative, value = limit.parts
    if relative:
        if limit.safe is None:
            raise InvalidProblem(
                f"the limit of {name!r} is relative to the safe action, whose mean is unknown; give safe"
            )
        value = number(value, f"the factor of {name!r}") * limit.safe
    if isinstance(value, str):
        raise InvalidProblem(f"the limit of {name!r} is {shown(value)}; it must be a number: two percent are 0.02")
    exact = number(value, f"the limit of {name!r}")
    if not limit.low < exact < limit.high:
        share = percent(exact) if limit.high == 1.0 else ""
        raise InvalidProblem(
            f"the limit of {name!r} is {exact:g}, and its outcomes lie in [{limit.low:g}, {limit.high:g}], so that it "
            f"could never bind, or never hold{share}"
        )
    if limit.safe is not None and not (limit.safe > exact if below else limit.safe < exact):
        side = "above" if below else "below"
        raise InvalidProblem(
            f"the safe action's {name!r} is {limit.safe:g}, which leaves no slack against its limit, "
            f"{in_words(limit)}; learning needs a safe action strictly {side} it"
        )
    ends = (exact - limit.low) / (limit.high - limit.low)
    return AtLeast(ends) if below else ends


def in_words(limit: Limit) -> str:
    """Return a limit as a sentence holds it."""
    below, relative, value = limit.parts
    word = "at least" if below else "at most"
    if not relative:
        return f"{word} {value:g}"
    of = "the safe action's" if limit.safe is None else f"the safe action's {limit.safe:g}"
    return f"{word} {value:g} times {of}"


def of_kind(kind: Any, entry: Any, what: str) -> Any:
    """Return a Reward or a Limit from its plain settings."""
    if not isinstance(entry, Mapping):
        raise InvalidProblem(f"{what} is {shown(entry)}; it must be a table of settings")
    known = [f.name for f in fields(kind)]
    unknown = next((name for name in entry if name not in known), None)
    if unknown is not None:
        raise InvalidProblem(f"{what} has {shown(unknown)}, which is none of {listing(known)}{nearest(unknown, known)}")
    try:
        return kind(**entry)
    except TypeError:
        first = "name" if kind is Reward else "value"
        raise InvalidProblem(f"{what} lacks {first!r}") from None


def limit_from(entry: Any, name: str) -> Limit:
    """Return a limit from plain values: `at_most`, `at_least`, or times the safe action's own, `times_safe`."""
    what = f"the limit of {name!r}"
    if isinstance(entry, int | float) and not isinstance(entry, bool):
        return Limit(float(entry))
    if not isinstance(entry, Mapping):
        raise InvalidProblem(f"{what} is {shown(entry)}; it must be a number or a table of settings")
    ways: dict[str, Any] = {"at_most": None, "value": None, "at_least": AtLeast, "times_safe": RelativeToSafe}
    told = dict(entry)
    given = [way for way in ways if way in told]
    if len(given) != 1:
        others = [name for name in told if name not in ways and name not in {f.name for f in fields(Limit)}]
        meant = next((near for name in others if (near := nearest(name, list(ways)))), "")
        has = f"has {listing(given)}" if given else "says nothing of how much"
        raise InvalidProblem(f"{what} {has}; it needs one of at_most, at_least and times_safe{meant}")
    way, value = ways[given[0]], told.pop(given[0])
    limit: Limit = of_kind(Limit, {"value": value if way is None else way(value), **told}, what)
    return limit


def plain_signal(signal: Reward | Limit) -> dict[str, Any]:
    """Return the settings that were given."""
    told = {f.name: getattr(signal, f.name) for f in fields(signal)}
    return {name: value for name, value in told.items() if value is not None}


def plain_limit(limit: Limit) -> dict[str, Any]:
    """Return a limit as `limit_from` reads it."""
    told, (below, relative, value) = plain_signal(limit), limit.parts
    if below and relative:
        raise InvalidProblem(
            "a limit from below that is relative to the safe action has no plain form; give its number"
        )
    way = "at_least" if below else "times_safe" if relative else "at_most"
    del told["value"]
    return {way: value if math.isfinite(value) else None, **told}
