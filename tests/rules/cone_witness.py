"""The witness for cone programs: the same problems stated another way, and random ones to try them on."""

import clarabel
import numpy as np
from scipy.sparse import csc_matrix

from stagewise.engine.compile import Floats
from stagewise.rules.cone_program import Columns


def random_columns(random: np.random.Generator, n: int, m: int, count: int, known: bool = True) -> Columns:
    """Draw actions and a last, safe one, which is well within the limits."""
    costs, images = random.normal(size=(m, count + 1)), 0.4 * random.normal(size=(n, count + 1))
    costs[:, -1] = -0.2
    images[:, -1] = 0.0 if known else 0.05
    radii = random.uniform(0.2, 2.0, size=m)
    return Columns(costs, images, radii, random.uniform(0.05, 0.5, size=m), count)


def best_value(columns: Columns, gains: Floats) -> float:
    """Return the largest Σ p_i gain_i: a cone for each cost, over the shares, with Clarabel's own settings."""
    (m, count), n = columns.costs.shape, len(columns.images)
    blocks, right = [np.ones((1, count)), -np.eye(count)], [np.ones(1), np.zeros(count)]
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(count)]
    for j in range(m):
        blocks += [columns.costs[j : j + 1], -columns.radii[j] * columns.images]
        right += [columns.limits[j : j + 1], np.zeros(n)]
        cones.append(clarabel.SecondOrderConeT(1 + n))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    matrix, nothing = csc_matrix(np.vstack(blocks)), csc_matrix((count, count))
    answer = clarabel.DefaultSolver(nothing, -gains, matrix, np.concatenate(right), cones, settings).solve()
    assert str(answer.status) in ("Solved", "AlmostSolved")
    return -float(answer.obj_val)
