"""Safe actions: of a policy, or of one round."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from stagewise.problem.checks import (
    MANY,
    Floats,
    check_array,
    check_integer,
    check_number,
    check_vector,
    copy_read_only,
    copy_value,
    unwrap_scalar,
)
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem

Cost = float | Sequence[float | None] | Mapping[str, float | None] | npt.NDArray[np.float64] | None


@dataclass(frozen=True, init=False, eq=False)
class SafeAction:
    """The action that is known to be safe before learning: a feature vector or an arm.

    Unknown means (None) are estimated by playing the safe action until its slack is certain. With neither features nor
    arm, every round's action set names its safe action: `FiniteSet(features, safe=0)`, `RaySet(targets, safe=x0)`.
    `cost` is then an upper and `reward` a lower bound for all rounds (docs/theory/context.md).

    Raises:
        InvalidProblem: Both features and arm are given, or a value is invalid.

    Example:
        >>> SafeAction(features=[0.0, 0.0], reward=0.0, cost=0.0).dimension
        2
        >>> SafeAction(cost=0.01).is_per_round
        True
    """

    features: Any = None
    """Its feature vector (d,), for actions with features that are the same in every round."""
    arm: int | None = None
    """Its index, for arms."""
    reward: float | None = None
    """Its mean reward, at most 1; None: unknown. Per round: a lower bound, 0 by default."""
    cost: Cost = None
    """Its mean cost: a number, one per constraint, or a mapping by name; None: unknown. Per round: an upper bound (with
    `AtLeast` a lower one); None: every action set gives its own."""

    def __init__(
        self,
        *,
        features: ArrayLike | None = None,
        arm: int | None = None,
        reward: float | None = None,
        cost: Cost = None,
    ) -> None:
        if features is not None and arm is not None:
            problem = "a safe action has features, an arm, or neither if every round names its own; give one of them"
            raise InvalidProblem(ErrorCode.SAFE_ACTION_INVALID, problem)
        if features is not None:
            features = copy_read_only(check_vector(features, "the safe action's features", InvalidProblem))
            largest = float(np.abs(features).max())
            if 0.0 < largest <= 1e-100:
                rule = "0, or large enough that its square does not underflow"
                raise InvalidProblem.must_be(
                    ErrorCode.SAFE_ACTION_INVALID, "the safe action's largest feature", largest, rule
                )
        elif arm is not None:
            arm = check_integer(arm, "the safe arm", "counted from 0, as arms are", 0, MANY)
        if reward is not None:
            reward = check_number(reward, "the safe action's reward")
            if reward > 1.0:
                rule = "at most 1, like all mean rewards; divide all rewards by a known upper bound"
                raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, "the safe action's reward", reward, rule)
        for name, value in {"features": features, "arm": arm, "reward": reward, "cost": copy_value(cost)}.items():
            object.__setattr__(self, name, value)

    @property
    def dimension(self) -> int:
        """The number of features, or 0 for an arm."""
        return 0 if self.features is None else int(self.features.size)

    @property
    def is_per_round(self) -> bool:
        """Whether every round's action set names it."""
        return self.features is None and self.arm is None

    @property
    def is_origin(self) -> bool:
        """Whether the features are all zero, so that linear rewards and costs are 0."""
        return self.features is not None and not np.any(self.features)


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
            problem = "safe_cost or safe_reward is given without safe; give safe, the round's safe action"
            raise InvalidActions(ErrorCode.SAFE_ACTION_MISSING, problem)
        return None
    count, d = features.shape
    if isinstance(unwrap_scalar(safe), int | np.integer):
        if not member:
            rule = f"{d} features, since rays start at the safe point"
            raise InvalidActions.must_be(ErrorCode.SAFE_ACTION_INVALID, "safe", safe, rule)
        rule = f"from 0 to {count - 1}, being one of the actions"
        index = check_integer(safe, "safe", rule, 0, count - 1, InvalidActions)
        return RoundSafeAction(index, features[index], copy_value(cost), reward)
    point = copy_read_only(check_vector(safe, "safe", InvalidActions))
    if point.size != d:
        raise InvalidActions.must_agree(
            ErrorCode.DIMENSION_MISMATCH, "the number of features of safe", point.size, "that of the actions", d
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
