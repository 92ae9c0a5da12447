"""The safe action: a vector or an arm, and what is known of it."""

import math
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

from stagewise import InvalidProblem, SafeAction

NAN, INF = math.nan, math.inf

BAD_FEATURES = {
    "nan": ([0.0, NAN], ["nan", "(1,)", "finite"]),
    "infinity": ([INF, 0.0], ["inf", "(0,)", "finite"]),
    "both infinities": ([INF, -INF], ["inf", "finite"]),
    "text": ("zero", ["<U4", "real numbers"]),
    "texts": (["a", "b"], ["<U1", "real numbers"]),
    "objects": ([object()], ["object", "real numbers"]),
    "complex": ([1j, 0.0], ["complex128", "real numbers"]),
    "truth values": ([True, False], ["bool", "real numbers"]),
    "ragged": ([[0.0], [0.0, 1.0]], ["rectangular", "differ in length"]),
    "a table": ([[0.0, 1.0]], ["(1, 2)", "one vector"]),
    "a number": (1.0, ["()", "one vector"]),
    "empty": ([], ["(0,)", "one vector"]),
}


@pytest.mark.parametrize(("features", "parts"), BAD_FEATURES.values(), ids=BAD_FEATURES)
def test_features_that_are_no_vector_are_refused(features: Any, parts: list[str]) -> None:
    with refused(InvalidProblem, "the safe action's features", *parts):
        SafeAction(features=features)


@pytest.mark.parametrize("arm", [-1, 1.0, 0.5, "0", True, NAN, [0]], ids=repr)
def test_an_arm_that_is_no_number_of_one_is_refused(arm: Any) -> None:
    with refused(InvalidProblem, repr(arm), "counted from 0"):
        SafeAction(arm=arm)


def test_it_is_a_vector_or_an_arm_or_one_of_the_round() -> None:
    with refused(InvalidProblem, "either features", "or an arm", "or neither"):
        SafeAction(features=[0.0], arm=0)
    assert SafeAction(reward=0.5, cost=0.1).of_the_round
    assert not SafeAction(features=[0.0]).of_the_round
    assert not SafeAction(arm=0).of_the_round


@pytest.mark.parametrize(
    ("reward", "parts"),
    [
        (NAN, ["nan", "finite"]),
        (INF, ["inf", "finite"]),
        (-INF, ["-inf", "finite"]),
        ("0.5", ["'0.5'", "a number"]),
        (True, ["True", "a number"]),
        (np.True_, ["True", "a number"]),
        (0.5 + 0j, ["(0.5+0j)", "a number"]),
        (np.complex128(0.5 + 1j), ["0.5+1j", "a number"]),
        ([0.5], ["[0.5]", "a number"]),
        (np.array([0.5]), ["array([0.5])", "a number"]),
        (10**400, ["a number"]),
        (1.0000001, ["1.0000001", "at most 1", "divide"]),
        (25, ["25.0", "at most 1", "divide"]),
    ],
    ids=lambda value: None if isinstance(value, list) and len(value) > 1 else repr(value)[:20],
)
def test_a_reward_that_is_no_number_up_to_one_is_refused(reward: Any, parts: list[str]) -> None:
    with refused(InvalidProblem, "the safe action's reward", *parts):
        SafeAction(features=[0.5], reward=reward)


@pytest.mark.parametrize("reward", [1, 1.0, 0, -3.5, np.float32(0.5), np.int64(-2)], ids=repr)
def test_a_reward_up_to_one_is_taken(reward: Any) -> None:
    assert SafeAction(features=[0.5], reward=reward).reward == float(reward)


def test_settings_are_given_by_name_and_stay() -> None:
    with pytest.raises(TypeError):
        SafeAction([0.0, 0.0])
    with pytest.raises(AttributeError):
        SafeAction(arm=0).arm = 1


def test_features_are_copied_and_cannot_be_written_to() -> None:
    given = np.array([0.5, 0.5])
    safe = SafeAction(features=given)
    given[:] = 9.0
    assert safe.features.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        safe.features[0] = 1.0


@pytest.mark.parametrize(
    ("features", "origin"), [([0.0, 0.0], True), ([-0.0, 0], True), ([0.0, 1e-9], False)], ids=repr
)
def test_it_knows_whether_it_is_the_origin(features: list[float], origin: bool) -> None:
    assert SafeAction(features=features).is_origin is origin
    assert SafeAction(features=features).dimension == 2


@pytest.mark.parametrize("size", [1e-320, -1e-200])
def test_features_whose_square_cannot_be_told_are_refused(size: float) -> None:
    with refused(InvalidProblem, "the safe action", abs(size), "zero"):
        SafeAction(features=[0.0, size])


def test_an_arm_has_no_dimension_and_is_no_origin() -> None:
    assert SafeAction(arm=np.int64(2)).dimension == 0
    assert not SafeAction(arm=0).is_origin
