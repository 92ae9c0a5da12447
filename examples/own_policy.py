"""A policy of one's own, beside two of ours: anything with start, decide and learn can be played and compared.

python examples/own_policy.py        # the policy is examples/safe_greedy.py; docs/how-to/extend.md walks through it
"""

import sys

import numpy as np

import stagewise as sw
from picture import save, two_panels
from safe_greedy import SafeGreedy

WORLD = sw.ArmsWorld(reward=[0.1, 0.3, 0.5, 0.9], cost=[0.0, 0.05, 0.15, 0.6], outcomes="bernoulli")
LIMIT, SAFE = {"cost": 0.2}, sw.SafeAction(arm=0, reward=0.1, cost=0.0)
POLICIES = {
    "mine": SafeGreedy(arms=4, safe_arm=0, safe_cost=0.0, threshold=0.2),
    "guarded": sw.SafeArmPosteriorSampling(arms=4, safe_action=SAFE, threshold=LIMIT),
    "unguarded": sw.UCB(arms=4, safe_action=SAFE, threshold=LIMIT),
}


def main(path: str = "results/gallery/own_policy.png", rounds: int = 5_000) -> None:
    """Play each in the same world, every round kept, and draw them."""
    played = {
        name: sw.simulate(policy, WORLD, rounds=rounds, runs=1, record_points=rounds, progress=False)
        for name, policy in POLICIES.items()
    }
    earned = {name: result.reward[0] for name, result in played.items()}
    earned["possible under the limit"] = np.full(rounds, played["guarded"].optimum[0, -1])
    paid = {name: result.cost[0, :, 0] for name, result in played.items()}
    figure, _ = two_panels(earned, paid, ("cost", 0.2), reward="expected reward")
    save(figure, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
