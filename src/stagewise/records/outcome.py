"""Outcomes of decisions."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Outcome(NamedTuple):
    """The observed reward and costs of one decision.

    Attributes:
        reward: The observed reward.
        cost: The observed costs: a number, one per constraint, or a mapping by name.

    Example:
        >>> Outcome(0.7, {"spend": 0.1})
        Outcome(reward=0.7, cost={'spend': 0.1})
    """

    reward: float
    cost: float | Sequence[float] | Mapping[str, float] | npt.NDArray[np.float64] | None = ()
