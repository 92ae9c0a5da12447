"""The safe action as a policy takes it: with features or as an arm, and filled in where its values follow."""

from typing import Any

from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidActions, InvalidProblem
from stagewise.problem.round_safe import SafeOfRound
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Thresholds


def baseline_of(value: Any) -> SafeAction:
    """Return a safe action."""
    if not isinstance(value, SafeAction):
        raise InvalidProblem(f"safe_action is {shown(value)}; it must be a SafeAction, the one action known to be safe")
    return value


def featured(value: Any) -> SafeAction:
    """Return a safe action with features."""
    safe = baseline_of(value)
    if safe.features is None:
        what = "has no features" if safe.of_the_round else "is an arm"
        raise InvalidProblem(f"the safe action {what}; this policy needs SafeAction(features=...)")
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
        what = "is no arm" if safe.of_the_round else "has features"
        raise InvalidProblem(f"the safe action {what}; a policy over arms needs SafeAction(arm=...)")
    if safe.arm >= arms:
        raise InvalidProblem(f"the safe arm is {safe.arm!r}; it must be one of the arms 0 to {arms - 1}")
    return safe


def named_safe(actions: Any, kind: str) -> SafeOfRound:
    """Return the safe action that a set names, for a policy whose own has no features."""
    of_round = getattr(actions, "safe_of_round", None)
    if not isinstance(of_round, SafeOfRound):
        raise InvalidActions(
            f"the actions name no safe action, and this {kind}'s SafeAction has no features; give "
            "Finite(features, safe=0), Rays(targets, safe=x0), or features that are the same in every round"
        )
    return of_round


def check_safe_range(safe: SafeAction, thresholds: Thresholds, way: str) -> None:
    """Refuse a safe action whose known means lie outside the range that all outcomes are promised to lie in."""
    known = {"reward": safe.reward}
    if thresholds.safe is not None:
        known |= dict(zip(thresholds.names, thresholds.safe.tolist(), strict=True))
    for name, value in known.items():
        if value is not None and not 0.0 <= value <= 1.0:
            raise InvalidProblem(
                f"the safe action's {name!r} is {value}, outside [0, 1], where all outcomes are taken to lie; {way}"
            )


def refuse_safe(listed: Any, kind: str) -> None:
    """Refuse a set that names a safe action, for a policy whose own is the same in every round."""
    if listed.safe_of_round is not None:
        raise InvalidActions(
            f"the actions name a safe action of the round, and this {kind} has one with features for all rounds; leave "
            "safe= out, or take LCLUCB, ROFUL, SafeLTS, OPLB or CAPS with SafeAction(cost=...) without features"
        )
