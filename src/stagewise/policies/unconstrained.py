"""Base of the unconstrained policies: the thresholds that measure their violations."""

from dataclasses import dataclass, field
from functools import cached_property

from stagewise.policies.compiled_policy import CompiledPolicy
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import NO_THRESHOLDS, Threshold, Thresholds, resolve_thresholds


@dataclass(frozen=True, kw_only=True, eq=False)
class UnconstrainedPolicy(CompiledPolicy):
    """A policy that ignores limits."""

    safe_action: SafeAction | None = None
    """The safe action that a relative `threshold` refers to; the policy does not use it."""
    threshold: Threshold | None = None
    """The limits that measure the violations of its runs; the policy ignores them."""

    thresholds: Thresholds = field(init=False, repr=False, default=NO_THRESHOLDS)

    @cached_property
    def evaluation_thresholds(self) -> Thresholds:
        """The thresholds that measure its violations."""
        if self.safe_action is not None and not isinstance(self.safe_action, SafeAction):
            raise InvalidProblem(
                ErrorCode.WRONG_TYPE,
                "safe_action is {safe_action}; it must be a SafeAction, or None",
                safe_action=safe_repr(self.safe_action),
            )
        if self.safe_action is not None and self.threshold is None:
            raise InvalidProblem(
                ErrorCode.UNUSED_SETTING,
                "safe_action is {safe_action}; leave it out, since it is used only with a threshold",
                safe_action=safe_repr(self.safe_action),
            )
        safe = self.safe_action or SafeAction(arm=0)
        return NO_THRESHOLDS if self.threshold is None else resolve_thresholds(self.threshold, safe)
