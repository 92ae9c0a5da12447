"""Policies as JSON values, and the differences between two problems and what to do about each."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from stagewise import _exported, _find_exported
from stagewise.policies.policy import BasePolicy
from stagewise.policies.problem import Problem
from stagewise.policies.problem_policy import ProblemPolicy
from stagewise.problem.context_columns import Boolean, Category, Date, Number
from stagewise.problem.division import RiskScore
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import join_names, safe_repr
from stagewise.problem.functions import FiniteFunctionClass
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.signals import Limit, Reward, describe_limit
from stagewise.problem.thresholds import AtLeast, TimesSafe

WITHIN = (
    SafeAction,
    AtLeast,
    TimesSafe,
    FiniteFunctionClass,
    Problem,
    Reward,
    Limit,
    RiskScore,
    Number,
    Boolean,
    Date,
    Category,
)  # classes that settings can contain


def get_policies() -> dict[str, Any]:
    """Return the policies that stagewise exports, by name."""
    return {name: kind for name, kind in _exported("policies").items() if issubclass(kind, BasePolicy)}


def find_kind(name: str) -> Any:
    """Return a class that a file can contain, by name; None: there is none."""
    known = {kind.__name__: kind for kind in (*WITHIN, ProblemPolicy)}
    return known.get(name) or _find_exported(name, "policies", "models")


def check_kind(value: Any) -> None:
    """Raise InvalidProblem for an object that a file cannot contain."""
    if find_kind(type(value).__name__) is not type(value):
        kinds = sorted({*get_policies(), *_exported("models"), *(kind.__name__ for kind in WITHIN)})
        text = "{kind} cannot be saved; the classes that can are {kinds}"
        raise InvalidProblem(ErrorCode.NOT_SERIALIZABLE, text, kind=type(value).__name__, kinds=", ".join(kinds))


def encode_value(value: Any) -> Any:
    """Return a value as JSON values; an object becomes its kind and its settings."""
    if isinstance(value, FiniteFunctionClass) and value.callables:
        template = (
            "{value} cannot be saved, because a file cannot hold callables; give FiniteFunctionClass(callables, "
            "features=...), a table of their values at the actions"
        )
        raise InvalidProblem(ErrorCode.NOT_SERIALIZABLE, template, value=safe_repr(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        check_kind(value)
        names = getattr(value, "SAVED", None) or [f.name for f in dataclasses.fields(value) if f.init]
        settings = {name: encode_value(getattr(value, name)) for name in names}
        return {"kind": type(value).__name__, "settings": settings}
    if isinstance(value, Mapping):
        return {"mapping": {name: encode_value(entry) for name, entry in value.items()}}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [encode_value(entry) for entry in value]
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    return float(value)  # an exact number, such as a Fraction


def decode_value(value: Any) -> Any:
    """Return the value that `encode_value` encoded."""
    if isinstance(value, dict) and "kind" in value:
        kind = find_kind(value["kind"])
        if kind is None:
            raise KeyError(value["kind"])
        return kind(**{name: decode_value(entry) for name, entry in value["settings"].items()})
    if isinstance(value, dict):
        return {name: decode_value(entry) for name, entry in value["mapping"].items()}
    if isinstance(value, list):
        return [decode_value(entry) for entry in value]
    return value


START_ANEW = "the learned state does not apply, so start a new agent and give it the log (learn_log_frame)"
INITIAL_ACTIONS = "initial_actions"  # set by `add_action`; not compared


def diff_problems(ours: Any, theirs: Any) -> Iterator[tuple[str, str]]:
    """Yield the differences between two problems, each with what to do."""
    yield from diff_actions(list(ours.action_names), list(theirs.action_names))
    yield from diff_except_actions(ours, theirs)


def diff_except_actions(ours: Any, theirs: Any) -> Iterator[tuple[str, str]]:
    """Yield the differences in everything but the actions."""
    if ours.safe_name != theirs.safe_name:
        yield f"safe_name was {ours.safe_name!r} and is {theirs.safe_name!r}", START_ANEW
    yield from diff_context(ours.to_dict()["context"], theirs.to_dict()["context"])
    if list(ours.context) != list(theirs.context):
        yield (
            f"the context was {join_names(ours.context)} and is {join_names(theirs.context)}, in this order",
            START_ANEW,
        )
    yield from diff_signal(ours.reward, theirs.reward, "the reward")
    if list(ours.limits) != list(theirs.limits):
        yield (
            f"the limits were {join_names(ours.limits)} and are {join_names(theirs.limits)}, in this order",
            START_ANEW,
        )
    for name, limit in ours.limits.items():
        if name in theirs.limits:
            yield from diff_signal(limit, theirs.limits[name], f"the limit of {name!r}")
    if float(ours.delta) != float(theirs.delta):
        yield f"delta was {ours.delta:g} and is {theirs.delta:g}", START_ANEW
    our_settings, their_settings = (
        {n: v for n, v in p.settings.items() if n != INITIAL_ACTIONS} for p in (ours, theirs)
    )
    yield from diff_settings("the setting", our_settings, their_settings)


def diff_actions(ours: list[str], theirs: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the differences in the actions and their order."""
    if ours == theirs:
        return
    if theirs[: len(ours)] == ours:
        new = theirs[len(ours) :]
        calls = " and ".join(f"agent.add_action({name!r})" for name in new[:3])
        yield f"the actions {join_names(new)} are new", f"load it without the problem, and call {calls}"
    elif sorted(ours) == sorted(theirs):
        yield f"the actions are in another order, {join_names(theirs)}", f"keep theirs: {join_names(ours)}"
    elif missing := [name for name in ours if name not in theirs]:
        yield (
            f"it has {join_names(missing)}, which the problem given lacks",
            "keep the action in the problem, and exclude it with `only` if it is retired",
        )
    else:
        yield f"the actions were {join_names(ours)} and are {join_names(theirs)}", "add new actions at the end"


def diff_settings(what: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the settings with different values."""
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        our_value, their_value = ours.get(name), theirs.get(name)
        if name in ours and name in theirs and our_value != their_value:
            yield f"{what} {name!r} was {safe_repr(our_value)} and is {safe_repr(their_value)}", START_ANEW
        elif what == "the setting" and (name in ours) != (name in theirs):
            change = (
                f"was {safe_repr(our_value)} and is left out"
                if name in ours
                else f"was left out and is {safe_repr(their_value)}"
            )
            yield f"{what} {name!r} {change}", START_ANEW


def diff_context(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the columns of a context that are declared otherwise, by their settings where they have the same type."""
    for name in [name for name in ours if name in theirs and ours[name] != theirs[name]]:
        one, other = ours[name], theirs[name]
        settings = {} if isinstance(one, list) or isinstance(other, list) else {**one, **other}
        if not settings or one["type"] != other["type"]:
            yield f"the column {name!r} was {safe_repr(one)} and is {safe_repr(other)}", START_ANEW
            continue
        for setting in settings:
            before, after = one.get(setting), other.get(setting)
            if before != after:
                yield f"{setting} of {name!r} was {safe_repr(before)} and is {safe_repr(after)}", START_ANEW


def diff_signal(ours: Reward | Limit, theirs: Reward | Limit, what: str) -> Iterator[tuple[str, str]]:
    """Yield the differences in the declaration of a signal."""
    for setting in fields(ours):
        our_value, their_value = getattr(ours, setting.name), getattr(theirs, setting.name)
        if (
            our_value != their_value
            and isinstance(ours, Limit)
            and isinstance(theirs, Limit)
            and setting.name == "value"
        ):
            yield f"{what} was {describe_limit(ours)} and is {describe_limit(theirs)}", START_ANEW
        elif our_value != their_value:
            yield f"{setting.name} of {what} was {safe_repr(our_value)} and is {safe_repr(their_value)}", START_ANEW


def is_extension(more: Any, fewer: Any) -> bool:
    """Return whether a problem equals another one, possibly with actions added at the end."""
    added = list(more.action_names)[: len(fewer.action_names)] == list(fewer.action_names)
    return added and not any(diff_except_actions(fewer, more))
