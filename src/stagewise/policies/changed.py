"""What differs between two problems, in words, and what to do about it."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from stagewise.problem.declared import Limit, Reward
from stagewise.problem.naming import listing
from stagewise.problem.plain_limits import in_words
from stagewise.problem.words import shown

ANEW = "what was learned does not carry over, so start a new agent and give it the log (learn_frame)"
LAUNCHED = "launched"  # how delta was shared when actions came: follows from `add_action`, and no promise of its own


def differences(ours: Any, theirs: Any) -> Iterator[tuple[str, str]]:
    """Yield what of a problem is another one in `theirs`, each with what to do."""
    yield from of_actions(list(ours.actions), list(theirs.actions))
    yield from beside_actions(ours, theirs)


def beside_actions(ours: Any, theirs: Any) -> Iterator[tuple[str, str]]:
    """Yield the same of everything but the actions."""
    if ours.safe != theirs.safe:
        yield f"safe was {ours.safe!r} and is {theirs.safe!r}", ANEW
    yield from of_settings("the range of", dict(ours.ranges), dict(theirs.ranges))
    if list(ours.context) != list(theirs.context):
        yield f"the context was {listing(ours.context)} and is {listing(theirs.context)}, in this order", ANEW
    yield from of_signal(ours.reward, theirs.reward, "the reward")
    if list(ours.limits) != list(theirs.limits):
        yield f"the limits were {listing(ours.limits)} and are {listing(theirs.limits)}, in this order", ANEW
    for name, limit in ours.limits.items():
        if name in theirs.limits:
            yield from of_signal(limit, theirs.limits[name], f"the limit of {name!r}")
    if float(ours.delta) != float(theirs.delta):
        yield f"delta was {ours.delta:g} and is {theirs.delta:g}", ANEW
    ones, others = ({n: v for n, v in p.settings.items() if n != LAUNCHED} for p in (ours, theirs))
    yield from of_settings("the setting", ones, others)


def of_actions(ours: list[str], theirs: list[str]) -> Iterator[tuple[str, str]]:
    """Yield whether there are other actions, or the same in another order."""
    if ours == theirs:
        return
    if theirs[: len(ours)] == ours:
        new = theirs[len(ours) :]
        calls = " and ".join(f"agent.add_action({name!r})" for name in new[:3])
        yield f"the actions {listing(new)} are new", f"load it without the problem, and call {calls}"
    elif sorted(ours) == sorted(theirs):
        yield f"the actions stand in another order, {listing(theirs)}", f"keep theirs: {listing(ours)}"
    elif gone := [name for name in ours if name not in theirs]:
        yield (
            f"it has {listing(gone)}, which the problem given lacks",
            "keep the action in the problem, and leave it out of `only` where it is retired",
        )
    else:
        yield f"the actions were {listing(ours)} and are {listing(theirs)}", "let new ones stand at the end"


def of_settings(what: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what has another value; what stands in one of them only has none in the other."""
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        one, other = ours.get(name), theirs.get(name)
        if name in ours and name in theirs and one != other:
            yield f"{what} {name!r} was {shown(one)} and is {shown(other)}", ANEW
        elif what == "the setting" and (name in ours) != (name in theirs):
            told = f"was {shown(one)} and is left out" if name in ours else f"was left out and is {shown(other)}"
            yield f"{what} {name!r} {told}", ANEW


def of_signal(ours: Reward | Limit, theirs: Reward | Limit, what: str) -> Iterator[tuple[str, str]]:
    """Yield what is declared otherwise of a signal."""
    for setting in fields(ours):
        one, other = getattr(ours, setting.name), getattr(theirs, setting.name)
        if one != other and isinstance(ours, Limit) and isinstance(theirs, Limit) and setting.name == "value":
            yield f"{what} was {in_words(ours)} and is {in_words(theirs)}", ANEW
        elif one != other:
            yield f"{setting.name} of {what} was {shown(one)} and is {shown(other)}", ANEW


def extends(more: Any, fewer: Any) -> bool:
    """Say whether a problem is another one with actions added at the end, or the same."""
    added = list(more.actions)[: len(fewer.actions)] == list(fewer.actions)
    return added and not any(beside_actions(fewer, more))
