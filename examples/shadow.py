"""From shadow to live: the server first only logs its choices, then serves a tenth, half and all of the users.

python examples/shadow.py            # the real server, in a separate process
"""

import sys

import numpy as np

from picture import save, two_panels
from served import served

PROBLEM = """
action_names = ["nothing", "digest", "offer"]
safe_name = "nothing"
reward = { name = "click" }
limits = { opt_out = { at_most = 0.05, safe_bound = 0.0 } }
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
    """Open the experiment stage by stage, and draw what users were served."""
    people, expected = np.random.default_rng(1), []
    with served(PROBLEM, safe="nothing") as (client, change):
        for stage in STAGES.values():
            change(**stage)
            for _ in range(users // len(STAGES) // 50):
                decisions, outcomes = client.decide_many([{}] * 50), []
                for decision in decisions:
                    sent = NAMES.index(decision.action)
                    click, left = people.random(2) < (CLICKS[sent], OPT_OUTS[sent])
                    outcomes.append({"decision_id": decision.decision_id, "click": bool(click), "opt_out": bool(left)})
                    shares = [decision.probabilities.get(name, 0.0) for name in NAMES]
                    expected.append((shares @ CLICKS, shares @ OPT_OUTS))
                client.learn_many(outcomes)
    clicks, opt_outs = np.array(expected).T
    earned, paid = {"guarded": clicks}, {"guarded": opt_outs}
    figure, (left, _) = two_panels(earned, paid, ("opt_out", 0.05), reward="expected clicks a user", round_="user")
    for index, stage in enumerate(STAGES):
        left.axvline(index * users / 4, color="#999999", linewidth=0.8)
        left.annotate(f" {stage}", (index * users / 4, 0.98), xycoords=("data", "axes fraction"), fontsize=8, va="top")
    save(figure, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
