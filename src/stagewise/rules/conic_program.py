"""A small conic program, built row by row and solved by Clarabel."""

import math
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats


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
        import clarabel  # type: ignore[import-untyped]
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
