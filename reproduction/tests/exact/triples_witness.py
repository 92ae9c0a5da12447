"""The witnesses for the paper's maximum: every triple by itself, and one mixed-integer program."""

from itertools import product

import highspy
import numpy as np
from tests.rules.witness import Problem, linear_value

from stagewise.engine.compile import Floats


def over_all_triples(problem: Problem) -> float:
    """Return the largest value of all programs with one θ, one j and one pair μ', μ''."""
    return max(
        linear_value(theta + scale * (up - low), problem)
        for cost, scale in zip(problem.costs, problem.scales, strict=True)
        for theta, up, low in product(problem.rewards, cost, cost)
    )


def mixed_integer_value(problem: Problem) -> float:
    """Return the same by one mixed-integer program: maximise s + b with binaries for θ, j, and μ', μ'' of every j.

        s ≤ E θ_a + M (1 − z_a),            b ≤ α_j (u_j − l_j) + M (1 − y_j),
        u_j ≤ E μ_b + M (1 − v_jb),         l_j ≥ E μ_b − M (1 − w_jb)

    and each group of binaries sums to 1; M is as large as the data can differ.
    """
    n, m, a = problem.rewards.shape[1], len(problem.costs), len(problem.rewards)
    sizes = [len(cost) for cost in problem.costs]
    s, b, ends, y, z = n, n + 1, n + 2, n + 2 + 2 * m, n + 2 + 3 * m
    width = z + a + 2 * sum(sizes)
    rows: list[Floats] = []
    upper: list[float] = []
    lower: list[float] = []

    def state(entries: dict[int, float], at_most: float, mixture: Floats | None = None, equal: bool = False) -> None:
        row = np.zeros(width)
        row[:n] = 0.0 if mixture is None else mixture
        for index, value in entries.items():
            row[index] += value
        rows.append(row)
        upper.append(at_most)
        lower.append(at_most if equal else -highspy.kHighsInf)

    big = float(np.ptp(problem.rewards))
    state({}, 1.0, np.ones(n), equal=True)
    state({z + i: 1.0 for i in range(a)}, 1.0, equal=True)
    state({y + j: 1.0 for j in range(m)}, 1.0, equal=True)
    for i, theta in enumerate(problem.rewards):
        state({s: 1.0, z + i: big}, big, -theta)
    first = z + a
    large = max(2.0 * scale * float(np.ptp(cost)) for cost, scale in zip(problem.costs, problem.scales, strict=True))
    for j, (cost, limit, scale) in enumerate(zip(problem.costs, problem.limits, problem.scales, strict=True)):
        up, low, span = ends + 2 * j, ends + 2 * j + 1, float(np.ptp(cost))
        state({b: 1.0, up: -scale, low: scale, y + j: large}, large)
        state({first + k: 1.0 for k in range(sizes[j])}, 1.0, equal=True)
        state({first + sizes[j] + k: 1.0 for k in range(sizes[j])}, 1.0, equal=True)
        for k, function in enumerate(cost):
            state({}, float(limit), function)
            state({up: 1.0, first + k: span}, span, -function)
            state({low: -1.0, first + sizes[j] + k: span}, span, function)
        first += 2 * sizes[j]
    values = np.zeros(width)
    values[[s, b]] = 1.0
    return solved_model(values, np.array(rows), np.array(lower), np.array(upper), n, y)


def solved_model(values: Floats, rows: Floats, lower: Floats, upper: Floats, shares: int, binaries: int) -> float:
    """Return the optimum of a model whose first columns are shares and whose last are binary."""
    width = values.size
    model = highspy.HighsLp()
    model.num_col_, model.num_row_, model.sense_ = width, len(rows), highspy.ObjSense.kMaximize
    model.col_cost_ = values
    low, high = np.full(width, -20.0), np.full(width, 20.0)
    low[:shares], high[:shares], low[binaries:], high[binaries:] = 0.0, 1.0, 0.0, 1.0
    model.col_lower_, model.col_upper_ = low, high
    model.row_lower_, model.row_upper_ = lower, upper
    kinds = [highspy.HighsVarType.kContinuous] * binaries + [highspy.HighsVarType.kInteger] * (width - binaries)
    model.integrality_ = kinds
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.arange(len(rows) + 1) * width
    model.a_matrix_.index_ = np.tile(np.arange(width), len(rows))
    model.a_matrix_.value_ = rows.ravel()
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.silent()
    solver.setOptionValue("threads", 1)
    for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance", "mip_feasibility_tolerance"):
        solver.setOptionValue(name, 1e-10)
    for name in ("mip_rel_gap", "mip_abs_gap"):
        solver.setOptionValue(name, 0.0)
    solver.passModel(model)
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(solver.getInfo().objective_function_value)
