"""Policies as plain JSON values, and back: what a file can name."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from stagewise import _exported
from stagewise.policies.learning import Learning
from stagewise.policies.named_caps import NamedCAPS
from stagewise.policies.problem import Problem
from stagewise.problem.declared import Limit, Reward
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.functions import FunctionClass
from stagewise.problem.renamed import today
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import AtLeast, RelativeToSafe

WITHIN = (SafeAction, AtLeast, RelativeToSafe, FunctionClass, Problem, Reward, Limit)  # what settings may hold


def policies() -> dict[str, Any]:
    """Return the policies that stagewise exports, by name."""
    return {name: kind for name, kind in _exported("policies").items() if issubclass(kind, Learning)}


def kinds() -> dict[str, Any]:
    """Return all that a file can name."""
    return {**policies(), "NamedCAPS": NamedCAPS, **{kind.__name__: kind for kind in WITHIN}, **_exported("models")}


def check_kind(value: Any) -> None:
    """Refuse what a file cannot name."""
    if kinds().get(type(value).__name__) is not type(value):
        raise InvalidProblem(f"{type(value).__name__} cannot be saved; known are {', '.join(kinds())}")


def encoded(value: Any) -> Any:
    """Return plain JSON values; an object becomes its kind and its settings."""
    if isinstance(value, FunctionClass) and value.callables:
        raise InvalidProblem(
            f"{value!r} cannot be saved, since a file cannot hold callables; "
            "give FunctionClass(callables, features=...), a table of their values at the actions there are"
        )
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        check_kind(value)
        names = getattr(value, "SAVED", None) or [f.name for f in dataclasses.fields(value) if f.init]
        settings = {name: encoded(getattr(value, name)) for name in names}
        return {"kind": type(value).__name__, "settings": settings}
    if isinstance(value, Mapping):
        return {"mapping": {name: encoded(entry) for name, entry in value.items()}}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [encoded(entry) for entry in value]
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    return float(value)  # an exact number, such as a Fraction


def decoded(value: Any) -> Any:
    """Return what `encoded` was given."""
    if isinstance(value, dict) and "kind" in value:
        kind = kinds()[value["kind"]]
        return kind(**{name: decoded(entry) for name, entry in today(kind, value["settings"]).items()})
    if isinstance(value, dict):
        return {name: decoded(entry) for name, entry in value["mapping"].items()}
    if isinstance(value, list):
        return [decoded(entry) for entry in value]
    return value
