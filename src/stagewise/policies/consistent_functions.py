"""Select the functions of each class that are consistent with the safe action's declared values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.functions import FunctionClass
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Thresholds

EQUAL = 1e-9  # relative tolerance between a function and the declared value at the safe action


@dataclass(frozen=True, kw_only=True, eq=False)
class ConsistentFunctions:
    """The functions of the reward and of every cost that are consistent with the safe action; costs are signed."""

    classes: tuple[FunctionClass, ...]  # one for each signal
    kept: tuple[Ints, ...]  # the indices of the consistent functions of each
    signs: Floats  # (F,) of all functions, one signal after another
    safe: Floats  # (F,) their values at the safe action
    table: Floats | None  # (F, K) over arms; None: of features

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of functions of each signal."""
        return tuple(len(kept) for kept in self.kept)

    def at(self, actions: Any) -> Floats:
        """Return the value (F, n) of every function at arms (n,) or features (n, d)."""
        if self.table is not None:
            return self.table[:, actions]
        parts = [c.evaluate(actions)[kept] for c, kept in zip(self.classes, self.kept, strict=True)]
        return self.signs[:, None] * np.concatenate(parts)


def select_consistent_functions(
    reward_class: FunctionClass, cost_class: Any, safe: SafeAction, thresholds: Thresholds
) -> ConsistentFunctions:
    """Return the functions that are consistent with the safe action; raise InvalidProblem where a class has none."""
    costs = list(cost_class.values()) if isinstance(cost_class, Mapping) else cost_class
    classes = (reward_class, *(costs if isinstance(costs, list) else [costs] * thresholds.values.size))
    arms = check_same_domain(classes, safe)
    names = ("reward", *thresholds.names)
    declared = [safe.reward, *([None] * thresholds.values.size if thresholds.safe is None else thresholds.safe)]
    kept, at_safe = [], []
    for signal, (name, each) in enumerate(zip(names, classes, strict=True)):
        values = each.functions[:, safe.arm] if arms else each.evaluate(safe.features[None], InvalidProblem)[:, 0]
        left = np.ones(len(each), dtype=np.bool_)
        if declared[signal] is not None:
            left = np.abs(values - declared[signal]) <= EQUAL * max(1.0, abs(declared[signal]))
            check_any_left(left, name, f"is {declared[signal]:g} at the safe action", values)
            values = np.full(len(each), float(declared[signal]))
        elif signal:
            left = thresholds.signs[signal - 1] * values < thresholds.limits[signal - 1]
            check_any_left(left, name, "keeps the safe action strictly within its threshold", values)
        kept.append(np.flatnonzero(left))
        at_safe.append(values[left])
    signs = np.repeat(np.append(1.0, thresholds.signs), [len(rows) for rows in kept])
    safe_values = signs * np.concatenate(at_safe)
    table = None
    if arms:
        table = signs[:, None] * np.concatenate([c.functions[rows] for c, rows in zip(classes, kept, strict=True)])
        table[:, safe.arm] = safe_values
    return ConsistentFunctions(classes=classes, kept=tuple(kept), signs=signs, safe=safe_values, table=table)


def check_same_domain(classes: tuple[FunctionClass, ...], safe: SafeAction) -> int | None:
    """Return the number of arms of all classes, or None where all are functions of features."""
    arms = {each.arms for each in classes}
    if len(arms) > 1:
        raise InvalidProblem(
            ErrorCode.CONFLICTING_SETTINGS,
            "the classes are {repr}; all must be functions of the same arms, or all of features",
            repr=", ".join(map(repr, classes)),
        )
    (count,) = arms
    if count is None and safe.features is None:
        raise InvalidProblem(
            ErrorCode.SAFE_ACTION_INVALID,
            "the safe action is an arm, and the classes hold functions of features; give the safe action's features",
        )
    if count is not None and (safe.arm is None or safe.arm >= count):
        raise InvalidProblem(
            ErrorCode.SAFE_ACTION_INVALID,
            "the classes hold functions of {count} arms; the safe action must be SafeAction(arm=...), one of them",
            count=count,
        )
    return count


def check_any_left(left: Any, name: str, what: str, values: Floats) -> None:
    """Raise InvalidProblem where no function of a class is consistent."""
    if not np.any(left):
        raise InvalidProblem(
            ErrorCode.SAFE_ACTION_INVALID,
            "no function of the class of {name!r} {what}, and their values there lie in [{values:g}, "
            "{values_2:g}]; the class must contain the true function",
            name=name,
            what=what,
            values=values.min(),
            values_2=values.max(),
        )
