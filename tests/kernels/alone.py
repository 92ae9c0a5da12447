"""A regression by itself: nothing known at a safe action, nothing followed."""

import numba
import numpy as np
from stagewise.kernels.radius import MIXTURE, Belief
from stagewise.kernels.ridge import ELSEWHERE, Anchor, Followed, Regression, Ridge, learn

from stagewise.kernels.compile import Floats


@numba.njit
def absorb(ridge: Ridge, coordinates: Floats, values: Floats, work: Floats) -> None:
    """Take in one observation (z, y); `work` is (3n + k,)."""
    size, signals, nothing = ridge.root.shape[0], values.size, work[:0]
    followed = Followed(nothing.reshape(size, 0), nothing.reshape(signals, 0), nothing)
    belief = Belief(MIXTURE, 1.0, 1.0, nothing, nothing, nothing)
    model = Regression(ridge, followed, Anchor(nothing, 0.0, np.zeros(signals), nothing), belief)
    learn(model, coordinates, ELSEWHERE, 1.0, False, values, work)
