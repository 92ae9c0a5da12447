"""How high to bid this hour, when no hour's expected spend may pass a cap: not the day's, and not on average.

python examples/pacing.py
"""

import sys

import numpy as np

import stagewise as sw
from picture import save, two_panels

LEVELS = ["low", "middle", "high", "highest"]
SALES, SPEND = np.array([3.0, 6.0, 8.0, 9.0]), np.array([8.0, 17.0, 28.0, 45.0])  # an hour, in truth
CAP = 20.0
PROBLEM = sw.Problem(
    action_names=LEVELS,
    safe_name="low",  # what is bid today
    reward=sw.Reward("sales", low=0.0, high=20.0),
    limits={
        "spend": sw.Limit(CAP, low=0.0, high=60.0, safe_bound=10.0, model="rates")
    },  # today an hour costs 10 € at most, in the mean
)


def hour(level: int, chance: np.random.Generator) -> dict[str, float]:
    """Return what an hour at this level brings, and what it costs: up to 60 €."""
    return {
        "sales": min(chance.poisson(SALES[level]), 20.0),
        "spend": chance.beta(SPEND[level] / 6, 10 - SPEND[level] / 6) * 60,
    }


def main(path: str = "results/gallery/pacing.png", hours: int = 3_000) -> None:
    """Bid by the agent, and by a pacer that only looks at what was spent so far."""
    agent, chance = sw.Agent(PROBLEM, seed=1), np.random.default_rng(2)
    sales, spend, spent = {"guarded": [], "on average": []}, {"guarded": [], "on average": []}, 0.0
    for now in range(hours):
        decision = agent.decide({})
        agent.learn(decision.id, **hour(PROBLEM.get_action_index(decision.action), chance))
        shares = list(decision.probabilities.values())
        paced = LEVELS.index("highest" if spent <= CAP * now else "low")
        spent += hour(paced, chance)["spend"]
        for who, mixture in (("guarded", shares), ("on average", np.eye(4)[paced])):
            sales[who].append(mixture @ SALES)
            spend[who].append(mixture @ SPEND)
    sales["today"] = np.full(hours, SALES[0])
    figure, _ = two_panels(sales, spend, ("spend", CAP), reward="expected sales of an hour", round_="hour")
    save(figure, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
