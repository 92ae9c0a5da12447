"""Safe actions that are named by a round's action set."""

from typing import Any, NamedTuple

import numpy as np

from stagewise.problem.checks import (
    Floats,
    check_array,
    check_integer,
    check_number,
    check_vector,
    copy_read_only,
    copy_value,
    safe_repr,
    unwrap_scalar,
)
from stagewise.problem.errors import ErrorCode, InvalidActions


class RoundSafeAction(NamedTuple):
    """The safe action of a round and its declared bounds."""

    safe_index: int  # its index in the list; −1: it is beside the list
    features: Floats  # (d,)
    cost: Any = None  # upper bound on its cost in this round; None: that of the policy's SafeAction
    reward: Any = None  # lower bound on its reward in this round; None: the same


def build_round_safe_action(
    safe: Any, features: Floats, member: bool, cost: Any, reward: Any
) -> RoundSafeAction | None:
    """Return the safe action that a set names, by index or as a point; None: it names none."""
    if safe is None:
        if cost is not None or reward is not None:
            raise InvalidActions(
                ErrorCode.SAFE_ACTION_MISSING,
                "safe_cost or safe_reward is given without safe; give safe, the round's safe action",
            )
        return None
    count, d = features.shape
    numbered = isinstance(unwrap_scalar(safe), int | np.integer)
    if numbered and not member:
        raise InvalidActions(
            ErrorCode.SAFE_ACTION_INVALID,
            "safe is {safe}; rays start at the safe point, so give its {d} features",
            safe=safe_repr(safe),
            d=d,
        )
    if numbered:
        index = check_integer(
            safe, "safe", f"from 0 to {count - 1}, being one of the actions", 0, count - 1, InvalidActions
        )
        return RoundSafeAction(index, features[index], copy_value(cost), reward)
    point = copy_read_only(check_vector(safe, "safe", InvalidActions))
    if point.size != d:
        raise InvalidActions(
            ErrorCode.DIMENSION_MISMATCH,
            "safe has {size} features and the actions have {d}; they must agree",
            size=point.size,
            d=d,
        )
    return RoundSafeAction(-1, point, copy_value(cost), reward)


def encode_round_safe_action(safe: RoundSafeAction) -> list[Any]:
    """Return a safe action as JSON values: its index, features, c₀ and r₀."""
    return [int(safe.safe_index), safe.features.tolist(), np.asarray(safe.cost).tolist(), float(safe.reward or 0.0)]


def decode_round_safe_action(entry: Any) -> RoundSafeAction | None:
    """Return the safe action that `encode_round_safe_action` wrote; None: there was none."""
    if entry is None:
        return None
    index, features, costs, reward = entry
    row, costs_row = check_array(features, "the safe action"), check_array(costs, "its costs")
    return RoundSafeAction(
        check_integer(index, "its index", "from -1", -1, 2**62), row, costs_row, check_number(reward, "its reward")
    )
