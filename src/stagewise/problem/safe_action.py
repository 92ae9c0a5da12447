"""The safe action of a policy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from stagewise.problem.checks import MANY, check_integer, check_number, check_vector, copy_read_only, copy_value
from stagewise.problem.errors import ErrorCode, InvalidProblem

Cost = float | Sequence[float | None] | Mapping[str, float | None] | npt.NDArray[np.float64] | None


@dataclass(frozen=True, init=False, eq=False)
class SafeAction:
    """The action that is known to be safe before learning: a feature vector or an arm.

    Unknown means (None) are estimated by playing the safe action until its slack is certain. With neither features nor
    arm, every round's action set names its safe action: `FiniteSet(features, safe=0)`, `Rays(targets, safe=x0)`. `cost`
    is then an upper and `reward` a lower bound for all rounds (docs/theory/context.md).

    Args:
        features: Its feature vector (d,), for linear problems.
        arm: Its index, for arms.
        reward: Its mean reward, at most 1; None: unknown.
        cost: Its mean cost: a number, one per constraint, or a mapping by name; None: unknown.

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
            raise InvalidProblem(
                ErrorCode.SAFE_ACTION_INVALID,
                "a safe action has either features (linear problems) or an arm; give one, or neither if "
                "every round names its own",
            )
        if features is not None:
            features = copy_read_only(check_vector(features, "the safe action's features", InvalidProblem))
            if np.any(features) and not np.abs(features).max() > 1e-100:
                raise InvalidProblem(
                    ErrorCode.SAFE_ACTION_INVALID,
                    "the safe action's largest feature is {features}; it must be zero, or large enough that "
                    "its square does not underflow",
                    features=np.abs(features).max(),
                )
        elif arm is not None:
            arm = check_integer(arm, "the safe arm", "counted from 0, as arms are", 0, MANY)
        if reward is not None:
            reward = check_number(reward, "the safe action's reward")
            if reward > 1.0:
                raise InvalidProblem(
                    ErrorCode.OUT_OF_RANGE,
                    "the safe action's reward is {reward}; mean rewards must be at most 1, so divide all "
                    "rewards by a known upper bound",
                    reward=reward,
                )
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
