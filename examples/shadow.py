"""From shadow to live: a desk first only logs what it would do, then does it for a tenth, for half, for everybody.

python examples/shadow.py            # the real service, in a process of its own, on a port of its own
"""

import sys

import numpy as np

from picture import save, two_panels
from served import served

PROBLEM = """
actions = ["nothing", "digest", "offer"]
safe = "nothing"
reward = { name = "click" }
limits = { opt_out = { at_most = 0.05, safe = 0.0 } }
"""
NAMES = ["nothing", "digest", "offer"]
CLICKS, OPT_OUTS = np.array([0.0, 0.06, 0.12]), np.array([0.0, 0.01, 0.03])  # of a user, in truth
STAGES = {
    "shadow": {"mode": "shadow"},
    "canary 10 %": {"mode": "canary", "share": 0.1},
    "canary 50 %": {"mode": "canary", "share": 0.5},
    "live": {"mode": "live"},
}


def main(path: str = "results/gallery/shadow.png", users: int = 12_000) -> None:
    """Open a desk stage by stage, and draw what users were served."""
    people, told = np.random.default_rng(1), []
    with served(PROBLEM, safe="nothing") as (client, change):
        for stage in STAGES.values():
            change(**stage)
            for _ in range(users // len(STAGES) // 50):
                decisions, outcomes = client.decide_all([{}] * 50), []
                for one in decisions:
                    sent = NAMES.index(one.action)
                    click, left = people.random(2) < (CLICKS[sent], OPT_OUTS[sent])
                    outcomes.append({"decision_id": one.decision_id, "click": bool(click), "opt_out": bool(left)})
                    shares = [one.probabilities.get(name, 0.0) for name in NAMES]
                    told.append((shares @ CLICKS, shares @ OPT_OUTS))
                client.learn_all(outcomes)
    clicks, opt_outs = np.array(told).T
    earned, paid = {"guarded": clicks}, {"guarded": opt_outs}
    figure, (left, _) = two_panels(earned, paid, ("opt_out", 0.05), reward="expected clicks a user", round_="user")
    for place, stage in enumerate(STAGES):
        left.axvline(place * users / 4, color="#999999", linewidth=0.8)
        left.annotate(f" {stage}", (place * users / 4, 0.98), xycoords=("data", "axes fraction"), fontsize=8, va="top")
    save(figure, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
