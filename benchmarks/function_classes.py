"""Mixtures under function classes: a decision's time by method, and what the search over triples saves.

python benchmarks/function_classes.py
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from stagewise import Arms, SafeAction
from stagewise.policies.policy import Played
from stagewise.rules.rows import best_under_rows, solved_under
from stagewise_reproduction.exact.highs import answered, maximal, needed_rows, stated
from stagewise_reproduction.exact.opnlb import ExactOPNLB
from stagewise_reproduction.exact.triples import best_of_triples

SIZES = [(10, 10), (30, 10), (100, 20), (300, 20), (100, 100)]


def drawn(random: np.random.Generator, functions: int, actions: int) -> Any:
    """Return functions around a random one, at the listed actions and the safe one."""
    return np.clip(random.random(actions + 1) + 0.3 * random.normal(size=(functions, actions + 1)), 0.0, 1.0)


def seconds(work: Callable[[], Any], least: float = 0.2) -> float:
    """Return the processor time of one call, repeated for a while: on a shared machine the clock counts other work."""
    work()
    calls, begun = 0, time.process_time()
    while time.process_time() - begun < least:
        work()
        calls += 1
    return (time.process_time() - begun) / calls


def rows_and_triples(functions: int, actions: int) -> str:
    """Measure one size."""
    random = np.random.default_rng(functions + actions)
    rewards, costs = drawn(random, functions, actions), drawn(random, functions, actions)
    costs[:, -1] = 0.1
    limits, scales = np.array([0.4]), np.array([3.0])
    worth = rewards.max(axis=0) + 3.0 * np.ptp(costs, axis=0)
    rows = needed_rows((costs,), limits)
    gains = worth[:-1] - worth[-1]
    few = seconds(lambda: best_under_rows(worth, (costs,), limits))
    every, highs = seconds(lambda: solved_under(rows, worth)), seconds(lambda: answered(stated(rows), gains))
    values = [gains @ solved_under(rows, worth)[0], gains @ answered(stated(rows), gains).columns]
    values.append(best_under_rows(worth, (costs,), limits).value - worth[-1])
    agree = "yes" if np.ptp(values) < 1e-8 else "NO"
    found = best_of_triples(rewards, (costs,), limits, scales)
    search = seconds(lambda: best_of_triples(rewards, (costs,), limits, scales))
    left = len(maximal(rewards)) * len(maximal(costs)) * len(maximal(-costs))
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
        state, arms = policy.start(), Arms(actions)
        for arm in np.arange(20) % actions:
            state = policy.learn_in_place(state, Played(int(arm)), np.array([rewards[0, arm], costs[0, arm]]))
        times.append(1e6 * seconds(partial(policy.decide, state, arms)))
    outcome = np.array([0.5, 0.2])
    times.append(1e6 * seconds(lambda: policy.learn_in_place(state, Played(1), outcome)))
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
