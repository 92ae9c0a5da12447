"""The optimistic reward of a mixture: linear in the mixture, plus norms of its mean."""

import math
from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats


class Norms(NamedTuple):
    """f(p) = Σ p_i estimate_i + bonus(y) at the mean y = Σ p_i w_i, with bonus(y) = a‖y‖ + b‖By‖."""

    estimates: Floats  # (N,)
    whitened: Floats  # (k, N) w_i, in coordinates that make the first norm Euclidean
    weight: float  # a
    other: Floats  # (l, k) B
    other_weight: float  # b


def compute_value(norms: Norms, shares: Floats) -> float:
    """Return f(p)."""
    return float(norms.estimates @ shares + compute_bonuses(norms, norms.whitened @ shares))


def compute_bonuses(norms: Norms, means: Floats) -> Floats:
    """Return a‖y‖ + b‖By‖ for each mean y (…, k)."""
    images = means @ norms.other.T
    own, other = np.sqrt(np.sum(means * means, axis=-1)), np.sqrt(np.sum(images * images, axis=-1))
    total: Floats = norms.weight * own + norms.other_weight * other
    return total


def compute_slope(norms: Norms, mean: Floats) -> Floats:
    """Return the gradient of the bonus: <slope, y'> ≤ bonus(y') everywhere, with equality at y; zero at zero."""
    image = norms.other @ mean
    length, reach = math.sqrt(mean @ mean), math.sqrt(image @ image)
    gradient = np.zeros(mean.size)
    if length > 0.0:
        gradient += norms.weight / length * mean
    if reach > 0.0:
        gradient += norms.other_weight / reach * (image @ norms.other)
    return gradient
