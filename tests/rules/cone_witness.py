"""The witness for cone programs: the same problems stated another way, and random ones to try them on."""

import clarabel
import numpy as np
from scipy.sparse import csc_matrix

from stagewise.kernels.compile import Floats
from stagewise.rules.cone import Columns
from stagewise.rules.norms import Norms


def random_columns(random: np.random.Generator, n: int, m: int, count: int, known: bool = True) -> Columns:
    """Draw actions and a last, safe one, which is well within the limits."""
    costs, images = random.normal(size=(m, count + 1)), 0.4 * random.normal(size=(n, count + 1))
    costs[:, -1] = -0.2
    images[:, -1] = 0.0 if known else 0.05
    reaches = random.uniform(0.2, 2.0, size=m)
    return Columns(costs, images, reaches, random.uniform(0.05, 0.5, size=m), count)


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


def best_value(columns: Columns, gains: Floats) -> float:
    """Return the largest Σ p_i gain_i: a cone for each cost, over the shares, with Clarabel's own settings."""
    (m, count), n = columns.costs.shape, len(columns.images)
    blocks, right = [np.ones((1, count)), -np.eye(count)], [np.ones(1), np.zeros(count)]
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(count)]
    for j in range(m):
        blocks += [columns.costs[j : j + 1], -columns.reaches[j] * columns.images]
        right += [columns.limits[j : j + 1], np.zeros(n)]
        cones.append(clarabel.SecondOrderConeT(1 + n))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    matrix, nothing = csc_matrix(np.vstack(blocks)), csc_matrix((count, count))
    answer = clarabel.DefaultSolver(nothing, -gains, matrix, np.concatenate(right), cones, settings).solve()
    assert str(answer.status) in ("Solved", "AlmostSolved")
    return -float(answer.obj_val)


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
