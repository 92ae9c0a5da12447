"""From classes of functions as given to the functions that may be the truth, one signal after another."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.functions import FunctionClass
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Thresholds

EQUAL = 1e-9  # how far a function may be from what is known at the safe action, relative, and still be the truth


@dataclass(frozen=True, kw_only=True, eq=False)
class Functions:
    """The functions of the reward and of every cost that fit what is known of the safe action; costs are signed."""

    classes: tuple[FunctionClass, ...]  # one for each signal
    kept: tuple[Ints, ...]  # which functions of each are left
    signs: Floats  # (F,) of all functions, one signal after another
    safe: Floats  # (F,) their values at the safe action
    table: Floats | None  # (F, K) over arms; None: of features

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many functions each signal has."""
        return tuple(len(kept) for kept in self.kept)

    def at(self, actions: Any) -> Floats:
        """Return the value (F, n) of every function at arms (n,) or features (n, d)."""
        if self.table is not None:
            return self.table[:, actions]
        parts = [c.over(actions)[kept] for c, kept in zip(self.classes, self.kept, strict=True)]
        return self.signs[:, None] * np.concatenate(parts)


def fitting(reward_class: FunctionClass, cost_class: Any, safe: SafeAction, thresholds: Thresholds) -> Functions:
    """Return the functions that fit what is known of the safe action, or refuse a class in which none does."""
    costs = list(cost_class.values()) if isinstance(cost_class, Mapping) else cost_class
    classes = (reward_class, *(costs if isinstance(costs, list) else [costs] * thresholds.values.size))
    arms = check_alike(classes, safe)
    names = ("reward", *thresholds.names)
    known = [safe.reward, *([None] * thresholds.values.size if thresholds.safe is None else thresholds.safe)]
    kept, at_safe = [], []
    for signal, (name, each) in enumerate(zip(names, classes, strict=True)):
        place = each.functions[:, safe.arm] if arms else each.over(safe.features[None], InvalidProblem)[:, 0]
        left = np.ones(len(each), dtype=np.bool_)
        if known[signal] is not None:
            left = np.abs(place - known[signal]) <= EQUAL * max(1.0, abs(known[signal]))
            check_left(left, name, f"is {known[signal]:g} at the safe action", place)
            place = np.full(len(each), float(known[signal]))
        elif signal:
            left = thresholds.signs[signal - 1] * place < thresholds.limits[signal - 1]
            check_left(left, name, "keeps the safe action strictly within its threshold", place)
        kept.append(np.flatnonzero(left))
        at_safe.append(place[left])
    signs = np.repeat(np.append(1.0, thresholds.signs), [len(rows) for rows in kept])
    safe_values = signs * np.concatenate(at_safe)
    table = None
    if arms:
        table = signs[:, None] * np.concatenate([c.functions[rows] for c, rows in zip(classes, kept, strict=True)])
        table[:, safe.arm] = safe_values
    return Functions(classes=classes, kept=tuple(kept), signs=signs, safe=safe_values, table=table)


def check_alike(classes: tuple[FunctionClass, ...], safe: SafeAction) -> int | None:
    """Return the number of arms that all classes speak of, or None where all are functions of features."""
    arms = {each.arms for each in classes}
    if len(arms) > 1:
        raise InvalidProblem(
            f"the classes are {', '.join(map(repr, classes))}; all must speak of the same arms, or all of features"
        )
    (count,) = arms
    if count is None and safe.features is None:
        raise InvalidProblem("the safe action is an arm and the classes hold functions of features; give its features")
    if count is not None and (safe.arm is None or safe.arm >= count):
        raise InvalidProblem(
            f"the classes hold functions of {count} arms; the safe action must be SafeAction(arm=...), one of them"
        )
    return count


def check_left(left: Any, name: str, what: str, values: Floats) -> None:
    """Refuse a class that is without the truth at the safe action."""
    if not np.any(left):
        raise InvalidProblem(
            f"no function of the class of {name!r} {what}, where they have values in [{values.min():g}, "
            f"{values.max():g}]; a class that does not contain the truth there is refused"
        )
