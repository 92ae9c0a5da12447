"""What came of a decision."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Outcome(NamedTuple):
    """One noisy reward and the noisy costs: a number, one per constraint, or a mapping by name.

    >>> Outcome(0.7, {"spend": 0.1})
    Outcome(reward=0.7, cost={'spend': 0.1})
    """

    reward: float
    cost: float | Sequence[float] | Mapping[str, float] | npt.NDArray[np.float64] | None = ()
