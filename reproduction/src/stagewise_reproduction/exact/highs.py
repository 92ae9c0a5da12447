"""Linear programs over mixtures of listed actions by HiGHS, and the selection of their rows."""

from typing import Any, NamedTuple

import highspy
import numpy as np

from stagewise.engine.compile import Floats
from stagewise.rules.mixture import scale_rows

TIGHTEST = 1e-10  # the smallest tolerance that HiGHS accepts


class LinearSolution(NamedTuple):
    """The solution of HiGHS: variables and row prices, or zeros."""

    columns: Floats
    prices: Floats
    solved: bool


def select_rows(tables: tuple[Floats, ...], limits: Floats) -> Floats:
    """Return the rows (R, n) of all cost functions, without those that another row implies."""
    return keep_maximal(
        np.concatenate([scale_rows(keep_maximal(t), limit) for t, limit in zip(tables, limits, strict=True)])
    )


def keep_maximal(table: Floats) -> Floats:
    """Return the rows that no other row dominates, each once: f ≤ g gives E f ≤ E g under every mixture."""
    table = np.unique(table, axis=0)
    order = np.argsort(-table.sum(axis=1), kind="stable")  # a row can only be dominated by rows with a larger sum
    kept = np.empty_like(table)
    count = 0
    for row in table[order]:
        if not np.any(np.all(kept[:count] >= row, axis=1)):
            kept[count] = row
            count += 1
    return kept[:count].copy()


def build_solver(rows: Floats) -> Any:
    """Return a solver that holds the rows; objectives are set with each solve."""
    count, columns = rows.shape
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.silent()
    settings = {
        "presolve": "off",
        "threads": 1,
        "simplex_strategy": 4,
    }  # primal simplex, which starts at the safe action
    tolerances = {"primal_feasibility_tolerance": TIGHTEST, "dual_feasibility_tolerance": TIGHTEST}
    for name, value in {**settings, **tolerances}.items():
        solver.setOptionValue(name, value)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = columns, count + 1
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = np.zeros(columns)
    model.col_lower_, model.col_upper_ = np.zeros(columns), np.full(columns, highspy.kHighsInf)
    model.row_lower_, model.row_upper_ = np.full(count + 1, -highspy.kHighsInf), np.ones(count + 1)
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.arange(columns + 1) * (count + 1)
    model.a_matrix_.index_ = np.tile(np.arange(count + 1), columns)
    model.a_matrix_.value_ = np.vstack([rows, np.ones(columns)]).T.ravel()
    solver.passModel(model)
    return solver


def solve_program(solver: Any, costs: Floats) -> LinearSolution:
    """Maximise Σ costs_i p_i subject to the solver's rows."""
    solver.changeColsCost(costs.size, np.arange(costs.size, dtype=np.int32), costs)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return LinearSolution(np.zeros(costs.size), np.zeros(solver.getNumRow()), False)
    solution = solver.getSolution()
    return LinearSolution(np.array(solution.col_value), np.array(solution.row_dual), True)
