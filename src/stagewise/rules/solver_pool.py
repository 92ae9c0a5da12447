"""Reused Clarabel solvers for small conic programs, by the shape of their data."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.compile import Flags, Floats, Ints

# Without refinement further iterations do not help, and constraint violations are repaired afterwards.
GAP, RESIDUAL = 3e-6, 1e-3
MAX_SOLVERS = 16  # number of shapes whose solvers are kept
_POOL: dict[tuple[int, ...], tuple[Any, Ints]] = {}


class ConicProblem(NamedTuple):
    """minimise <q, x> subject to Ax + s = b, s in a product of an orthant and one second-order cone."""

    objective: Floats  # (v,) q
    matrix: Floats  # (rows, v) A
    right: Floats  # (rows,) b
    filled: Flags  # (rows, v) mask of A's entries that may be nonzero
    orthant: int  # rows of the orthant; the cone's follow
    refined: bool  # whether every iteration is refined
    key: tuple[int, ...]  # the sizes that determine `filled` and the cones


class PrimalDual(NamedTuple):
    """The solver's result, which callers certify before they use it."""

    point: Floats  # (v,) x
    multipliers: Floats  # (rows,) z
    finished: bool  # whether the solver reports success


def solve_conic(conic: ConicProblem) -> PrimalDual:
    """Return a nearly optimal primal-dual pair.

    A solver is kept for each shape, because building one takes as long as a small solve. It carries nothing from one
    problem to the next: no warm start, and no equilibration, whose scaling would be that of the first problem. So a
    reused solver gives the same bits as a new one. It is removed from the pool while it is in use, which makes it
    thread-safe.
    """
    key = (int(conic.refined), *conic.key)
    solver, positions = _POOL.pop(key, (None, None))
    if solver is None or positions is None:
        solver, positions = build_solver(conic)
    else:
        numbers = conic.matrix.T.ravel()[positions]
        solver.update(q=conic.objective.tolist(), A=numbers.tolist(), b=conic.right.tolist())  # quicker than as arrays
    answer = solver.solve()
    while len(_POOL) >= MAX_SOLVERS:
        _POOL.pop(next(iter(_POOL)), None)
    _POOL[key] = solver, positions
    finished = str(answer.status) in ("Solved", "AlmostSolved")
    return PrimalDual(np.array(answer.x), np.array(answer.z), finished)


def build_solver(conic: ConicProblem) -> tuple[Any, Ints]:
    """Return a solver for problems of this shape, and the positions of its entries in the transposed matrix."""
    import clarabel  # type: ignore[import-untyped]
    from scipy.sparse import csc_matrix  # type: ignore[import-untyped]

    rows, size = conic.matrix.shape
    positions = np.flatnonzero(conic.filled.T)
    starts = np.concatenate([[0], np.cumsum(conic.filled.sum(axis=0))])
    matrix = csc_matrix((conic.matrix.T.ravel()[positions], positions % rows, starts), shape=(rows, size))
    cones = [clarabel.NonnegativeConeT(conic.orthant), clarabel.SecondOrderConeT(rows - conic.orthant)]
    nothing = csc_matrix((size, size))
    return clarabel.DefaultSolver(
        nothing, conic.objective, matrix, conic.right, cones, settings(conic.refined)
    ), positions


@cache
def settings(refined: bool) -> Any:
    """Return the settings of Clarabel."""
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
