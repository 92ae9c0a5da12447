"""The one action that is known to be safe before anything is learned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stagewise.problem.checks import MANY, frozen, kept, number, vector_of, whole
from stagewise.problem.errors import InvalidProblem

Cost = float | Sequence[float | None] | Mapping[str, float | None] | npt.NDArray[np.float64] | None


@dataclass(frozen=True, kw_only=True, eq=False)
class SafeAction:
    """A safe action: a feature vector or an arm, with its mean reward and costs where they are known.

    What is unknown (None) is estimated by playing the safe action until its slack is certain.

    >>> SafeAction(features=[0.0, 0.0], reward=0.0, cost=0.0).dimension
    2
    """

    features: Any = None
    """Its feature vector (d,), for actions with features."""
    arm: int | None = None
    """Its number, for arms."""
    reward: float | None = None
    """Its mean reward, at most 1; None: unknown."""
    cost: Cost = None
    """Its mean cost: one number, one per constraint, or a mapping from the constraints' names; None: unknown."""

    def __post_init__(self) -> None:
        if (self.features is None) == (self.arm is None):
            raise InvalidProblem("a safe action has either features (linear problems) or an arm; give exactly one")
        if self.features is not None:
            features = vector_of(self.features, "the safe action's features", InvalidProblem)
            object.__setattr__(self, "features", frozen(features))
            if np.any(features) and not np.abs(features).max() > 1e-100:
                raise InvalidProblem(
                    f"the safe action's largest feature is {np.abs(features).max()}; it must be zero, or of a size "
                    "whose square can be told from zero"
                )
        else:
            object.__setattr__(self, "arm", whole(self.arm, "the safe arm", "counted from 0, as arms are", 0, MANY))
        object.__setattr__(self, "cost", kept(self.cost))
        if self.reward is not None:
            reward = number(self.reward, "the safe action's reward")
            if reward > 1.0:
                raise InvalidProblem(
                    f"the safe action's reward is {reward}; mean rewards must be at most 1, since the optimism of the "
                    "theorems is scaled to that, so divide all rewards by a known upper bound"
                )
            object.__setattr__(self, "reward", reward)

    @property
    def dimension(self) -> int:
        """The number of features, or 0 for an arm."""
        return 0 if self.features is None else int(self.features.size)

    @property
    def is_origin(self) -> bool:
        """Whether the features are all zero, where a linear model leaves no choice: reward and costs are 0."""
        return self.features is not None and not np.any(self.features)
