"""The safe action: a vector or an arm, and what is known of it."""

import math
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

from stagewise import InvalidProblem, SafeAction
from stagewise.problem.errors import ErrorCode

NAN, INF = math.nan, math.inf

BAD_FEATURES = {
    "nan": ([0.0, NAN], [ErrorCode.NOT_FINITE]),
    "infinity": ([INF, 0.0], [ErrorCode.NOT_FINITE]),
    "both infinities": ([INF, -INF], [ErrorCode.NOT_FINITE]),
    "text": ("zero", [ErrorCode.WRONG_TYPE]),
    "texts": (["a", "b"], [ErrorCode.WRONG_TYPE]),
    "objects": ([object()], [ErrorCode.WRONG_TYPE]),
    "complex": ([1j, 0.0], [ErrorCode.WRONG_TYPE]),
    "truth values": ([True, False], [ErrorCode.WRONG_TYPE]),
    "ragged": ([[0.0], [0.0, 1.0]], [ErrorCode.WRONG_SHAPE]),
    "a table": ([[0.0, 1.0]], [ErrorCode.WRONG_SHAPE]),
    "a number": (1.0, [ErrorCode.WRONG_SHAPE]),
    "empty": ([], [ErrorCode.WRONG_SHAPE]),
}


@pytest.mark.parametrize(("features", "parts"), BAD_FEATURES.values(), ids=BAD_FEATURES)
def test_features_that_are_no_vector_are_refused(features: Any, parts: list[object]) -> None:
    with refused(InvalidProblem, "the safe action's features", *parts):
        SafeAction(features=features)


@pytest.mark.parametrize("arm", [-1, 1.0, 0.5, "0", True, NAN, [0]], ids=repr)
def test_an_arm_that_is_no_number_of_one_is_refused(arm: Any) -> None:
    code = ErrorCode.OUT_OF_RANGE if type(arm) is int else ErrorCode.WRONG_TYPE
    with refused(InvalidProblem, code, repr(arm)):
        SafeAction(arm=arm)


def test_it_is_a_vector_or_an_arm_or_one_of_the_round() -> None:
    with refused(InvalidProblem, ErrorCode.SAFE_ACTION_INVALID):
        SafeAction(features=[0.0], arm=0)
    assert SafeAction(reward=0.5, cost=0.1).is_per_round
    assert not SafeAction(features=[0.0]).is_per_round
    assert not SafeAction(arm=0).is_per_round


@pytest.mark.parametrize(
    ("reward", "parts"),
    [
        (NAN, [ErrorCode.NOT_FINITE]),
        (INF, [ErrorCode.NOT_FINITE]),
        (-INF, [ErrorCode.NOT_FINITE]),
        ("0.5", [ErrorCode.WRONG_TYPE]),
        (True, [ErrorCode.WRONG_TYPE]),
        (np.True_, [ErrorCode.WRONG_TYPE]),
        (0.5 + 0j, [ErrorCode.WRONG_TYPE]),
        (np.complex128(0.5 + 1j), [ErrorCode.WRONG_TYPE]),
        ([0.5], [ErrorCode.WRONG_TYPE]),
        (np.array([0.5]), [ErrorCode.WRONG_TYPE]),
        (10**400, [ErrorCode.OUT_OF_RANGE]),
        (1.0000001, [ErrorCode.OUT_OF_RANGE]),
        (25, [ErrorCode.OUT_OF_RANGE]),
    ],
    ids=lambda value: None if isinstance(value, list) and len(value) > 1 else repr(value)[:20],
)
def test_a_reward_that_is_no_number_up_to_one_is_refused(reward: Any, parts: list[object]) -> None:
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
    with refused(InvalidProblem, ErrorCode.SAFE_ACTION_INVALID, abs(size)):
        SafeAction(features=[0.0, size])


def test_an_arm_has_no_dimension_and_is_no_origin() -> None:
    assert SafeAction(arm=np.int64(2)).dimension == 0
    assert not SafeAction(arm=0).is_origin
