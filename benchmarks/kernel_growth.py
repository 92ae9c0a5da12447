"""Memory and time of the kernel policy as rounds go by, for fixed actions, and for fresh ones at several settings.

    python benchmarks/kernel_growth.py

An RBF kernel on the unit square, 50 actions in every round, played by hand through an Agent, on one core. Times are
processor times of `decide` and `learn` in the last tenth before the round that is shown, and of all rounds up to it.
`neglect` is what is added to the radius in units of B.
"""

import math
import time
from typing import Any

import numpy as np

import stagewise as sw
from stagewise.engine.compile import as_python
from stagewise.models.kernel_ridge import count_basis_points, get_neglected_norm, view_kernel_ridge

COUNT, ROUNDS, SHOWN = 50, 10_000, (100, 1000, 3000, 10_000)
SAFE = np.array([0.5, 0.5])


def policy(lengthscale: float, **settings: Any) -> sw.KernelOPLB:
    """Return the policy that is timed."""
    return sw.KernelOPLB(
        kernel=sw.RBF(lengthscale=lengthscale),
        safe_action=sw.SafeAction(features=SAFE, reward=0.2, cost=0.1),
        threshold=0.4,
        noise=0.1,
        norm_bound=2.0,
        mean_cost_bound=1.0,
        ridge=0.1,
        **settings,
    )


def outcome(action: Any, random: np.random.Generator) -> tuple[float, float]:
    """Return a reward and a cost: bumps around two places, and noise."""
    reward = 0.2 + 0.6 * math.exp(-8.0 * float(np.sum((action - 0.8) ** 2))) - 0.6 * math.exp(-8.0 * 0.18)
    cost = 0.1 + 0.5 * math.exp(-8.0 * float(np.sum((action - 0.9) ** 2))) - 0.5 * math.exp(-8.0 * 0.32)
    noise = 0.1 * random.normal(size=2)
    return reward + noise[0], cost + noise[1]


def table(name: str, chosen: sw.KernelOPLB, fixed: bool) -> None:
    """Play, and print what a round takes and what is remembered."""
    random, agent = np.random.default_rng(1), sw.Agent(chosen, seed=1)
    listed, spent, before = random.uniform(size=(COUNT, 2)), 0.0, {}
    for round_ in range(1, ROUNDS + 1):
        actions = listed if fixed else random.uniform(size=(COUNT, 2))
        started = time.process_time()
        decision = agent.decide(actions)
        spent += time.process_time() - started
        reward, cost = outcome(decision.action, random)
        started = time.process_time()
        agent.learn(decision, reward=reward, cost=cost)
        spent += time.process_time() - started
        before[round_] = spent
        if round_ in SHOWN:
            memory, lately = agent.state.memory, spent - before[round_ - round_ // 10]
            part = as_python(view_kernel_ridge)(chosen.layout, memory, 0)
            print(
                f"{name:32} {round_:>7,} {as_python(count_basis_points)(part, memory):>6} {8e-6 * memory.size:>9.2f} "
                f"{1e6 * lately / (round_ // 10):>12,.0f} {spent:>9.1f} "
                f"{as_python(get_neglected_norm)(part, memory):>9.1e}"
            )


def main() -> None:
    """Print the table."""
    table_settings: list[tuple[str, float, dict[str, Any], bool]] = [
        ("fixed, lengthscale 0.3", 0.3, {}, True),
        ("fresh, lengthscale 0.3", 0.3, {}, False),
        ("fresh, 0.3, novelty 1e-6", 0.3, {"novelty_threshold": 1e-6}, False),
        ("fresh, 0.3, novelty 1e-3", 0.3, {"novelty_threshold": 1e-3}, False),
        ("fresh, 0.3, capacity 30", 0.3, {"max_points": 30}, False),
        ("fresh, lengthscale 0.1", 0.1, {}, False),
        ("fresh, 0.1, capacity 300", 0.1, {"max_points": 300}, False),
        ("fresh, 0.1, capacity 100", 0.1, {"max_points": 100}, False),
    ]
    warm = sw.Agent(policy(0.3))
    for _ in range(3):
        warm.learn(warm.decide(np.random.default_rng(0).uniform(size=(4, 2))), reward=0.0, cost=0.0)
    print(f"{'':32} {'round':>7} {'points':>6} {'megabytes':>9} {'us a round':>12} {'seconds':>9} {'neglect':>9}")
    for name, lengthscale, settings, fixed in table_settings:
        table(name, policy(lengthscale, **settings), fixed)


if __name__ == "__main__":
    main()
