"""The witness for the mixture kernels: programs of every awkward kind, and the value HiGHS gives them."""

import highspy
import numpy as np

from stagewise.engine.simplex import Program

KINDS = [
    "plain",
    "duplicates",
    "rounded",
    "unrewarding",
    "negative",
    "on the limit",
    "ineligible",
    "first round",
    "yes or no",
    "almost one limit",
]


def random_program(random: np.random.Generator, kind: str, actions: int, constraints: int) -> Program:
    """Draw a program whose ties and degeneracies are those of its kind."""
    reward, cost = 3.0 * random.random(actions), random.random((constraints, actions))
    safe_reward, safe_cost = 0.3 * random.random(), 0.3 * random.random(constraints)
    limits = safe_cost + 0.01 + 0.4 * random.random(constraints)
    if kind == "duplicates":
        originals = random.integers(0, 1 + actions // 4, actions)
        reward, cost = reward[originals], cost[:, originals]
    elif kind == "rounded":
        reward, cost, safe_cost = reward.round(1), cost.round(1), safe_cost.round(1)
        limits = safe_cost + 0.1 * random.integers(1, 4, constraints)
    elif kind == "unrewarding":
        reward, safe_reward = np.where(random.random(actions) < 0.7, 0.0, reward), 0.0
    elif kind == "negative":
        reward, cost, safe_cost = reward - 2.0, 4.0 * cost - 2.0, safe_cost - 1.0
        limits = safe_cost + 0.01 + random.random(constraints)
    elif kind == "on the limit":
        limits = np.maximum(cost[:, random.integers(actions)], safe_cost + 0.01)
    elif kind == "ineligible":
        reward = np.where(random.random(actions) < 0.5, -np.inf, reward)
    elif kind == "first round":
        fresh = random.random(actions) < 0.8
        reward, cost = np.where(fresh, 5.0, reward), np.where(fresh, 1.0, cost)
    elif kind == "yes or no":
        reward, cost, safe_cost = reward.round(2), cost.round(), np.zeros(constraints)
        limits = np.full(constraints, 0.5)
    elif kind == "almost one limit":
        cost, safe_cost = cost[0] + 1e-11 * cost, np.zeros(constraints)
        limits = np.full(constraints, 0.3)
    return Program(reward, np.ascontiguousarray(cost), float(safe_reward), safe_cost, limits)


def quiet_solver() -> highspy.Highs:
    """Return a solver at its tightest tolerances; one solver serves any number of programs."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.silent()
    solver.setOptionValue("presolve", "off")
    solver.setOptionValue("simplex_strategy", 4)  # primal: the dual one loses its way, rarely, among 2,000 actions
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("primal_feasibility_tolerance", 1e-10)
    solver.setOptionValue("dual_feasibility_tolerance", 1e-10)
    return solver


def best_value(solver: highspy.Highs, program: Program) -> float:
    """Return the value of the best mixture, and insist that HiGHS calls it optimal."""
    solver.passModel(stated(program))
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(solver.getInfo().objective_function_value)


def stated(program: Program) -> highspy.HighsLp:
    """Write a program as HiGHS reads it: the safe action is the last column, and a reward of −∞ closes its column."""
    rows, actions = program.cost.shape
    closed = np.append(np.isneginf(program.reward), False)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = actions + 1, rows + 1
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = np.where(closed, 0.0, np.append(program.reward, program.safe_reward))
    model.col_lower_ = np.zeros(actions + 1)
    model.col_upper_ = np.where(closed, 0.0, highspy.kHighsInf)
    model.row_lower_ = np.append(np.full(rows, -highspy.kHighsInf), 1.0)
    model.row_upper_ = np.append(program.limits, 1.0)
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.arange(actions + 2) * (rows + 1)
    model.a_matrix_.index_ = np.tile(np.arange(rows + 1), actions + 1)
    columns = np.hstack([program.cost, program.safe_cost[:, np.newaxis]])
    model.a_matrix_.value_ = np.vstack([columns, np.ones(actions + 1)]).T.ravel()
    return model
