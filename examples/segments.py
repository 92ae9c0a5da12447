"""Which shelf to recommend, when dislikes are limited in every group of users: not for all of them together.

python examples/segments.py
"""

import sys

import numpy as np

import stagewise as sw
from picture import save, two_panels

SHELVES, GROUPS = ["popular", "new", "bold"], ["kids", "adults", "seniors"]
LIKES = np.array([[0.30, 0.40, 0.55], [0.30, 0.42, 0.60], [0.35, 0.45, 0.40]])  # of each group, by shelf
DISLIKES = np.array([[0.02, 0.06, 0.25], [0.02, 0.05, 0.06], [0.03, 0.08, 0.14]])  # a limit for each: 10 of 100
SHARES = [0.15, 0.6, 0.25]  # of the groups: kids are few, and an average over all users hides them


def problem(by: str | None) -> sw.Problem:
    """Return the problem with dislikes counted by group, or all together."""
    return sw.Problem(
        action_names=SHELVES,
        safe_name="popular",
        reward=sw.Reward("like", by="group"),
        limits={"dislike": sw.Limit(0.10, safe_bound=0.03, by=by, model="rates")},
    )


def main(path: str = "results/gallery/segments.png", users: int = 15_000) -> None:
    """Recommend to the same users with the limit in every group, and with one for all of them."""
    liked, disliked = {}, {}
    for who, by in (("guarded", "group"), ("one limit for all", None)):
        agent, people = sw.Agent(problem(by), seed=1), np.random.default_rng(2)
        served = []
        for group in people.choice(3, users, p=SHARES):
            decision = agent.decide({"group": GROUPS[group]})
            chances = LIKES[group], DISLIKES[group]
            like, dislike = (people.random() < chance[SHELVES.index(decision.action)] for chance in chances)
            agent.learn(decision.id, like=like, dislike=dislike)
            shares = np.array(list(decision.probabilities.values()))
            served.append((group, *(shares @ chance for chance in chances)))
        groups, liked[who], costs = np.array(served).T
        for index in range(3) if by else [0]:
            name = GROUPS[index] if by else "kids, one limit for all"
            disliked[name] = costs[groups == index]  # as many as the group has
    figure, _ = two_panels(liked, disliked, ("dislike", 0.10), reward="expected likes of a user", round_="user")
    save(figure, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
