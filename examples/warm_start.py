"""What is a log worth? The same weeks begun from nothing, and from 20,000 rows of what was sent before.

python examples/warm_start.py
"""

import sys
from typing import Any

import numpy as np

import stagewise as sw
from picture import save, two_panels

NAMES = ["today", "short", "story", "offer"]
CLICKS = np.array([[0.05, 0.00], [0.06, 0.02], [0.07, -0.02], [0.11, 0.03]])  # a constant, and by how mobile users are
COMPLAINTS = np.array([0.001, 0.002, 0.004, 0.012])
PROBLEM = sw.Problem(
    action_names=NAMES,
    safe_name="today",
    context=["mobile"],  # in [-1, 1]
    reward=sw.Reward("click"),
    limits={"complaint": sw.Limit(0.01, safe_bound=0.002, model="rates")},
)


def log(rows: int, people: np.random.Generator) -> dict[str, Any]:
    """Return a log as a frame would hold it; no template was chosen by looking at what came of it."""
    sent, mobile = people.integers(0, 4, rows), people.uniform(-1, 1, rows)
    clicks = CLICKS[sent, 0] + CLICKS[sent, 1] * mobile
    return {
        "mobile": mobile,
        "action": np.array(NAMES, dtype=object)[sent],
        "click": people.random(rows) < clicks,
        "complaint": people.random(rows) < COMPLAINTS[sent],
    }


def main(path: str = "results/gallery/warm_start.png", users: int = 12_000, rows: int = 20_000) -> None:
    """Serve the same users twice."""
    clicks, complaints = {}, {}
    for who in ("from nothing", "from the log"):
        agent, people = sw.Agent(PROBLEM, seed=1), np.random.default_rng(2)
        if who == "from the log":
            agent.learn_log_frame(log(rows, np.random.default_rng(3)))
        served = []
        for mobile in people.uniform(-1, 1, users):
            decision = agent.decide({"mobile": mobile})
            click_rates, index = CLICKS @ [1.0, mobile], NAMES.index(decision.action)
            agent.learn(
                decision.id, click=people.random() < click_rates[index], complaint=people.random() < COMPLAINTS[index]
            )
            shares = np.array(list(decision.probabilities.values()))
            served.append((shares @ click_rates, shares @ COMPLAINTS))
        clicks[who], complaints[who] = np.array(served).T
    clicks["today"] = np.full(users, CLICKS[0, 0])
    figure, _ = two_panels(clicks, complaints, ("complaint", 0.01), reward="expected clicks a user", round_="user")
    save(figure, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
