"""Outcomes in the user's words, whole or in parts: which signals are given, and as what they are learned."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stagewise.policies.learning import Learning
from stagewise.problem.checks import LARGEST, observed, shown
from stagewise.problem.errors import InvalidOutcome
from stagewise.problem.words import nearest


class Absent:
    """What was not given; None is a value that somebody gave."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = Absent()


def values_of(
    policy: Learning, names: Sequence[str], reward: Any, cost: Any, signals: Mapping[str, Any]
) -> tuple[list[float], list[int]]:
    """Return the values (1 + m) as they are learned from, NaN for what is not given, and which are; or refuse them."""
    whole, given = policy.blank, []  # what is not there is checked as something that it can be
    for name, value in signals.items():
        if name not in names:
            raise InvalidOutcome(
                f"the outcome names {shown(name)}; the signals are {', '.join(names)}{nearest(name, names)}"
            )
        place = names.index(name)
        if (cost if place else reward) is not ABSENT:
            raise InvalidOutcome(
                f"the {name!r} is given twice, by its name and as {'cost' if place else 'reward'}; give it once"
            )
        whole[place] = quickly(value, name)
        given.append(place)
    if isinstance(reward, Mapping):
        raise InvalidOutcome(
            f"the reward is {shown(reward)}; give the signals by name, as learn(id, {names[0]}=...), or **outcome"
        )
    if reward is not ABSENT:
        whole[0] = observed(reward, "the reward")
        given.append(0)
    if cost is not ABSENT:
        given.extend(range(1, len(names)))
    if not given:
        raise InvalidOutcome(f"no outcome is given; give at least one of {', '.join(names)}")
    seen = policy.values(whole[0], whole[1:] if cost is ABSENT else cost).tolist()
    values = [math.nan] * len(names)
    for place in given:
        values[place] = seen[place]
    return values, given


def quickly(value: Any, name: str) -> float:
    """Return an outcome that was seen, by the shortest way for what most often comes."""
    return value if type(value) is float and abs(value) < LARGEST else observed(value, f"the {name!r}")


def check_action(decision: Any, played: Any) -> None:
    """Refuse a decision that is not what was played."""
    if decision.action is not played.action and not np.array_equal(decision.action, played.action):
        raise InvalidOutcome(
            f"the decision of round {decision.round} is not the one this agent made; it played another action"
        )
