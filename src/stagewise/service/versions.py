"""Versions of a problem: what may change while the log goes on, and what may not.

Every confidence set is declared before its data and holds for all rounds at once, whatever the limits are and whatever
is offered. So limits may move and actions may come and go, and the whole log is still learned from. What the sets
themselves are made of (δ, ranges, models, windows, what is declared of the safe action) cannot be chosen after looking.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

import msgspec

from stagewise.policies.problem import Problem
from stagewise.problem.declared import Limit
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.plain_limits import in_words, plain_limit, plain_signal
from stagewise.service.bands import own_value
from stagewise.service.records import Event

AFTER_LOOKING = (
    "the log was learned by the first one, and what is chosen after seeing outcomes voids the guarantee; open a new "
    "experiment for it"
)


OURS = ("launched", "expected")  # settings that a version has from the ones before it


class Version(NamedTuple):
    """A problem as a desk plays it: with the actions of all versions so far, some of them retired."""

    number: int
    problem: Problem
    retired: frozenset[str]


def first(problem: Problem) -> Version:
    """Return the first version."""
    return Version(1, problem, frozenset())


def begun(before: Version | None, event: Event) -> Version:
    """Return the version that a problem's row begins; None: it is the first one."""
    wanted = Problem.from_plain(msgspec.json.decode(event.body)["problem"])
    return first(wanted) if before is None else following(before, wanted)


def following(before: Version, wanted: Problem) -> Version:
    """Return the next version, or say what of it cannot be changed."""
    ours, wanted = before.problem, in_order_of(before.problem, wanted)
    compared: tuple[tuple[str, Any, Any], ...] = (
        ("safe", ours.safe, wanted.safe),
        ("delta", ours.delta, wanted.delta),
        ("context", ours.ranges, wanted.ranges),
        ("reward", plain_signal(ours.reward), plain_signal(wanted.reward)),
        ("the limits' names", tuple(ours.limits), tuple(wanted.limits)),
    )
    for what, old, new in compared:
        if old != new:
            raise InvalidProblem(f"{what} cannot change from {old!r} to {new!r}: {AFTER_LOOKING}"[:390])
    for name, limit in ours.limits.items():
        check_limit(name, limit, wanted.limits[name])
    settings = kept_settings(ours)
    check_settings(settings, wanted.settings)
    more = [name for name in wanted.actions if name not in ours.actions]
    problem = replace(ours, actions=[*ours.actions, *more], limits=dict(wanted.limits), settings=settings)
    return Version(before.number + 1, problem, frozenset(ours.actions) - frozenset(wanted.actions))


def kept_settings(ours: Problem) -> dict[str, Any]:
    """Return the settings of every later version: whatever sets are made of stays as it was at first.

    A limit that no expected rate is declared for has sets around its own value; so has every later version of it.
    """
    declared = ours.settings.get("expected") or {}
    return {
        **ours.settings,
        "launched": ours.settings.get("launched", len(ours.actions)),
        "expected": {name: declared.get(name, own_value(limit)) for name, limit in ours.limits.items()},
    }


def check_settings(kept: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    """Refuse settings that are not those of the first version; what versions add by themselves may be left out."""
    expected = told.get("expected") or {}
    same = {
        "launched": told.get("launched", kept["launched"]) == kept["launched"],
        "expected": all(kept["expected"].get(name) == value for name, value in expected.items()),
    }
    for name in OURS:
        if not same[name]:
            raise InvalidProblem(
                f"settings.{name} cannot change from {kept[name]!r} to {told[name]!r}: {AFTER_LOOKING}"[:390]
            )
    before, after = ({name: value for name, value in one.items() if name not in OURS} for one in (kept, told))
    if before != after:
        raise InvalidProblem(f"settings cannot change from {before!r} to {after!r}: {AFTER_LOOKING}"[:390])


def loosened(before: Version, after: Version) -> str | None:
    """Return what a version allows that the one before it does not, in words; None: nothing.

    >>> problem = {"actions": ["a", "b"], "safe": "a", "reward": {"name": "r"}, "limits": {"c": {"at_most": 0.1}}}
    >>> looser = {**problem, "limits": {"c": {"at_most": 0.2}}}
    >>> one = first(Problem.from_plain(problem))
    >>> loosened(one, following(one, Problem.from_plain(looser)))
    "'c' at most 0.2 where it is at most 0.1"
    """
    for name, old in before.problem.limits.items():
        new = after.problem.limits[name]
        if own_value(new) < own_value(old) if old.at_least else own_value(new) > own_value(old):
            return f"{name!r} {in_words(new)} where it is {in_words(old)}"
    added = [name for name in said(after)["actions"] if name not in said(before)["actions"]]
    return f"the action {added[0]!r}, which is not on offer" if added else None


def in_order_of(ours: Problem, wanted: Problem) -> Problem:
    """Return a problem with its names in the order of an earlier one: what comes as JSON has them in any."""
    ranges, limits = dict(wanted.ranges), dict(wanted.limits)
    if ranges.keys() == set(ours.context):
        ranges = {name: ranges[name] for name in ours.context}
    if limits.keys() == ours.limits.keys():
        limits = {name: limits[name] for name in ours.limits}
    return replace(wanted, context=ranges, limits=limits)


def said(version: Version) -> dict[str, Any]:
    """Return a version's problem as somebody would say it, and can say it again with a change."""
    plain = version.problem.plain()
    actions = [name for name in plain["actions"] if name not in version.retired]
    return {**plain, "actions": actions, "settings": {k: v for k, v in plain["settings"].items() if k not in OURS}}


def check_limit(name: str, old: Limit, new: Limit) -> None:
    """Refuse a change of anything but the limit's own value."""
    before, after = plain_limit(old), plain_limit(new)
    changed = [f.name for f in fields(Limit) if f.name != "value" and getattr(old, f.name) != getattr(new, f.name)]
    if changed:
        told = f"{before.get(changed[0])!r} to {after.get(changed[0])!r}"
        raise InvalidProblem(f"the {changed[0]} of {name!r} cannot change from {told}: {AFTER_LOOKING}")
    if old.at_least != new.at_least:
        raise InvalidProblem(f"{name!r} cannot change from {in_words(old)} to {in_words(new)}: {AFTER_LOOKING}")
