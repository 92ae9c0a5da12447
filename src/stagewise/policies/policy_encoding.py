"""Encode policies as JSON values and decode them."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from stagewise import _exported, _find_exported
from stagewise.policies.policy import BasePolicy
from stagewise.policies.problem import Problem
from stagewise.policies.problem_policy import ProblemPolicy
from stagewise.problem.context_columns import Boolean, Category, Date, Number
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.problem.functions import FiniteFunctionClass
from stagewise.problem.risk_score import RiskScore
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.signals import Limit, Reward
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
