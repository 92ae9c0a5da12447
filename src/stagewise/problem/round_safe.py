"""The safe action of one round, as the round's set of actions names it."""

from typing import Any, NamedTuple

import numpy as np

from stagewise.problem.checks import Floats, alone, array, frozen, kept, number, shown, vector_of, whole
from stagewise.problem.errors import InvalidActions


class SafeOfRound(NamedTuple):
    """Which action is safe in this round, and what is promised of it."""

    place: int  # its place in the list; −1: it stands beside it
    features: Floats  # (d,)
    cost: Any = None  # what it costs at most in this round; None: what the policy's SafeAction says
    reward: Any = None  # what it is worth at least in this round; None: the same


def safe_of(safe: Any, features: Floats, member: bool, cost: Any, reward: Any) -> SafeOfRound | None:
    """Return the safe action that a set names: one of its rows by its number, or a point; None: it names none."""
    if safe is None:
        if cost is not None or reward is not None:
            raise InvalidActions(
                "safe_cost or safe_reward is given and safe is not; they are of the round's own safe action, so name it"
            )
        return None
    count, d = features.shape
    numbered = isinstance(alone(safe), int | np.integer)
    if numbered and not member:
        raise InvalidActions(f"safe is {shown(safe)}; rays begin at a point, so give its {d} features")
    if numbered:
        index = whole(safe, "safe", f"from 0 to {count - 1}, being one of the actions", 0, count - 1, InvalidActions)
        return SafeOfRound(index, features[index], kept(cost), reward)
    point = frozen(vector_of(safe, "safe", InvalidActions))
    if point.size != d:
        raise InvalidActions(f"safe has {point.size} features; the actions have {d}, and they must agree")
    return SafeOfRound(-1, point, kept(cost), reward)


def safe_entry(safe: SafeOfRound) -> list[Any]:
    """Return a safe action as plain values: its place, features, c₀ and r₀."""
    return [int(safe.place), safe.features.tolist(), np.asarray(safe.cost).tolist(), float(safe.reward or 0.0)]


def safe_from(entry: Any) -> SafeOfRound | None:
    """Return the safe action that `safe_entry` wrote; None: there was none."""
    if entry is None:
        return None
    place, features, costs, reward = entry
    row, told = array(features, "the safe action"), array(costs, "its costs")
    return SafeOfRound(whole(place, "its place", "from -1", -1, 2**62), row, told, number(reward, "its reward"))
