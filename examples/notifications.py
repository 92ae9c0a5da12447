"""Five messages, at most 2 % may opt out: plan it, prove it, run it (docs/tutorials/arms.md walks through this file).

python examples/notifications.py
"""

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

import stagewise as sw

MESSAGES = ["nothing", "digest", "breaking news", "offer", "reminder"]
GUESS = sw.ArmsWorld(
    reward=[0.00, 0.06, 0.09, 0.12, 0.05],  # clicks: a guess, from earlier campaigns
    cost=[0.000, 0.010, 0.030, 0.015, 0.002],  # opt-outs
    outcomes="bernoulli",
)
POLICY = sw.OPB(
    arms=len(MESSAGES),
    safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0),  # sending nothing: nobody clicks, nobody leaves
    threshold={"opt_out": 0.02},
    delta=0.05,
)


def plan(rounds: int = 200_000, runs: int = 4) -> None:
    """How much would be gained, how fast, and what would an unguarded policy do?"""
    unguarded = sw.UCB(arms=len(MESSAGES), safe_action=POLICY.safe_action, threshold={"opt_out": 0.02})
    best = 0.12
    for name, policy in [("guarded", POLICY), ("unguarded", unguarded)]:
        result = sw.simulate(policy, GUESS, rounds=rounds, runs=runs, record_points=20, progress=False)
        clicks = best - result.regret[:, -1].mean() / rounds
        above = f"{result.violations.mean():,.0f} rounds above 2 %"
        print(f"{name:>10}: {clicks:.3f} clicks a user of {best} possible; {above}")


def prove(out: Path, rounds: int = 20_000, runs: int = 2_000) -> None:
    """A certificate to show: how often does a campaign break the cap, if rates are anything up to twice the guess?"""
    certificate = sw.certify(
        POLICY, sw.ArmsWorldFamily(GUESS, spread=1.0), rounds=rounds, runs=runs, progress=False, out=out
    )
    print(certificate)


def serve(days: int = 30, users: int = 5_000) -> None:
    """A campaign: outcomes come a day late, and the process is restarted every night."""
    people = np.random.default_rng(1)  # stands in for the users
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "agent.json"
        sw.Agent(POLICY, seed=7).save(state)
        yesterday: list[tuple[int, int]] = []
        for day in range(1, days + 1):
            agent = sw.Agent.load(state, policy=POLICY)  # with the decisions that still wait for their outcomes
            for round_, message in yesterday:
                clicked, left = people.random() < GUESS.table[0, message], people.random() < GUESS.table[1, message]
                agent.learn(round_, reward=float(clicked), cost={"opt_out": float(left)})
            decisions = [agent.decide(sw.ArmSet(len(MESSAGES))) for _ in range(users)]
            yesterday = [(decision.round, decision.action) for decision in decisions]
            agent.save(state)
            if day in (1, 2, 5, 10, days):
                sent, last = Counter(MESSAGES[message] for _, message in yesterday), decisions[-1]
                shares = ", ".join(f"{name} {count / users:.0%}" for name, count in sent.most_common(3))
                print(
                    f"day {day:>2}: {shares}; opt-outs at most {last.pessimistic_cost[0]:.4f}; "
                    f"{last.message or 'mixture played'}"
                )
        print(decisions[-1].explain())


if __name__ == "__main__":
    plan()
    prove(Path("certificate"))
    serve()
