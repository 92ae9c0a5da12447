"""Worlds at their doors: an action that is none, means that outcomes cannot have, families around the wrong base."""

from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.worlds.world_families import build_world

LINEAR = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.RaySet(np.eye(2)), noise=0.1)
ARMS = sw.ArmsWorld(reward=[0.1, 0.7], cost=[0.0, 0.2])
TABLE = sw.FiniteSetWorld(features=[[0.0], [1.0]], reward=[0.1, 0.7], cost=[0.0, 0.2])
WORLDS = {"linear": LINEAR, "arms": ARMS, "table": TABLE}


@pytest.mark.parametrize(
    ("name", "action"),
    [
        *[("linear", action) for action in ([1.0], np.ones(50), np.eye(2), 1.0, [np.nan, 0.0], [np.inf, 0.0], "ab")],
        *[("arms", action) for action in (-1, 2, 1.7, True, "x", None, [0])],
        *[("table", action) for action in ([2.0], [np.nan], [[0.0]], "x", None, [0.0, 0.0])],
    ],
)
def test_an_action_that_is_none_is_refused(name: str, action: Any) -> None:
    with refused(sw.InvalidActions):
        WORLDS[name].means(action)
    with refused(sw.InvalidActions):
        WORLDS[name].outcome(action, sw.RandomKey())


@pytest.mark.parametrize("outcomes", ["bernoulli", "clipped-gaussian"])
@pytest.mark.parametrize("means", [[0.1, 1.5], [-0.1, 0.5]])
def test_means_that_such_outcomes_cannot_have_are_refused(outcomes: str, means: list[float]) -> None:
    with refused(sw.InvalidProblem, ErrorCode.OUT_OF_RANGE, outcomes):
        sw.ArmsWorld(reward=means, cost=[0.0, 0.0], outcomes=outcomes)
    with refused(sw.InvalidProblem, ErrorCode.OUT_OF_RANGE, outcomes):
        sw.FiniteSetWorld(features=[[0.0], [1.0]], reward=[0.0, 0.0], cost=means, outcomes=outcomes)


@pytest.mark.parametrize("words", [["gaussian"], None, "cauchy", 0])
def test_kinds_of_noise_are_words(words: Any) -> None:
    with refused(sw.InvalidProblem, ErrorCode.INVALID_CHOICE):
        sw.LinearWorld(reward=[1.0], cost=[1.0], actions=sw.BallSet(1.0), noise=0.1, outcomes=words)
    with refused(sw.InvalidProblem, ErrorCode.INVALID_CHOICE):
        sw.ArmsWorld(reward=[0.1], cost=[0.1], outcomes=words)


@pytest.mark.parametrize("safe", [-1, 2, 0.5, "0", True])
def test_the_safe_arm_of_a_family_is_one_of_its_arms(safe: Any) -> None:
    with refused(sw.InvalidProblem, ErrorCode.OUT_OF_RANGE if type(safe) is int else ErrorCode.WRONG_TYPE):
        sw.ArmsWorldFamily(ARMS, safe=safe)


@pytest.mark.parametrize("family", [sw.LinearWorldFamily, sw.ArmsWorldFamily])
def test_a_family_is_drawn_around_a_world_of_its_kind(family: Any) -> None:
    with refused(sw.InvalidProblem, ErrorCode.WORLD_MISMATCH):
        family(TABLE)


TOLD: dict[str, Any] = {"reward": [0.1, 0.2], "cost": {"opt_out": [0.0, 0.1]}}
COINS: dict[str, Any] = {
    "arms": lambda **more: sw.ArmsWorld(**TOLD, **more),
    "a table": lambda **more: sw.FiniteSetWorld(**TOLD, features=[[0.0], [1.0]], outcomes="bernoulli", **more),
    "linear": lambda **more: sw.LinearWorld(**TOLD, actions=sw.RaySet([[1.0, 0.0]]), outcomes="bernoulli", **more),
    "users": lambda **more: sw.ContextWorld(reward=[[0.1], [0.2]], cost=[[0.0], [0.1]], **more),
}


@pytest.mark.parametrize("made", COINS.values(), ids=COINS)
def test_a_noise_that_nobody_would_read_is_refused(made: Any) -> None:
    made()
    with refused(sw.InvalidProblem, ErrorCode.UNUSED_SETTING):
        made(noise=0.9)


@pytest.mark.parametrize("made", COINS.values(), ids=COINS)
def test_a_world_of_coins_that_told_a_noise_is_built_again_as_it_was(made: Any) -> None:
    """Certificates tell one: such worlds took it, and did not read it."""
    told = made().description()
    noise = told["noise"]
    then = {**told, "noise": dict.fromkeys(noise, 0.9) if isinstance(noise, dict) else [0.9] * len(noise)}
    assert build_world(then).description() == then


def test_a_linear_world_asks_for_its_noise() -> None:
    with refused(sw.InvalidProblem, ErrorCode.MISSING_VALUE):
        sw.LinearWorld(**TOLD, actions=sw.RaySet([[1.0, 0.0]]), outcomes="rademacher")
