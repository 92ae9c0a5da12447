"""Which price, when the share of visitors who buy may not fall below a floor? How demand falls is not known.

python examples/price.py
"""

import sys

import numpy as np

import stagewise as sw
from picture import save, two_panels

TODAY, HIGHEST, FLOOR = 12.0, 20.0, 0.33
RISES = np.append(np.linspace(0.125, 1.0, 8), 0.0)  # of the way from today's price to the highest; last, today's
PRICES = TODAY + (HIGHEST - TODAY) * RISES
FEATURES = np.column_stack([np.ones(9), RISES, RISES**2])  # demand is a line in the price, so revenue is a parabola
BUYS = 0.40 - 0.12 * RISES  # nobody knows it; that 40 of 100 buy today is known
REVENUE = PRICES * BUYS / HIGHEST  # in [0, 1]
SETTINGS = {
    "safe_action": sw.SafeAction(features=FEATURES[-1], reward=REVENUE[-1], cost={"share who buy": BUYS[-1]}),
    "threshold": {"share who buy": sw.AtLeast(FLOOR)},
    "noise": 0.5,
    "norm_bound": 0.5,
}
POLICIES = {
    "guarded": sw.SafePosteriorSampling(**SETTINGS, mixtures=True, bounded_outcomes=True),
    "unguarded": sw.LinUCB(**SETTINGS),
}


def main(path: str = "results/gallery/price.png", visitors: int = 20_000) -> None:
    """Show each visitor a price, and draw what was to be expected of it."""
    revenue, buys = {}, {}
    for who, policy in POLICIES.items():
        agent, chance = sw.Agent(policy, seed=1), np.random.default_rng(2)
        shares = []  # of the prices in each draw: the floor holds for what is drawn from
        for _ in range(visitors):
            decision = agent.decide(sw.FiniteSet(FEATURES[:-1]))
            shown = -1 if decision.action_index is None else decision.action_index  # today's price is the last
            bought = float(chance.random() < BUYS[shown])
            agent.learn(decision, reward=PRICES[shown] * bought / HIGHEST, cost={"share who buy": bought})
            shares.append(decision.probabilities if who == "guarded" else np.eye(9)[shown])
        revenue[who], buys[who] = HIGHEST * (shares @ REVENUE), shares @ BUYS
    revenue["today"] = np.full(visitors, HIGHEST * REVENUE[-1])
    words = {"reward": "expected revenue, €", "round_": "visitor", "at_most": False, "zero": False}
    figure, _ = two_panels(revenue, buys, ("share who buy", FLOOR), **words)
    save(figure, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
