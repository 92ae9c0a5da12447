"""What the policies that know no limits share: thresholds that their runs are judged by."""

from dataclasses import dataclass, field
from functools import cached_property

from stagewise.policies.compiled import CompiledPolicy
from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import NO_THRESHOLDS, Threshold, Thresholds, resolved


@dataclass(frozen=True, kw_only=True, eq=False)
class WatchedPolicy(CompiledPolicy):
    """A policy that heeds no limits."""

    safe_action: SafeAction | None = None
    """The action that `threshold` refers to; it is not played for its safety."""
    threshold: Threshold | None = None
    """The limits that its runs are judged by, and that it does not heed."""

    thresholds: Thresholds = field(init=False, repr=False, default=NO_THRESHOLDS)

    @cached_property
    def watched(self) -> Thresholds:
        """The thresholds its runs are judged by."""
        if self.safe_action is not None and not isinstance(self.safe_action, SafeAction):
            raise InvalidProblem(f"safe_action is {shown(self.safe_action)}; it must be a SafeAction, or None")
        if self.safe_action is not None and self.threshold is None:
            raise InvalidProblem(
                f"safe_action is {shown(self.safe_action)}; leave it out, since only a threshold refers to it, and "
                "there is none"
            )
        safe = self.safe_action or SafeAction(arm=0)
        return NO_THRESHOLDS if self.threshold is None else resolved(self.threshold, safe)
