"""Which message for this user, when at most 2 of 100 users of any moment may be expected to opt out?

python examples/opt_outs.py
"""

import sys

import numpy as np

import stagewise as sw
from picture import save, two_panels

PROBLEM = sw.Problem(
    action_names=["nothing", "digest", "offer", "sale"],
    safe_name="nothing",  # what is done today
    context={"age": (18, 99), "opens_7d": (0, 7)},
    reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.02, safe_bound=0.0, model="rates")},
)
OPT_OUTS = np.array([0.0, 0.006, 0.012, 0.035])  # in truth, which only this program knows


def clicks(age: float, opens: float) -> np.ndarray:
    """Return what each message is worth for this user: the young like offers, faithful readers the digest."""
    return np.array([0.0, 0.04 + 0.02 * opens, 0.26 - 0.002 * age, 0.30 - 0.002 * age])


def main(path: str = "results/gallery/opt_outs.png", users: int = 30_000) -> None:
    """Serve users one by one; each outcome is reported separately, by the id of its decision."""
    agent, people = sw.Agent(PROBLEM, seed=1), np.random.default_rng(2)
    earned, most, left = [], [], []
    for _ in range(users):
        age, opens = people.uniform(18, 99), people.uniform(0, 7)
        decision = agent.decide({"age": age, "opens_7d": opens})
        click_rates, sent = clicks(age, opens), PROBLEM.get_action_index(decision.action)
        agent.learn(decision.id, click=people.random() < click_rates[sent])
        agent.learn(decision.id, opt_out=people.random() < OPT_OUTS[sent])
        shares = np.array(list(decision.probabilities.values()))
        sale = (0.02 - OPT_OUTS[:3]) / (0.035 - OPT_OUTS[:3])  # how much of it the limit allows beside each other one
        earned.append(shares @ click_rates)
        most.append(np.max(sale * click_rates[3] + (1.0 - sale) * click_rates[:3]))
        left.append(shares @ OPT_OUTS)
    clicked = {"possible under the limit": most, "guarded": earned}
    figure, _ = two_panels(
        clicked, {"guarded": left}, ("opt_out", 0.02), reward="expected clicks a user", round_="user"
    )
    save(figure, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
