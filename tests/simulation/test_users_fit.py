"""A problem and a world whose users are told of otherwise: refused in a sentence, before a kernel reads anything."""

from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refuses

import stagewise as sw

SAID = sw.Problem(
    actions=["nothing", "digest", "offer"],
    safe="nothing",
    context=["age", "opens"],
    reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.02, safe=0.0)},
)


def world(actions: int = 3, width: int = 3, **told: Any) -> sw.ContextWorld:
    means = {"reward": np.full((actions, width), 0.05), "cost": np.zeros((actions, width))}
    return sw.ContextWorld(**means, **{"features": "plain"} | told)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (world(actions=2), ["actions: the problem has 3 and the world 2"]),
        (world(actions=4), ["actions: the problem has 3 and the world 4"]),
        (world(width=2), ["numbers about a user: the problem has 2 and the world 1", "a constant"]),
        (world(segments=[0.5, 0.5], offsets=np.zeros((2, 3, 2))), ["divisions into segments: the problem has 0"]),
        (world(safe=1), ["the world's safe action is 1, and the problem's 0"]),
        (world(features="crossed"), ['features="plain"']),
        (sw.ArmsWorld(reward=[0.1] * 3, cost=[0.0] * 3), ["the world is ArmsWorld", 'features="plain"']),
    ],
)
@pytest.mark.parametrize("backend", ["cpu", "python"])
def test_users_that_do_not_fit_are_refused(other: Any, words: list[str], backend: str) -> None:
    refuses(lambda: sw.simulate(SAID, other, rounds=5, backend=backend, progress=False), sw.InvalidProblem, *words)
    if backend == "cpu":
        refuses(lambda: sw.certify(SAID, other, rounds=5, runs=2), sw.InvalidProblem, *words)


def test_costs_of_another_number_are_refused_in_words() -> None:
    two = sw.ContextWorld(reward=np.full((3, 3), 0.05), cost=np.zeros((2, 3, 3)), features="plain")
    refuses(
        lambda: sw.simulate(SAID, two, rounds=5, progress=False),
        sw.InvalidProblem,
        "the policy has 1 limit and the world 2 costs",
    )


def test_users_that_fit_are_played() -> None:
    assert sw.simulate(SAID, world(), rounds=5, backend="python", progress=False).violations.sum() == 0
