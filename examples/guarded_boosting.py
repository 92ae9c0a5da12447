"""Gradient boosting proposes who gets which message; a guard keeps the opt-outs of every risk group under their limit.

Two models of scikit-learn are trained on half of a log of random messages: one of clicks, which is trained again every
week, and one of opt-outs, whose quintiles are the groups. The guard learns the other half. The groups stay as they are:
those of a new model would be new groups, about which nothing is known.

python examples/guarded_boosting.py
"""

import sys
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier

import stagewise as sw
from picture import save, two_panels

ACTIONS = ["nothing", "digest", "offer", "sale"]
Rows = tuple[Any, ...]  # users, actions, clicks and opt-outs
LIMIT, GROUPS, WEEK = 0.02, 5, 7


def draw_users(people: Any, count: int) -> Any:
    """Return users (n, 4): how active, how patient, how new, and their age, each in [0, 1]."""
    return people.random((count, 4))


def compute_truth(users: Any) -> tuple[Any, Any]:
    """Return the true rates (n, actions) of clicks and of opt-outs, which no model is told."""
    active, patient, new, age = users.T
    fits = np.column_stack([0.4 + 0.0 * age, 0.7 + 0.6 * (age > 0.5), 0.6 + 1.2 * active * (new > 0.3)])
    clicks = np.array([0.08, 0.11, 0.14]) * fits
    annoyed = np.exp(2.2 * (1.0 - patient) * (0.4 + new) - 1.3)
    leaves = np.array([0.004, 0.012, 0.024]) * annoyed[:, None]
    nothing = np.zeros((len(users), 1))
    return np.hstack([nothing, clicks]), np.hstack([nothing, leaves])


class Model:
    """A model of one outcome of a message, by gradient boosting on the user and the message."""

    def __init__(self, users: Any, actions: Any, outcomes: Any) -> None:
        sent = actions > 0
        self.trees = GradientBoostingClassifier(n_estimators=60, max_depth=3, subsample=0.5, random_state=0)
        self.trees.fit(np.column_stack([users, actions])[sent], outcomes[sent])

    def predict(self, users: Any) -> Any:
        """Return the predicted rates (n, actions); nothing is sent, nothing happens."""
        sent = [np.column_stack([users, np.full(len(users), action)]) for action in range(1, len(ACTIONS))]
        return np.column_stack([np.zeros(len(users)), *(self.trees.predict_proba(rows)[:, -1] for rows in sent)])


def play(who: str, log: Rows, held_out: Rows, days: int, daily: int) -> tuple[list[float], list[float]]:
    """Return each day's expected clicks of a user, and the expected opt-outs of a user of the worst group."""
    people, model, risk = np.random.default_rng(3), Model(*log[:3]), Model(log[0], log[1], log[3])
    cuts = np.quantile(risk.predict(log[0]).mean(axis=1), np.linspace(0.0, 1.0, GROUPS + 1)[1:-1])
    limits = {"opt_out": sw.Limit(LIMIT, safe_bound=0.0, by="risk_group")}
    agent = sw.Agent(sw.Problem(action_names=ACTIONS, safe_name="nothing", limits=limits), seed=1)
    groups = np.searchsorted(cuts, risk.predict(held_out[0]).mean(axis=1)).astype(str)
    agent.learn_log_frame({"action": np.array(ACTIONS)[held_out[1]], "risk_group": groups, "opt_out": held_out[3]})
    seen, earned, paid = [log[:3]], [], []
    for day in range(days):
        if day and day % WEEK == 0:
            model = Model(*(np.concatenate(columns) for columns in zip(*seen, strict=True)))
        users = draw_users(people, daily)
        clicks, leaves = compute_truth(users)
        groups, scores = np.searchsorted(cuts, risk.predict(users).mean(axis=1)).astype(str), model.predict(users)
        played, shares = scores.argmax(axis=1), np.eye(len(ACTIONS))[scores.argmax(axis=1)]
        for i in range(daily if who != "unguarded" else 0):
            wanted = {"propose": ACTIONS[played[i]]}
            if who == "scores":
                wanted = {"scores": dict(zip(ACTIONS, scores[i].tolist(), strict=True))}
            decision = agent.decide({"risk_group": groups[i]}, **wanted)
            played[i], shares[i] = decision.action_index, list(decision.probabilities.values())
            agent.learn(decision.id, opt_out=people.random() < leaves[i, played[i]])
        seen.append((users, played, people.random(daily) < clicks[np.arange(daily), played]))
        earned.append(float((shares * clicks).sum(axis=1).mean()))
        costs = (shares * leaves).sum(axis=1)
        paid.append(max(float(costs[groups == group].mean()) for group in np.unique(groups)))
    if who != "unguarded":
        print("\n".join(str(agent.report()).splitlines()[:12]))
    return earned, paid


def main(
    path: str = "results/gallery/guarded_boosting.png", days: int = 42, daily: int = 400, rows: int = 12_000
) -> None:
    """Send the same users what the model wants, unguarded and guarded."""
    people = np.random.default_rng(2)
    users, actions = draw_users(people, rows), people.integers(0, len(ACTIONS), rows)
    log = (users, actions, *(people.random(rows) < rates[np.arange(rows), actions] for rates in compute_truth(users)))
    halves = [tuple(column[half] for column in log) for half in (slice(0, None, 2), slice(1, None, 2))]
    earned, paid = {}, {}
    for who in ("unguarded", "propose", "scores"):
        earned[who], paid[who] = play(who, *halves, days, daily)
    figure, _ = two_panels(earned, paid, ("opt_out", LIMIT), reward="expected clicks of a user", round_="day")
    save(figure, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
