"""Mixtures under function classes: a decision's time by method, and what the search over triples saves.

python benchmarks/function_classes.py
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from stagewise import ArmSet, SafeAction
from stagewise.policies.policy import PlayedAction
from stagewise.rules.mixture import find_best_under_rows, solve_under_rows
from stagewise_reproduction.exact.highs import build_solver, keep_maximal, select_rows, solve_program
from stagewise_reproduction.exact.opnlb import ExactOPNLB
from stagewise_reproduction.exact.triples import find_best_triple

SIZES = [(10, 10), (30, 10), (100, 20), (300, 20), (100, 100)]


def drawn(random: np.random.Generator, functions: int, actions: int) -> Any:
    """Return functions around a random one, at the listed actions and the safe one."""
    return np.clip(random.random(actions + 1) + 0.3 * random.normal(size=(functions, actions + 1)), 0.0, 1.0)


def seconds(work: Callable[[], Any], least: float = 0.2) -> float:
    """Return the processor time of one call, repeated for a while: on a shared machine the clock counts other work."""
    work()
    calls, started = 0, time.process_time()
    while time.process_time() - started < least:
        work()
        calls += 1
    return (time.process_time() - started) / calls


def rows_and_triples(functions: int, actions: int) -> str:
    """Measure one size."""
    random = np.random.default_rng(functions + actions)
    rewards, costs = drawn(random, functions, actions), drawn(random, functions, actions)
    costs[:, -1] = 0.1
    limits, scales = np.array([0.4]), np.array([3.0])
    reward_values = rewards.max(axis=0) + 3.0 * np.ptp(costs, axis=0)
    rows = select_rows((costs,), limits)
    gains = reward_values[:-1] - reward_values[-1]
    few = seconds(lambda: find_best_under_rows(reward_values, (costs,), limits))
    every, highs = (
        seconds(lambda: solve_under_rows(rows, reward_values)),
        seconds(lambda: solve_program(build_solver(rows), gains)),
    )
    values = [
        gains @ solve_under_rows(rows, reward_values)[0],
        gains @ solve_program(build_solver(rows), gains).columns,
    ]
    values.append(find_best_under_rows(reward_values, (costs,), limits).value - reward_values[-1])
    agree = "yes" if np.ptp(values) < 1e-8 else "NO"
    found = find_best_triple(rewards, (costs,), limits, scales)
    search = seconds(lambda: find_best_triple(rewards, (costs,), limits, scales))
    left = len(keep_maximal(rewards)) * len(keep_maximal(costs)) * len(keep_maximal(-costs))
    return (
        f"| {functions} | {actions} | {len(rows)} | {1e6 * few:.0f} | {1e6 * every:.0f} | {1e6 * highs:.0f} | {agree} "
        f"| {functions**3:,} | {left:,} | {found.programs} | {1e3 * search:.0f} | {found.bound - found.value:.0e} |"
    )


def decision_times(functions: int, actions: int) -> str:
    """Measure one decision of each method in the middle of a run, and one outcome."""
    random = np.random.default_rng(functions + actions)
    rewards, costs = drawn(random, functions, actions - 1), drawn(random, functions, actions - 1)
    rewards[:, 0], costs[:, 0] = 0.2, 0.1
    times = []
    for method in ("pointwise", "rows", "exact"):
        policy = ExactOPNLB(
            reward_class=rewards,
            cost_class=costs,
            safe_action=SafeAction(arm=0, reward=0.2, cost=0.1),
            threshold=0.4,
            method=method,
        )
        state, arms = policy.start(), ArmSet(actions)
        for arm in np.arange(20) % actions:
            state = policy.learn_in_place(state, PlayedAction(int(arm)), np.array([rewards[0, arm], costs[0, arm]]))
        times.append(1e6 * seconds(partial(policy.decide, state, arms)))
    outcome = np.array([0.5, 0.2])
    times.append(1e6 * seconds(lambda: policy.learn_in_place(state, PlayedAction(1), outcome)))
    return f"| {functions} | {actions} | " + " | ".join(f"{value:,.0f}" for value in times) + " |"


if __name__ == "__main__":
    heads = "functions | actions | rows | added as needed us | all us | HiGHS us | agree"
    print(f"| {heads} | triples | Pareto | solved | search ms | gap |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for size in SIZES:
        print(rows_and_triples(*size), flush=True)
    print("\n| functions | arms | pointwise us | rows us | exact us | outcome us |")
    print("|---|---|---|---|---|---|")
    for size in SIZES:
        print(decision_times(*size), flush=True)
