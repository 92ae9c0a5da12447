"""Outcomes in the user's words, whole or in parts: which signals are given, and as what they are learned."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.policies.learning import Learning
from stagewise.problem.checks import observed, shown
from stagewise.problem.errors import InvalidOutcome
from stagewise.problem.words import nearest


class Absent:
    """What was not given; None is a value that somebody gave."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = Absent()


def names_of(policy: Learning) -> tuple[str, ...]:
    """Return the names of all signals, the reward's first."""
    return policy.reward_name, *policy.thresholds.names


def values_of(policy: Learning, reward: Any, cost: Any, signals: Mapping[str, Any]) -> Floats:
    """Return the values (1 + m,) as they are learned from, NaN for what was not given; a bad one is refused."""
    names = names_of(policy)
    for name, value in signals.items():
        if name not in names:
            raise InvalidOutcome(
                f"the outcome names {shown(name)}; the signals are {', '.join(names)}{nearest(name, names)}"
            )
        if (name == names[0] and reward is not ABSENT) or (name in names[1:] and cost is not ABSENT):
            raise InvalidOutcome(
                f"the {name!r} is given twice, by its name and as {given_as(name, names)}; give it once"
            )
        observed(value, f"the {name!r}")
    there = [
        reward is not ABSENT or names[0] in signals,
        *(cost is not ABSENT or name in signals for name in names[1:]),
    ]
    if not any(there):
        raise InvalidOutcome(f"no outcome is given; give at least one of {', '.join(names)}")
    # what is not there is checked as 0, which every signal can be
    whole = signals.get(names[0], 0.0) if reward is ABSENT else reward
    values = policy.values(whole, [signals.get(name, 0.0) for name in names[1:]] if cost is ABSENT else cost)
    return np.where(there, values, np.nan)


def given_as(name: str, names: tuple[str, ...]) -> str:
    """Return by which argument a signal is given besides its name."""
    return "reward" if name == names[0] else "cost"


def check_action(decision: Any, played: Any) -> None:
    """Refuse a decision that is not what was played."""
    if decision.action is not played.action and not np.array_equal(decision.action, played.action):
        raise InvalidOutcome(
            f"the decision of round {decision.round} is not the one this agent made; it played another action"
        )
