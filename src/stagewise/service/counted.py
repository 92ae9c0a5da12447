"""What is counted of a decision's row: what was served, what was feared, what the policy would have served."""

from collections.abc import Iterator
from typing import Any

import msgspec

from stagewise.policies.problem import Problem

SLIGHT = 1e-9  # beyond its limit by less than this share of it is rounding

Feared = dict[str, dict[str, float | None]]
"""By limit `dearest` and `threshold`; a bound that is not finite is null in JSON."""


class Wanted(msgspec.Struct):
    """What is read of what was asked for."""

    deferred: bool = False


class Choice(msgspec.Struct):
    """What the policy would have served, where something else was."""

    action: str
    probabilities: dict[str, float] = {}
    limits: Feared = {}


class Row(Choice):
    """What is read of a decision's row."""

    mode: str = "live"
    choice: Choice | None = None
    reason: str | None = None
    details: dict[str, Any] = {}
    asked: Wanted = msgspec.field(default_factory=Wanted)


decoded = msgspec.json.Decoder(Row).decode


def beyond(value: float, threshold: float, at_most: bool) -> bool:
    """Say whether a value is on the wrong side of a limit, beyond rounding.

    >>> beyond(0.03, 0.02, at_most=True), beyond(0.02, 0.02, at_most=True), beyond(3.9, 4.0, at_most=False)
    (True, False, True)
    """
    over = value - threshold if at_most else threshold - value
    return over > SLIGHT * max(abs(threshold), SLIGHT)


def unsettled(row: Choice, name: str, problem: Problem | None) -> bool:
    """Say whether a bound is beyond its limit because the safe action's own cost is being learned.

    That is so where nobody declared it: the safe action is served, and nothing else, until it is known well enough.
    """
    limit = None if problem is None else problem.limits.get(name)
    if problem is None or limit is None or limit.safe is not None or row.probabilities.get(problem.safe, 0.0) < 1.0:
        return False
    dearest, threshold = row.limits[name]["dearest"], row.limits[name]["threshold"]
    return dearest is None or threshold is None or beyond(dearest, threshold, not limit.at_least)


def fears(row: Choice, problem: Problem | None) -> Iterator[tuple[str, float]]:
    """Give for each limit what a row is feared to cost; what is unsettled is no fear of the policy's."""
    for name, kept in row.limits.items():
        if kept["dearest"] is not None and not unsettled(row, name, problem):
            yield name, kept["dearest"]


def explores(row: Row, safe: str) -> bool:
    """Say whether an action was served that is neither the safe one nor the likeliest of its draw."""
    if row.action == safe or not row.probabilities:
        return False
    return row.probabilities.get(row.action, 0.0) < max(row.probabilities.values())
