"""Checks of the safe action that a policy is given."""

from typing import Any

from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.problem.safe_action import RoundSafeAction, SafeAction
from stagewise.problem.thresholds import Thresholds


def parse_safe_action(value: Any) -> SafeAction:
    """Return a safe action."""
    if not isinstance(value, SafeAction):
        raise InvalidProblem(
            ErrorCode.WRONG_TYPE,
            "safe_action is {value}; it must be a SafeAction, the one action known to be safe",
            value=safe_repr(value),
        )
    return value


def require_features(value: Any) -> SafeAction:
    """Return a safe action with features."""
    safe = parse_safe_action(value)
    if safe.features is None:
        what = "has no features" if safe.is_per_round else "is an arm"
        raise InvalidProblem(
            ErrorCode.SAFE_ACTION_INVALID,
            "the safe action {what}; this policy needs SafeAction(features=...)",
            what=what,
        )
    return safe


def fill_zero_reward(safe: SafeAction) -> SafeAction:
    """Return the safe action at the zero vector with its reward, which is 0 for every linear model."""
    if safe.reward:
        raise InvalidProblem(
            ErrorCode.SAFE_ACTION_INVALID,
            "the safe action is the zero vector but its reward is {reward}; a linear reward is 0 "
            "there, so add a constant feature or subtract the reward of doing nothing",
            reward=safe.reward,
        )
    return SafeAction(features=safe.features, reward=0.0, cost=safe.cost)


def require_arm(value: Any, arms: int) -> SafeAction:
    """Return a safe action that is one of the arms."""
    safe = parse_safe_action(value)
    if safe.arm is None:
        what = "is no arm" if safe.is_per_round else "has features"
        raise InvalidProblem(
            ErrorCode.SAFE_ACTION_INVALID,
            "the safe action {what}; a policy over arms needs SafeAction(arm=...)",
            what=what,
        )
    if safe.arm >= arms:
        raise InvalidProblem(
            ErrorCode.SAFE_ACTION_INVALID,
            "the safe arm is {arm!r}; it must be one of the arms 0 to {arms}",
            arm=safe.arm,
            arms=arms - 1,
        )
    return safe


def get_round_safe_action(actions: Any, kind: str) -> RoundSafeAction:
    """Return the safe action that an action set names, for a policy whose safe action has no features."""
    of_round = getattr(actions, "round_safe_action", None)
    if not isinstance(of_round, RoundSafeAction):
        raise InvalidActions(
            ErrorCode.SAFE_ACTION_MISSING,
            "the actions name no safe action, and the SafeAction of this {type} has no features; "
            "give FiniteSet(features, safe=0), Rays(targets, safe=x0), or features that hold for every "
            "round",
            type=kind,
        )
    return of_round


def check_safe_range(safe: SafeAction, thresholds: Thresholds, way: str) -> None:
    """Raise InvalidProblem where a declared mean of the safe action is outside [0, 1]."""
    declared = {"reward": safe.reward}
    if thresholds.safe is not None:
        declared |= dict(zip(thresholds.names, thresholds.safe.tolist(), strict=True))
    for name, value in declared.items():
        if value is not None and not 0.0 <= value <= 1.0:
            raise InvalidProblem(
                ErrorCode.OUT_OF_RANGE,
                "the safe action's {name!r} is {value}, outside [0, 1], the range of all outcomes; {way}",
                name=name,
                value=value,
                way=way,
            )


def reject_round_safe_action(listed: Any, kind: str) -> None:
    """Raise InvalidActions where a set names a safe action and the policy has one for all rounds."""
    if listed.round_safe_action is not None:
        raise InvalidActions(
            ErrorCode.CONFLICTING_SETTINGS,
            "the actions name a safe action, and this {type} has one with features for all rounds; "
            "leave safe= out, or use LCLUCB, ROFUL, SafeLTS, OPLB or CAPS with SafeAction(cost=...)",
            type=kind,
        )
