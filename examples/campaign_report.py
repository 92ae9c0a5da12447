"""A running campaign, looked at: from a logged frame to a report with its picture, and a change that is noticed.

python examples/campaign_report.py
"""

from typing import Any

import numpy as np

import stagewise as sw

NAMES = ["nothing", "digest", "offer", "reminder"]
CLICKS, LEAVES = np.array([0.00, 0.06, 0.12, 0.05]), np.array([0.000, 0.004, 0.012, 0.002])
SAFE = sw.SafeAction(arm=0, reward=0.0, cost=0.0)
POLICY = sw.OPB(arms=len(NAMES), safe_action=SAFE, threshold={"opt_out": 0.02}, interval="kl")


def logged(rows: int, people: np.random.Generator) -> dict[str, Any]:
    """Return what was sent before, as a frame would hold it."""
    sent = people.integers(0, len(NAMES), rows)
    return {
        "opted_out": people.random(rows) < LEAVES[sent],
        "template": np.array(NAMES, dtype=object)[sent],
        "click": people.random(rows) < CLICKS[sent],
    }


def served(agent: sw.Agent, rounds: int, people: np.random.Generator, leaves: Any) -> str | None:
    """Play, and return why it stopped, if it did."""
    for _ in range(rounds):
        decision = agent.decide(sw.ArmSet(len(NAMES)))
        arm = decision.action
        agent.learn(decision, reward=people.random() < CLICKS[arm], cost=people.random() < leaves[arm])
        if decision.message is not None:
            return decision.message
    return None


def main(rows: int = 50_000, rounds: int = 20_000) -> None:
    """Learn a log, serve, report; then opt-outs rise to six times what they were, and the agent stops."""
    people, agent = np.random.default_rng(1), sw.Agent(POLICY, seed=7)
    agent.learn_log_frame(
        logged(rows, people), action="template", names=NAMES, reward="click", costs={"opt_out": "opted_out"}
    )
    served(agent, rounds, people, LEAVES)
    report = agent.report(NAMES)
    print(report)
    print(agent.health())
    print(served(agent, 3 * rounds, people, np.minimum(6.0 * LEAVES, 1.0)))


if __name__ == "__main__":
    main()
