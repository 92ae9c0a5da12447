"""Reused Clarabel solvers for small conic programs, by the shape of their data.

A small conic program, built row by row and solved by Clarabel.

The best mixture when the costs' uncertainty is that of the mixture: a second-order cone program.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Flags, Floats, Ints

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


class SolverResult(NamedTuple):
    """The solution that the solver returned."""

    point: Floats
    dual: Floats  # one multiplier per row, rows in the order of their cones: ≥ 0 first, then the norms


class ConicProgram:
    """Minimise <cost, x> subject to rows that lie in cones."""

    def __init__(self, variables: int) -> None:
        self.cost = np.zeros(variables)
        self.blocks: list[tuple[str, Floats, Floats]] = []  # kind, G, g: G x + g lies in the cone

    def add_nonnegative(self, rows: Floats, constants: Floats) -> None:
        """Add the constraint G x + g ≥ 0."""
        self.blocks.append(("nonnegative", rows, constants))

    def add_norm_bound(self, rows: Floats, constants: Floats) -> None:
        """Add the constraint ‖(G x + g)[1:]‖ ≤ (G x + g)[0]."""
        self.blocks.append(("second-order", rows, constants))

    def add_product(self, slope: Floats, constant: float, first: Floats, second: Floats) -> None:
        """Add the constraint (<slope, x> + constant)² ≤ 4 <first, x> <second, x>, both factors at least 0."""
        self.add_norm_bound(np.array([first + second, first - second, slope]), np.array([0.0, 0.0, constant]))

    def add_semidefinite(self, matrices: Floats, constant: Floats) -> None:
        """Add the constraint Σ x_i M_i + M₀ ⪰ 0; the upper triangles (variables, n, n) are read."""
        above = np.triu_indices(constant.shape[0])
        order = np.lexsort((above[0], above[1]))  # Clarabel stacks columns of the upper triangle
        i, j = above[0][order], above[1][order]
        scale = np.where(i == j, 1.0, math.sqrt(2.0))
        self.blocks.append(("semidefinite", (matrices[:, i, j] * scale).T, constant[i, j] * scale))

    def solve(self) -> SolverResult | None:
        """Return a solution, possibly of reduced accuracy; None: the solver found none."""
        import clarabel
        from scipy import sparse  # type: ignore[import-untyped]

        order = {"nonnegative": 0, "second-order": 1, "semidefinite": 2}
        blocks = sorted(self.blocks, key=lambda block: order[block[0]])
        cones: list[Any] = []
        for kind, _, constants in blocks:
            if kind == "nonnegative":
                cones.append(clarabel.NonnegativeConeT(constants.size))
            elif kind == "second-order":
                cones.append(clarabel.SecondOrderConeT(constants.size))
            else:
                side = (math.isqrt(8 * constants.size + 1) - 1) // 2
                cones.append(clarabel.PSDTriangleConeT(side))
        rows = sparse.csc_matrix(-np.vstack([block[1] for block in blocks]))
        ends = np.concatenate([block[2] for block in blocks])
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        nothing = sparse.csc_matrix((self.cost.size, self.cost.size))
        solution = clarabel.DefaultSolver(nothing, self.cost, rows, ends, cones, settings).solve()
        answer = SolverResult(np.array(solution.x), np.array(solution.z))
        usable = str(solution.status) in ("Solved", "AlmostSolved", "InsufficientProgress")
        return answer if usable and np.isfinite(answer.point).all() and np.isfinite(answer.dual).all() else None


ACCURACY = 1e-6  # of a value, relative if it is above one
NEGLIGIBLE = 1e-8  # smaller shares are solver tolerance


class Columns(NamedTuple):
    """What can be mixed, one column each, and the limits of the mixture's costs."""

    costs: Floats  # (m, N) estimates
    images: Floats  # (n, N) Tz; the norm of their mean is the mixture's width; n ≥ 1
    radii: Floats  # (m,) α_c β
    limits: Floats  # (m,) signed, less a rounding margin
    safe_index: int  # the safe action's column, which alone is within the limits


class Mixture(NamedTuple):
    """A mixture within the limits, and an upper bound on the best one."""

    shares: Floats  # (N,)
    value: float  # its value
    bound: float  # certified upper bound on the value of any mixture within the limits


def compute_pessimistic_costs(columns: Columns, shares: Floats) -> Floats:
    """Return the pessimistic costs of a mixture, Σ p_i c_ji + radius_j ‖Σ p_i Tz_i‖."""
    mean = columns.images @ shares
    pessimistic: Floats = columns.costs @ shares + columns.radii * math.sqrt(mean @ mean)
    return pessimistic


def find_best_mixture_in_cone(columns: Columns, gains: Floats) -> Mixture:
    """Maximise Σ p_i gain_i subject to Σ p_i c_ji + radius_j ‖Σ p_i Tz_i‖ ≤ limit_j for every j.

    The solver's result is made safe, and the bound is certified independently of it. If the two are not close, the
    solver runs again with iterative refinement, which takes twice the time.
    """
    tried: list[Mixture] = []
    for refined in (False, True):
        found, bound = solve_dual(columns, gains, refined)
        shares = clean_shares(found, columns)
        tried.append(Mixture(shares, float(gains @ shares), bound))
        if bound - tried[-1].value <= ACCURACY * max(1.0, abs(tried[-1].value)):
            break
    return max(tried, key=lambda one: one.value)._replace(bound=min(one.bound for one in tried))


def solve_dual(columns: Columns, gains: Floats, refined: bool) -> tuple[Floats, float]:
    """Return nearly optimal shares, as the solver returns them, and a certified bound on Σ p_i gain_i.

    Clarabel is given the dual, which has 1 + m + n variables however many actions there are:

        minimise ν + Σ λ_j limit_j  subject to  ν + Σ λ_j c_ji + <u, Tz_i> ≥ gain_i,  λ ≥ 0,  ‖u‖ ≤ Σ λ_j radius_j

    where p are its multipliers.
    """
    (m, count), n = columns.costs.shape, len(columns.images)
    above = gains - gains[columns.safe_index]
    widest, units, unit = compute_scales(columns, above)
    fixed, mask = build_dual_frame(m, n, count)
    matrix = fixed.copy()
    np.divide(columns.costs.T, -units, out=matrix[:count, 1 : 1 + m])
    np.divide(columns.images.T, -widest, out=matrix[:count, 1 + m :])
    matrix[count + m, 1 : 1 + m] = columns.radii * -widest / units
    right, objective = np.zeros(count + 1 + m + n), np.zeros(1 + m + n)
    np.divide(above, -unit, out=right[:count])
    objective[0], objective[1 : 1 + m] = 1.0, columns.limits / units
    pair = solve_conic(ConicProblem(objective, matrix, right, mask, count + m, refined, (m, n, count)))
    prices, pull = pair.point[1 : 1 + m] * unit / units, pair.point[1 + m :] * (unit / widest)
    return pair.multipliers[:count], compute_certified_bound(columns, gains, prices, pull)


def compute_scales(columns: Columns, above: Floats) -> tuple[float, Floats, float]:
    """Return scales in which no number is large: of the largest width, of each cost, and of the gains."""
    widest = math.sqrt(float(np.einsum("ij,ij->j", columns.images, columns.images).max())) or 1.0
    units = np.maximum(np.abs(columns.costs).max(axis=1), columns.radii * widest)
    units[units == 0.0] = 1.0
    return widest, units, float(np.abs(above).max()) or 1.0


def fill_cone(matrix: Floats, radii: Floats) -> None:
    """Write λ ≥ 0 and ‖u‖ ≤ Σ λ_j radius_j into the rows (m + 1 + n, m + n) of the variables λ and u."""
    m = radii.size
    matrix[:m, :m] = -np.eye(m)
    matrix[m, :m] = -radii
    matrix[m + 1 :, m:] = -np.eye(len(matrix) - m - 1)


@cache
def build_dual_frame(m: int, n: int, count: int) -> tuple[Floats, Flags]:
    """Return the part of the dual's matrix that depends only on its size, and the mask of its nonzero entries."""
    matrix = np.zeros((count + 1 + m + n, 1 + m + n))
    matrix[:count, 0] = -1.0
    fill_cone(matrix[count:, 1:], np.ones(m))
    mask: Flags = matrix != 0.0
    mask[:count] = True
    matrix.flags.writeable = False
    return matrix, mask


def compute_certified_bound(columns: Columns, gains: Floats, prices: Floats, pull: Floats) -> float:
    """Return an upper bound on Σ p_i gain_i within the limits, from any prices λ and any vector u.

        Σ p_i gain_i ≤ max_i (gain_i − Σ λ_j c_ji − <u, Tz_i>) + Σ λ_j limit_j    for λ ≥ 0, ‖u‖ ≤ Σ λ_j radius_j

    The largest gain is a bound too, with λ = 0.
    """
    most = float(np.max(gains))
    with np.errstate(over="ignore", invalid="ignore"):
        prices, pull = project_prices(columns, prices, pull)
        bound = float(np.max(gains - prices @ columns.costs - pull @ columns.images) + prices @ columns.limits)
    return min(bound, most) if np.isfinite(bound) else most


def project_prices(columns: Columns, prices: Floats, pull: Floats) -> tuple[Floats, Floats]:
    """Return nonnegative prices, and u scaled to the norm that they allow."""
    prices = np.maximum(prices, 0.0)
    length, allowed = math.sqrt(pull @ pull), float(prices @ columns.radii)
    return prices, pull * (allowed / length) if length > allowed else pull


def clean_shares(shares: Floats, columns: Columns) -> Floats:
    """Return a mixture within the limits from the solver's shares, without negative and negligible ones."""
    kept = np.where(shares > NEGLIGIBLE, shares, 0.0)
    total = float(kept.sum())
    if not (np.isfinite(total) and total > 0.0):
        return build_safe_shares(columns)
    return mix_back_to_safe(kept / total, columns)


def build_safe_shares(columns: Columns) -> Floats:
    """Return the mixture that plays the safe action."""
    shares = np.zeros(columns.costs.shape[1])
    shares[columns.safe_index] = 1.0
    return shares


def mix_back_to_safe(shares: Floats, columns: Columns) -> Floats:
    """Move the least weight to the safe action that makes a mixture safe: η = min_j (limit_j − C₀_j)/(C_j − C₀_j).

    The pessimistic cost is convex, so it is below the chord between C₀ and C, and η is never too large; it is exact
    where the safe action's cost is known. A slightly smaller weight compensates rounding.
    """
    costs = compute_pessimistic_costs(columns, shares)
    if (costs <= columns.limits).all():
        return shares
    safe = build_safe_shares(columns)
    start = compute_pessimistic_costs(columns, safe)
    rest, rise = columns.limits - start, costs - start
    weight = float(np.min(rest[rise > rest] / rise[rise > rest], initial=1.0))
    for breadth in (0.0, 1e-13, 1e-11, 1e-9):
        kept = weight * (1.0 - breadth)
        mixed = shares * kept
        mixed[columns.safe_index] += 1.0 - kept
        if (compute_pessimistic_costs(columns, mixed) <= columns.limits).all():
            return mixed
    return safe
