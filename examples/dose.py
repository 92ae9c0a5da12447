"""How much of two drugs, alone or together, when side effects must stay under a limit for every single patient?

python examples/dose.py
"""

import sys

import numpy as np

import stagewise as sw
from picture import save, two_panels

RESPONSE, HARM = np.array([0.5, 0.6]), np.array([0.6, 0.45])  # by dose of each drug: nobody knows them
DOSES = sw.RaySet([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]])  # the one, the other, both: these, or any part of them
PLACEBO = sw.SafeAction(features=[0.0, 0.0])
LIMIT = {"side_effect": 0.3}
POLICIES = {
    "guarded": sw.SafePosteriorSampling(safe_action=PLACEBO, threshold=LIMIT, noise=0.2),
    "unguarded": sw.LinUCB(safe_action=PLACEBO, threshold=LIMIT, noise=0.2),
}


def main(path: str = "results/gallery/dose.png", patients: int = 4_000) -> None:
    """Treat patients by both policies, and draw what was to be expected for each."""
    response, harm = {"possible under the limit": np.full(patients, 0.4)}, {}
    for who, policy in POLICIES.items():
        agent, chance = sw.Agent(policy, seed=1), np.random.default_rng(2)
        doses = []
        for _ in range(patients):
            decision = agent.decide(DOSES)
            dose = decision.action
            outcome = [dose @ RESPONSE, dose @ HARM] + 0.2 * chance.normal(size=2)
            agent.learn(decision, reward=outcome[0], cost={"side_effect": outcome[1]})
            doses.append(dose)
        response[who], harm[who] = doses @ RESPONSE, doses @ HARM
    figure, _ = two_panels(response, harm, ("side_effect", 0.3), reward="expected response", round_="patient")
    save(figure, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
