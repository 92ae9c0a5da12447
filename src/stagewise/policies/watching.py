"""Policies that heed no limits, whose runs are judged by some all the same."""

from functools import cached_property
from typing import Any

from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import NO_THRESHOLDS, Thresholds, resolved


class Unheeding:
    """What a policy without limits of its own says of those it is judged by."""

    threshold: Any
    safe_action: Any

    @cached_property
    def watched(self) -> Thresholds:
        """The thresholds its runs are judged by."""
        safe = self.safe_action
        if safe is not None and not isinstance(safe, SafeAction):
            raise InvalidProblem(f"safe_action is {shown(safe)}; it must be a SafeAction, or None")
        return NO_THRESHOLDS if self.threshold is None else resolved(self.threshold, safe or SafeAction(arm=0))
