"""A campaign in which one template's opt-outs double: who is held back, and how soon the others' clicks are back.

Usage: python benchmarks/drift_campaign.py [--nights 14] [--users 20000]

Five templates, a limit of 1.5 % on opt-outs, a log of 40,000 rows; from night 7 on the opt-outs of "offer" double to
1.8 %. Every night's users get actions drawn from the night's decisions, and all outcomes are learned before the next
night.
"""

import argparse

import numpy as np

import stagewise as sw
from stagewise.problem.timing import DAY

TEMPLATES = ["plain", "emoji", "story", "offer", "urgent"]
CLICKS = np.array([0.045, 0.055, 0.06, 0.075, 0.07])
OPT_OUTS = np.array([0.0055, 0.0065, 0.0075, 0.0090, 0.0125])
LIMIT, CHANGED, NIGHT, DRAWS, START = 0.015, 3, 6, 100, 1_763_000_000.0


def run_campaign(drift: str | None, nights: int, users: int) -> None:
    """Print every night's shares, cost and clicks beside what is attainable."""
    limit = sw.Limit(LIMIT, safe_bound=0.009, drift=drift)
    problem = sw.Problem(
        action_names=TEMPLATES, safe_name="plain", reward=sw.Reward("click"), limits={"opt_out": limit}
    )
    agent, rng = sw.Agent(problem, seed=3), np.random.default_rng(1)

    def learn(actions: np.ndarray, rates: np.ndarray, at: np.ndarray) -> None:
        count = actions.size
        log = {"action": [TEMPLATES[action] for action in actions], "click": rng.random(count) < CLICKS[actions]}
        log["opt_out"] = rng.random(count) < rates[actions]
        agent.learn_log_frame(log if drift is None else {**log, "at": at}, again=True)

    start = START - 30 * DAY
    learn(rng.choice(5, 40_000, p=[0.5, 0.15, 0.1, 0.2, 0.05]), OPT_OUTS, start + np.arange(40_000) * 30 * DAY / 40_000)
    print(f"drift={drift!r}: night | share of the attainable clicks | shares | mean cost | decisions over the limit")
    for night in range(1, nights + 1):
        now, rates = START + night * DAY, OPT_OUTS.copy()
        if night > NIGHT:
            rates[CHANGED] *= 2.0
        made = [agent.decide(now=now) for _ in range(DRAWS)]
        shares = np.array([list(one.probabilities.values()) for one in made])
        for one in made:
            agent.cancel(one)
        drawn = rng.integers(0, DRAWS, users)
        actions = np.array([rng.choice(5, p=shares[draw] / shares[draw].sum()) for draw in drawn])
        learn(actions, rates, now + np.arange(users) * 0.1)
        costs, best = shares @ rates, CLICKS[rates <= LIMIT].max()
        gain = ((shares @ CLICKS).mean() - CLICKS[0]) / (best - CLICKS[0])
        warnings = [f"{one.name} {one.verdict}" for one in agent.health() if one.verdict in ("warning", "contradicted")]
        print(f"{night} | {gain:.2f} | {np.round(shares.mean(0), 2)} | {costs.mean():.4f} | "
              f"{(costs > LIMIT + 1e-12).mean():.2f} | {'; '.join(warnings)}", flush=True)  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--nights", type=int, default=14)
    parser.add_argument("--users", type=int, default=20_000)
    given = parser.parse_args()
    for declared in ("jumps", None):
        run_campaign(declared, given.nights, given.users)
