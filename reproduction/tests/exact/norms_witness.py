"""Random rewards with norms of the mixture's mean, and a witness for their maximum in the plane."""

import numpy as np
from tests.rules.cone_witness import best_value

from stagewise.engine.compile import Floats
from stagewise.rules.cone_program import Columns
from stagewise_reproduction.exact.norms import Norms


def random_norms(random: np.random.Generator, columns: Columns, two: bool) -> tuple[Norms, Floats]:
    """Draw a reward with one norm or two, and what it is worth for every single action."""
    whitened = random.normal(size=columns.images.shape) if two else columns.images
    other = random.normal(size=(2, len(whitened))) if two else np.zeros((1, len(whitened)))
    estimates = random.normal(size=whitened.shape[1])
    norms = Norms(estimates, whitened, 1.3, other, 0.7 if two else 0.0)
    return norms, np.array([worth(norms, np.eye(estimates.size)[i]) for i in range(estimates.size)])


def worth(norms: Norms, shares: Floats) -> float:
    mean = norms.whitened @ shares
    other = norms.other_weight * np.linalg.norm(norms.other @ mean)
    return float(norms.estimates @ shares + norms.weight * np.linalg.norm(mean) + other)


def best_over_directions(columns: Columns, norms: Norms, directions: int) -> tuple[float, float]:
    """Return bounds on the largest f in the plane, where the norm is the largest product with a direction.

        max_p f = max_a max_p Σ p_i (estimate_i + weight <w_i, a>) over unit vectors a, one norm only

    A net of N directions misses at most a factor cos(π/N) of the norm.
    """
    assert norms.other_weight == 0.0
    angles = 2.0 * np.pi * np.arange(directions) / directions
    units = np.column_stack([np.cos(angles), np.sin(angles)])
    found = max(best_value(columns, norms.estimates + norms.weight * (unit @ norms.whitened)) for unit in units)
    longest = float(np.max(np.linalg.norm(norms.whitened, axis=0)))
    return found, found + norms.weight * longest * (1.0 / np.cos(np.pi / directions) - 1.0)
