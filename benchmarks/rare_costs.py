"""How long until an arm that costs .01 is certified under τ = .02, by radius.

Pulls: if exactly one pull in a hundred costs 1. Rounds: until OPB, which mixes the arm with the safe one as far as its
bound allows, plays it alone; median and range of simulated runs with coins.

    .venv/bin/python benchmarks/rare_costs.py
"""

import numpy as np

import stagewise as sw
from stagewise.policies.policy import PlayedAction

COST, THRESHOLD, ROUNDS, RUNS = 0.01, 0.02, 400_000, 20
SAFE = sw.SafeAction(arm=0, reward=0.0, cost=0.0)
SETTINGS = {
    "rates": {"interval": "rates"},
    "kl": {"interval": "kl"},
    "hoeffding": {"interval": "hoeffding"},
    "paper, horizon": {"interval": "paper", "horizon": ROUNDS},
}


def policy(name: str) -> sw.OPB:
    """Return OPB for one arm besides the safe one, at δ = .05."""
    return sw.OPB(arms=2, safe_action=SAFE, threshold=THRESHOLD, **SETTINGS[name])


def pulls(name: str) -> int | None:
    """Return the smallest number of pulls, of which one in a hundred costs, that certifies the arm."""
    chosen = policy(name)
    state = chosen.start()
    for pull in range(ROUNDS):
        cost = float(pull % 100 == 50)
        state = chosen.learn_in_place(state, PlayedAction(1), np.array([1.0, cost]))
        if pull % 100 == 99 and chosen.decide(state, sw.ArmSet(2)).probabilities[1] == 1.0:
            return pull + 1
    return None


def rounds(name: str) -> list[int]:
    """Return for each run the first round in which the arm is played alone; ROUNDS where it never was."""
    world = sw.ArmsWorld(reward=[0.0, 0.5], cost=[0.0, COST])
    result = sw.simulate(policy(name), world, rounds=ROUNDS, runs=RUNS, seed=1, record_points=ROUNDS, progress=False)
    alone = result.cost[:, :, 0] == COST
    return [int(np.argmax(row)) + 1 if row.any() else ROUNDS for row in alone]


def main() -> None:
    """Print the table."""
    print(f"| radius | pulls | rounds, median of {RUNS} runs | from | to |\n|---|---|---|---|---|")
    for name in SETTINGS:
        first, needed = rounds(name), pulls(name)
        cells = [
            f"more than {ROUNDS:,}" if n is None or n >= ROUNDS else f"{n:,}"
            for n in (needed, int(np.median(first)), min(first), max(first))
        ]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
