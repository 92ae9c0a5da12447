"""The witness for mixtures under function classes, HiGHS, and random problems to try them on."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from stagewise.engine.compile import Floats


class Problem(NamedTuple):
    """Functions at n actions and, last, at the safe one."""

    rewards: Floats  # (A, n + 1)
    costs: tuple[Floats, ...]  # for each constraint (B, n + 1)
    limits: Floats  # (m,)
    scales: Floats  # (m,)


KINDS = ["plain", "near", "rounded", "duplicates", "one function", "unknown safe cost", "wide limits", "negative"]


def random_problem(random: np.random.Generator, kind: str, constraints: int) -> Problem:
    """Draw a problem whose ties and degeneracies are those of its kind."""
    n, most = int(random.integers(1, 7)), 3 if kind == "duplicates" else 5

    def drawn() -> Floats:
        deviation = 0.05 if kind == "near" else 0.5
        return np.clip(
            random.random(n + 1) + deviation * random.normal(size=(int(random.integers(1, most)), n + 1)), 0.0, 1.0
        )

    rewards, costs = drawn(), [drawn() for _ in range(constraints)]
    if kind == "rounded":
        rewards, costs = rewards.round(1), [cost.round(1) for cost in costs]
    if kind == "duplicates":
        rewards, costs = np.repeat(rewards, 2, axis=0), [np.repeat(cost, 2, axis=0) for cost in costs]
    if kind == "one function":
        rewards, costs = rewards[:1], [cost[:1] for cost in costs]
    if kind == "negative":
        costs = [cost - 1.5 for cost in costs]
    for cost in costs:
        if kind == "unknown safe cost":
            cost[:, -1] = 0.1 * random.random(len(cost))
        else:
            cost[:, -1] = cost[0, -1] * 0.3
    highest = np.array([cost[:, -1].max() for cost in costs])
    limits = highest + (2.0 if kind == "wide limits" else random.uniform(0.02, 0.4, size=constraints))
    return Problem(rewards, tuple(costs), limits, random.uniform(0.0, 4.0, size=constraints))


def linear_value(value: Floats, problem: Problem) -> float:
    """Return the maximum of E worth under every row, by HiGHS."""
    rows = np.concatenate(problem.costs)
    limits = np.repeat(problem.limits, [len(cost) for cost in problem.costs])
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    solved = linprog(-value, A_ub=rows, b_ub=limits, A_eq=np.ones((1, value.size)), b_eq=[1.0], options=tight)
    assert solved.status == 0
    return float(-solved.fun)
