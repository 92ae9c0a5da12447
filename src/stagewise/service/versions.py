"""Versions of a problem: what may change while the log goes on, and what may not.

Every confidence set is declared before its data and holds for all rounds at once, whatever the limits are and whatever
is offered. So limits may move and actions may come and go, and the whole log is still learned from. What the sets
themselves are made of (δ, ranges, models, windows, what is declared of the safe action) cannot be chosen after looking.
"""

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
    kept_settings = {name: value for name, value in ours.settings.items() if name not in OURS}
    told = {name: value for name, value in wanted.settings.items() if name not in OURS}
    if told != kept_settings:
        raise InvalidProblem(f"settings cannot change from {kept_settings!r} to {told!r}: {AFTER_LOOKING}"[:390])
    more = [name for name in wanted.actions if name not in ours.actions]
    settings = {
        **ours.settings,
        "launched": ours.settings.get("launched", len(ours.actions)),
        "expected": ours.settings.get("expected") or {name: own_value(limit) for name, limit in ours.limits.items()},
    }
    problem = replace(ours, actions=[*ours.actions, *more], limits=dict(wanted.limits), settings=settings)
    return Version(before.number + 1, problem, frozenset(ours.actions) - frozenset(wanted.actions))


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
