"""Action sets: what they refuse, and that they cannot be changed afterwards."""

import math
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

from stagewise import ArmSet, FiniteSet, InvalidActions, RaySet
from stagewise.problem.errors import ErrorCode

LISTS = [RaySet, FiniteSet]
NAN, INF = math.nan, math.inf

BAD_TABLES = {
    "nan": ([[0.1, 0.2], [0.3, NAN]], [ErrorCode.NOT_FINITE]),
    "infinity": ([[INF, 0.2]], [ErrorCode.NOT_FINITE]),
    "minus infinity": ([[0.1, -INF]], [ErrorCode.NOT_FINITE]),
    "both infinities": ([[INF, -INF]], [ErrorCode.NOT_FINITE]),
    "text": ([["a", "b"]], [ErrorCode.WRONG_TYPE]),
    "digits as text": ([["1", "2"]], [ErrorCode.WRONG_TYPE]),
    "objects": ([[object(), None]], [ErrorCode.WRONG_TYPE]),
    "nothing": (None, [ErrorCode.WRONG_TYPE]),
    "a mapping": ({"a": 1.0}, [ErrorCode.WRONG_TYPE]),
    "complex": ([[1.0 + 0j, 2.0]], [ErrorCode.WRONG_TYPE]),
    "truth values": ([[True, False]], [ErrorCode.WRONG_TYPE]),
    "dates": (np.array([["2020-01-01"]], dtype="datetime64[D]"), [ErrorCode.WRONG_TYPE]),
    "ragged": ([[1.0], [1.0, 2.0]], [ErrorCode.WRONG_SHAPE]),
    "a vector": ([1.0, 2.0], [ErrorCode.WRONG_SHAPE]),
    "a number": (1.0, [ErrorCode.WRONG_SHAPE]),
    "a cube": (np.zeros((2, 2, 2)), [ErrorCode.WRONG_SHAPE]),
    "an empty list": ([], [ErrorCode.WRONG_SHAPE]),
    "no rows": (np.zeros((0, 2)), [ErrorCode.WRONG_SHAPE]),
    "no columns": (np.zeros((2, 0)), [ErrorCode.WRONG_SHAPE]),
}


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize(("table", "parts"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_a_table_that_is_none_is_refused(kind: type, table: Any, parts: list[object]) -> None:
    with refused(InvalidActions, *parts):
        kind(table)
    with refused(InvalidActions, *parts):
        kind.from_view(table)


@pytest.mark.parametrize("kind", LISTS)
def test_numbers_whose_square_overflows_are_refused(kind: type) -> None:
    with refused(InvalidActions, ErrorCode.NOT_FINITE):
        kind([[1.0, 1e308]])


@pytest.mark.parametrize("kind", LISTS)
def test_numbers_too_large_for_a_double_are_refused(kind: type) -> None:
    with refused(InvalidActions, ErrorCode.NOT_FINITE):
        kind(np.array([["1e4000", "1"]], dtype=np.longdouble))


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize(
    "table",
    [
        [[1, 2], [3, 4]],
        ((1.0, 2.0), (3.0, 4.0)),
        np.array([[1, 2], [3, 4]], dtype=np.float32),
        np.array([[1, 2], [3, 4]], dtype=np.uint8),
        np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]),
        np.array([[1.0, 9.0, 2.0], [3.0, 9.0, 4.0]])[:, ::2],
        [np.array([1.0, 2.0]), np.array([3.0, 4.0])],
    ],
    ids=["list", "tuple", "float32", "uint8", "Fortran", "strided", "vectors"],
)
def test_any_table_of_numbers_is_taken(kind: type, table: Any) -> None:
    for listed in (kind(table), kind.from_view(table)):
        assert listed.features.dtype == np.float64
        assert listed.features.flags.c_contiguous
        assert np.array_equal(listed.features, [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("kind", LISTS)
def test_a_set_does_not_follow_the_array_it_was_made_of(kind: type) -> None:
    table = np.eye(2)
    listed = kind(table)
    table[:] = 7.0
    assert np.array_equal(listed.features, np.eye(2))


@pytest.mark.parametrize("kind", LISTS)
def test_a_set_cannot_be_written_to(kind: type) -> None:
    listed = kind(np.eye(2)).only([1])
    with pytest.raises(ValueError, match="read-only"):
        listed.features[0, 0] = 5.0
    with pytest.raises(ValueError, match="read-only"):
        listed.eligible[0] = True


def test_rays_know_their_targets_and_sets_show_their_size() -> None:
    assert np.array_equal(RaySet(np.eye(3)).targets, np.eye(3))
    assert repr(RaySet(np.eye(3))) == "RaySet(3 actions, 3 features)"
    assert repr(FiniteSet(np.eye(3)).only([0, 1])) == "FiniteSet(3 actions, 3 features, 2 eligible)"
    assert repr(ArmSet(4)) == "ArmSet(4)"
    assert [len(RaySet(np.eye(3))), len(FiniteSet(np.eye(2))), len(ArmSet(4))] == [3, 2, 4]


SETS = {"rays": RaySet(np.eye(3)), "finite": FiniteSet(np.eye(3)), "arms": ArmSet(3)}

BAD_CHOICES = {
    "an index too large": ([0, 3], [ErrorCode.UNKNOWN_ACTION]),
    "a negative index": ([-1], [ErrorCode.UNKNOWN_ACTION]),
    "one index too large": (3, [ErrorCode.UNKNOWN_ACTION]),
    "a table of indices": ([[0], [1]], [ErrorCode.WRONG_SHAPE]),
    "fractions": ([0.0, 1.0], [ErrorCode.WRONG_TYPE]),
    "text": (["a"], [ErrorCode.WRONG_TYPE]),
    "nothing": (None, [ErrorCode.WRONG_TYPE]),
    "a short mask": ([True, False], [ErrorCode.WRONG_SHAPE]),
    "a long mask": ([True] * 4, [ErrorCode.WRONG_SHAPE]),
    "a column for a mask": (np.ones((3, 1), dtype=bool), [ErrorCode.WRONG_SHAPE]),
    "one truth value": (True, [ErrorCode.WRONG_SHAPE]),
    "no index": ([], [ErrorCode.INVALID_ACTION_SET]),
    "an empty mask": ([False] * 3, [ErrorCode.INVALID_ACTION_SET]),
    "a mask of numbers": ([0, 1, 0], [ErrorCode.WRONG_TYPE]),
    "an array of numbers for a mask": (np.array([1, 1, 0]), [ErrorCode.WRONG_TYPE]),
    "ragged": ([[0], [1, 2]], [ErrorCode.WRONG_SHAPE]),
}


@pytest.mark.parametrize("actions", SETS.values(), ids=SETS)
@pytest.mark.parametrize(("chosen", "parts"), BAD_CHOICES.values(), ids=BAD_CHOICES)
def test_a_choice_that_is_none_is_refused(actions: Any, chosen: Any, parts: list[object]) -> None:
    with refused(InvalidActions, *parts):
        actions.only(chosen)
    assert actions.eligible.size == 0


@pytest.mark.parametrize("actions", SETS.values(), ids=SETS)
def test_a_refusal_of_many_indices_is_still_short(actions: Any) -> None:
    with refused(InvalidActions, ErrorCode.UNKNOWN_ACTION):
        actions.only(list(range(10_000)))


@pytest.mark.parametrize("actions", SETS.values(), ids=SETS)
@pytest.mark.parametrize(
    "chosen",
    [[0, 2], (2, 0), [0, 0, 2], np.array([0, 2], dtype=np.uint8), [True, False, True], np.array([True, False, True])],
    ids=["list", "tuple", "twice", "uint8", "flags", "mask"],
)
def test_indices_and_masks_mean_the_same(actions: Any, chosen: Any) -> None:
    assert actions.only(chosen).eligible.tolist() == [True, False, True]
    assert len(actions.only(chosen)) == 3
    assert actions.eligible.size == 0


def test_a_mask_is_copied() -> None:
    mask = np.array([True, False, True])
    chosen = ArmSet(3).only(mask)
    mask[:] = False
    assert chosen.eligible.tolist() == [True, False, True]


@pytest.mark.parametrize("count", [0, -1, 2.0, "3", None, True, NAN, [3]], ids=repr)
def test_a_number_of_arms_that_is_none_is_refused(count: Any) -> None:
    code = ErrorCode.OUT_OF_RANGE if type(count) is int else ErrorCode.WRONG_TYPE
    with refused(InvalidActions, code, repr(count)):
        ArmSet(count)


def test_a_number_of_arms_may_come_from_numpy() -> None:
    assert ArmSet(np.int64(3)).count == 3
