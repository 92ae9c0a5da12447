"""A problem and a world whose users are told of otherwise: refused in a sentence, before a kernel reads anything."""

from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused, refuses

import stagewise as sw
from stagewise.problem.errors import ErrorCode

SAID = sw.Problem(
    action_names=["nothing", "digest", "offer"],
    safe_name="nothing",
    context=["age", "opens"],
    reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.02, safe_bound=0.0, model="rates")},
)


def world(actions: int = 3, width: int = 3, **told: Any) -> sw.ContextWorld:
    means = {"reward": np.full((actions, width), 0.05), "cost": np.zeros((actions, width))}
    return sw.ContextWorld(**means, **{"features": "plain"} | told)


@pytest.mark.parametrize(
    "other",
    [
        world(actions=2),
        world(actions=4),
        world(width=2),
        world(segments=[0.5, 0.5], segment_offsets=np.zeros((2, 3, 2))),
        world(safe=1),
        world(features="crossed"),
        sw.ArmsWorld(reward=[0.1] * 3, cost=[0.0] * 3),
    ],
    ids=["2 actions", "4 actions", "width", "segments", "safe", "crossed", "arms"],
)
@pytest.mark.parametrize("backend", ["cpu", "python"])
def test_users_that_do_not_fit_are_refused(other: Any, backend: str) -> None:
    with refused(sw.InvalidProblem, ErrorCode.WORLD_MISMATCH):
        sw.simulate(SAID, other, rounds=5, backend=backend, progress=False)  # type: ignore[arg-type]
    if backend == "cpu":
        with refused(sw.InvalidProblem, ErrorCode.WORLD_MISMATCH):
            sw.certify(SAID, other, rounds=5, runs=2)


def test_costs_of_another_number_are_refused_in_words() -> None:
    two = sw.ContextWorld(reward=np.full((3, 3), 0.05), cost=np.zeros((2, 3, 3)), features="plain")
    refuses(lambda: sw.simulate(SAID, two, rounds=5, progress=False), sw.InvalidProblem, ErrorCode.WORLD_MISMATCH)


def test_users_that_fit_are_played() -> None:
    assert sw.simulate(SAID, world(), rounds=5, backend="python", progress=False).violations.sum() == 0
