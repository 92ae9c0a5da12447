"""The safe action as a policy takes it: with features or as an arm, and filled in where its values follow."""

from typing import Any

from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.safe_action import SafeAction


def baseline_of(value: Any) -> SafeAction:
    """Return a safe action."""
    if not isinstance(value, SafeAction):
        raise InvalidProblem(f"safe_action is {shown(value)}; it must be a SafeAction, the one action known to be safe")
    return value


def featured(value: Any) -> SafeAction:
    """Return a safe action with features."""
    safe = baseline_of(value)
    if safe.features is None:
        raise InvalidProblem("the safe action is an arm; this policy needs SafeAction(features=...)")
    return safe


def vanishing(safe: SafeAction) -> SafeAction:
    """Return the safe action at which every reward that is possible is 0, with that reward filled in."""
    if safe.reward:
        raise InvalidProblem(
            f"the safe action is the zero vector but its reward is {safe.reward}; a linear reward is 0 there, "
            "so add a constant feature or subtract the reward of doing nothing"
        )
    return SafeAction(features=safe.features, reward=0.0, cost=safe.cost)


def armed(value: Any, arms: int) -> SafeAction:
    """Return a safe action that is one of the arms."""
    safe = baseline_of(value)
    if safe.arm is None:
        raise InvalidProblem("the safe action has features; a policy over arms needs SafeAction(arm=...)")
    if safe.arm >= arms:
        raise InvalidProblem(f"the safe arm is {safe.arm!r}; it must be one of the arms 0 to {arms - 1}")
    return safe
