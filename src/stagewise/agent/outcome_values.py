"""Parsing of outcomes: which signals are given, and the values that are learned."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stagewise.policies.base_policy import BasePolicy
from stagewise.problem.checks import LARGEST, check_outcome
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.formatting import safe_repr, suggest_name


class Absent:
    """The type of a value that was not given; None is a value."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = Absent()


def parse_values(
    policy: BasePolicy, names: Sequence[str], reward: Any, cost: Any, signals: Mapping[str, Any]
) -> tuple[list[float], list[int]]:
    """Return the values (1 + m) that are learned, NaN for those not given, and the indices of those given; or raise."""
    complete, given = policy.placeholder_values, []  # valid placeholders for the missing ones
    for name, value in signals.items():
        if name not in names:
            raise InvalidOutcome(
                ErrorCode.UNKNOWN_SIGNAL,
                "the outcome names {name}; the signals are {names}{name_2}",
                name=safe_repr(name),
                names=", ".join(names),
                name_2=suggest_name(name, names),
            )
        index = names.index(name)
        if (cost if index else reward) is not ABSENT:
            raise InvalidOutcome(
                ErrorCode.DUPLICATE_NAME,
                "{name!r} is given twice, by name and as {argument}; give it once",
                name=name,
                argument="cost" if index else "reward",
            )
        complete[index] = parse_value(value, name)
        given.append(index)
    if isinstance(reward, Mapping):
        raise InvalidOutcome(
            ErrorCode.WRONG_TYPE,
            "the reward is {reward}; give the signals by name, as learn(id, {names}=...), or **outcome",
            reward=safe_repr(reward),
            names=names[0],
        )
    if reward is not ABSENT:
        complete[0] = check_outcome(reward, "the reward")
        given.append(0)
    if cost is not ABSENT:
        given.extend(range(1, len(names)))
    if not given:
        raise InvalidOutcome(
            ErrorCode.OUTCOME_MISSING, "no outcome is given; give at least one of {names}", names=", ".join(names)
        )
    encoded = policy.values(complete[0], complete[1:] if cost is ABSENT else cost).tolist()
    values = [math.nan] * len(names)
    for index in given:
        values[index] = encoded[index]
    return values, given


def parse_value(value: Any, name: str) -> float:
    """Return a valid outcome value; floats take the fast path."""
    return value if type(value) is float and abs(value) < LARGEST else check_outcome(value, f"the {name!r}")


def check_action(decision: Any, played: Any) -> None:
    """Raise if a decision is not the one that was played."""
    if decision.action is not played.action and not np.array_equal(decision.action, played.action):
        raise InvalidOutcome(
            ErrorCode.UNKNOWN_DECISION,
            "the decision of round {round} is not the one this agent made; the agent played another action",
            round=decision.round,
        )
