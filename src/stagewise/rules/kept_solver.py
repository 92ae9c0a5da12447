"""A small conic program handed to Clarabel, by the shape of its data: dense blocks, built once, filled anew."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.compile import Flags, Floats, Ints

# Without refinement further steps lose what they gain; and what is off the constraints is put right afterwards.
GAP, RESIDUAL = 3e-6, 1e-3
KEPT = 16  # shapes whose solvers are kept
_POOL: dict[tuple[int, ...], tuple[Any, Ints]] = {}


class Conic(NamedTuple):
    """minimise <q, x> subject to Ax + s = b, s in a product of an orthant and one second-order cone."""

    objective: Floats  # (v,) q
    matrix: Floats  # (rows, v) A
    right: Floats  # (rows,) b
    filled: Flags  # (rows, v) where A may differ from zero
    orthant: int  # rows of the orthant; the cone's follow
    refined: bool  # whether every step of the solver is refined
    key: tuple[int, ...]  # the sizes that `filled` and the cones follow from


class Pair(NamedTuple):
    """What the solver ended with; nothing of it is trusted before it was certified."""

    point: Floats  # (v,) x
    multipliers: Floats  # (rows,) z
    finished: bool  # whether it says so


def solved(conic: Conic) -> Pair:
    """Return a nearly optimal pair of points.

    A solver is kept for each shape, because building one takes as long as a small solve. It carries nothing over from
    one problem to the next: no warm start, and no equilibration, whose scaling would stay that of the first problem. So
    a kept solver gives to the bit what a new one gives. It is taken out of the pool while it is in use, which makes it
    safe between threads.
    """
    key = (int(conic.refined), *conic.key)
    solver, places = _POOL.pop(key, (None, None))
    if solver is None or places is None:
        solver, places = built(conic)
    else:
        numbers = conic.matrix.T.ravel()[places]
        solver.update(q=conic.objective.tolist(), A=numbers.tolist(), b=conic.right.tolist())  # quicker than as arrays
    answer = solver.solve()
    while len(_POOL) >= KEPT:
        _POOL.pop(next(iter(_POOL)), None)
    _POOL[key] = solver, places
    finished = str(answer.status) in ("Solved", "AlmostSolved")
    return Pair(np.array(answer.x), np.array(answer.z), finished)


def built(conic: Conic) -> tuple[Any, Ints]:
    """Return a solver for problems of this shape, and where its numbers stand in the transposed matrix."""
    import clarabel  # type: ignore[import-untyped]
    from scipy.sparse import csc_matrix  # type: ignore[import-untyped]

    rows, size = conic.matrix.shape
    places = np.flatnonzero(conic.filled.T)
    starts = np.concatenate([[0], np.cumsum(conic.filled.sum(axis=0))])
    matrix = csc_matrix((conic.matrix.T.ravel()[places], places % rows, starts), shape=(rows, size))
    cones = [clarabel.NonnegativeConeT(conic.orthant), clarabel.SecondOrderConeT(rows - conic.orthant)]
    nothing = csc_matrix((size, size))
    return clarabel.DefaultSolver(nothing, conic.objective, matrix, conic.right, cones, settings(conic.refined)), places


@cache
def settings(refined: bool) -> Any:
    """Return how Clarabel is run."""
    import clarabel

    chosen = clarabel.DefaultSettings()
    chosen.verbose = False
    chosen.max_threads = 1
    chosen.presolve_enable = False
    chosen.equilibrate_enable = False
    chosen.iterative_refinement_enable = refined
    if not refined:
        chosen.tol_gap_abs = chosen.tol_gap_rel = GAP
        chosen.tol_feas = RESIDUAL
    return chosen
