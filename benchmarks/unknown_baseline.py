"""How long a safe action of unknown cost is played for want of certainty, with and without a set of its own.

.venv/bin/python benchmarks/unknown_baseline.py    # two minutes
"""

from typing import Any

import numpy as np

import stagewise as sw
from stagewise.records.reason import FallbackReason

ROUNDS, SEEDS, NOISE = 20_000, 10, 0.5
WAITING = FallbackReason.SAFE_ACTION_COST_UNCERTAIN


def waited(policy: Any, dimension: int, seed: int) -> int:
    """Return in how many rounds the safe action is played to learn its cost; its slack is .5."""
    random = np.random.default_rng([seed, dimension])
    truths = np.array([np.full(dimension, dimension**-0.5), np.full(dimension, 0.4 * dimension**-0.5)])
    truths[1, 0] = 0.1 / 0.9
    targets = np.abs(random.normal(size=(dimension, dimension)))
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    offered = sw.FiniteSet(targets) if policy.mixes else sw.RaySet(targets)
    agent, waits, noises = sw.Agent(policy, seed=seed), 0, NOISE * random.normal(size=(ROUNDS, 2))
    for noise in noises:
        decision = agent.decide(offered)
        waits += decision.reason is WAITING
        reward, cost = truths @ np.asarray(decision.action) + noise
        agent.learn(decision, reward=float(reward), cost=float(cost))
    return waits


def main() -> None:
    """Print a table."""
    print("| | d = 10 | d = 20 |\n|---|---|---|", flush=True)
    plays: dict[str, tuple[Any, dict[str, Any]]] = {"CAPS": (sw.SafePosteriorSampling, {})}
    for name, kind in {"LC-LUCB": sw.LCLUCB, "ROFUL": sw.ROFUL, "OPLB": sw.OPLB}.items():
        plays[name] = (kind, {})
        plays[f"{name}, own_sets=True"] = (kind, {"per_action_bounds": True})
    for name, (kind, more) in plays.items():
        cells = []
        for d in (10, 20):
            safe = sw.SafeAction(features=0.9 * np.eye(d)[0])
            policy = kind(safe_action=safe, threshold=0.6, noise=NOISE, mean_cost_bound=1.0, delta=0.05, **more)
            waits = [waited(policy, d, seed) for seed in range(SEEDS)]
            cells.append(f"{np.mean(waits):.0f} ± {np.std(waits, ddof=1) / SEEDS**0.5:.0f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
