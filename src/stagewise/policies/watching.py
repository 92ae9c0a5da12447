"""Thresholds that a policy does not heed but that its runs are judged by."""

from typing import Any

from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import NO_THRESHOLDS, Thresholds, resolved


def watched(threshold: Any, safe_action: SafeAction | None) -> Thresholds:
    """Return thresholds that a policy does not heed but that its runs can be judged by."""
    if safe_action is not None and not isinstance(safe_action, SafeAction):
        raise InvalidProblem(f"safe_action is {shown(safe_action)}; it must be a SafeAction, or None")
    return NO_THRESHOLDS if threshold is None else resolved(threshold, safe_action or SafeAction(arm=0))
