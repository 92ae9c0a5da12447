"""The one action that is known to be safe before anything is learned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from stagewise.problem.checks import MANY, frozen, kept, number, vector_of, whole
from stagewise.problem.errors import InvalidProblem

Cost = float | Sequence[float | None] | Mapping[str, float | None] | npt.NDArray[np.float64] | None


@dataclass(frozen=True, init=False, eq=False)
class SafeAction:
    """A safe action: a feature vector or an arm, with its mean reward and costs where they are known.

    What is unknown (None) is estimated by playing the safe action until its slack is certain.

    With neither, the safe action is another one in every round, and the round's set names it: `Finite(features,
    safe=0)`, `Rays(targets, safe=x0)`. `cost` is then what it costs at most, and `reward` what it is worth at least, in
    every round (docs/theory/context.md).

    >>> SafeAction(features=[0.0, 0.0], reward=0.0, cost=0.0).dimension
    2
    >>> SafeAction(cost=0.01).of_the_round
    True
    """

    features: Any = None
    """Its feature vector (d,), for actions with features that are the same in every round."""
    arm: int | None = None
    """Its number, for arms."""
    reward: float | None = None
    """Its mean reward, at most 1; None: unknown. Of the round: a lower bound, 0 where nothing is said."""
    cost: Cost = None
    """Its mean cost: one number, one per constraint, or a mapping from the constraints' names; None: unknown. Of the
    round: an upper bound (with `AtLeast` a lower one); None: every set gives its own."""

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
                "a safe action has either features (linear problems) or an arm; give one, or neither where every "
                "round's set names its own"
            )
        if features is not None:
            features = frozen(vector_of(features, "the safe action's features", InvalidProblem))
            if np.any(features) and not np.abs(features).max() > 1e-100:
                raise InvalidProblem(
                    f"the safe action's largest feature is {np.abs(features).max()}; it must be zero, or of a size "
                    "whose square can be told from zero"
                )
        elif arm is not None:
            arm = whole(arm, "the safe arm", "counted from 0, as arms are", 0, MANY)
        if reward is not None:
            reward = number(reward, "the safe action's reward")
            if reward > 1.0:
                raise InvalidProblem(
                    f"the safe action's reward is {reward}; mean rewards must be at most 1, since the optimism of the "
                    "theorems is scaled to that, so divide all rewards by a known upper bound"
                )
        for name, value in {"features": features, "arm": arm, "reward": reward, "cost": kept(cost)}.items():
            object.__setattr__(self, name, value)

    @property
    def dimension(self) -> int:
        """The number of features, or 0 for an arm."""
        return 0 if self.features is None else int(self.features.size)

    @property
    def of_the_round(self) -> bool:
        """Whether every round's set names its own."""
        return self.features is None and self.arm is None

    @property
    def is_origin(self) -> bool:
        """Whether the features are all zero, where a linear model leaves no choice: reward and costs are 0."""
        return self.features is not None and not np.any(self.features)
