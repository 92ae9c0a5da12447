"""A class of functions is checked once, and means the same however it was given."""

from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

from stagewise import FiniteFunctionClass, InvalidActions, InvalidProblem
from stagewise.problem.errors import ErrorCode
from stagewise.problem.functions import parse_function_class, parse_function_classes

TABLE = [[0.1, 0.5, 0.9], [0.1, 0.2, 0.3]]
GRID = [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]


def first(x: Any) -> float:
    return float(x[0])


def second(x: Any) -> float:
    return float(x[1])


def test_a_table_over_arms_knows_their_number() -> None:
    table = FiniteFunctionClass(TABLE)
    assert (len(table), table.arms, table.callables) == (2, 3, False)
    assert not table.functions.flags.writeable


def test_duplicates_count_once_and_keep_their_order() -> None:
    assert np.array_equal(FiniteFunctionClass([TABLE[1], TABLE[0], TABLE[1]]).functions, [TABLE[1], TABLE[0]])
    assert np.array_equal(FiniteFunctionClass([[0.0, 1.0], [-0.0, 1.0]]).functions, [[0.0, 1.0]])
    assert len(FiniteFunctionClass([first, second, first])) == 2


def test_a_table_over_features_is_looked_up() -> None:
    listed = FiniteFunctionClass(TABLE, features=GRID)
    assert listed.arms is None
    assert np.array_equal(listed.evaluate(np.array([GRID[2], GRID[0]])), np.array(TABLE)[:, [2, 0]])
    assert np.array_equal(listed.evaluate(np.array([[-0.0, 1.0]])), np.array(TABLE)[:, :1])


def test_callables_are_asked_once_for_each_action() -> None:
    asked = []

    def counting(x: Any) -> float:
        asked.append(x.tolist())
        return 0.5

    functions = FiniteFunctionClass([counting, first])
    for _ in range(3):
        assert np.array_equal(functions.evaluate(np.array(GRID)), [[0.5] * 3, [0.0, 1.0, 0.5]])
    assert asked == GRID


def test_callables_with_features_become_the_table_of_their_values() -> None:
    table = FiniteFunctionClass([first, second], features=GRID)
    assert not table.callables
    assert np.array_equal(table.functions, np.array(GRID).T)


def test_a_callable_cannot_write_into_the_actions() -> None:
    def greedy(x: Any) -> float:
        x[0] = 9.0
        return 0.0

    with refused(InvalidActions, ErrorCode.CALLBACK_FAILED):
        FiniteFunctionClass([greedy]).evaluate(np.array(GRID))


@pytest.mark.parametrize(
    ("functions", "features", "parts"),
    [
        ([], None, [ErrorCode.WRONG_SHAPE]),
        ([[]], None, [ErrorCode.WRONG_SHAPE]),
        ([0.1, 0.2], None, [ErrorCode.WRONG_SHAPE]),
        ([[0.1, np.nan]], None, [ErrorCode.NOT_FINITE]),
        ([[0.1, np.inf]], None, [ErrorCode.NOT_FINITE]),
        ([[0.1], [0.2, 0.3]], None, [ErrorCode.WRONG_SHAPE]),
        ([["a", "b"]], None, [ErrorCode.WRONG_TYPE]),
        ([[True, False]], None, [ErrorCode.WRONG_TYPE]),
        (TABLE, GRID[:2], [ErrorCode.DIMENSION_MISMATCH]),
        (TABLE, [0.0, 1.0, 2.0], [ErrorCode.WRONG_SHAPE]),
        (TABLE, [[0.0], [1.0], [0.0]], [ErrorCode.CONFLICTING_SETTINGS]),
        (TABLE, [[0.0], [1.0], [np.nan]], [ErrorCode.NOT_FINITE]),
        ([first], [[np.inf, 0.0]], [ErrorCode.NOT_FINITE]),
        ([first, 3], None, [ErrorCode.WRONG_TYPE]),
    ],
)
def test_what_is_no_class_is_refused(functions: Any, features: Any, parts: list[object]) -> None:
    with refused(InvalidProblem, *parts):
        FiniteFunctionClass(functions, features=features)


@pytest.mark.parametrize(
    ("function", "parts"),
    [
        (lambda x: np.nan, [ErrorCode.NOT_FINITE]),
        (lambda x: x, [ErrorCode.WRONG_SHAPE]),
        (lambda x: None, [ErrorCode.WRONG_TYPE]),
        (lambda x: x[7], [ErrorCode.CALLBACK_FAILED]),
        (lambda: 0.0, [ErrorCode.CALLBACK_FAILED]),
    ],
)
def test_a_callable_that_does_not_answer_with_a_number_is_refused(function: Any, parts: list[object]) -> None:
    with refused(InvalidActions, *parts):
        FiniteFunctionClass([first, function]).evaluate(np.array(GRID))


def test_an_action_that_is_not_listed_is_refused() -> None:
    with refused(InvalidActions, ErrorCode.UNKNOWN_ACTION):
        FiniteFunctionClass(TABLE, features=GRID).evaluate(np.array([[0.25, 0.75]]))


@pytest.mark.parametrize("value", [None, 0.5, "table", {"a": 1}, FiniteFunctionClass])
def test_only_tables_and_callables_make_a_class(value: Any) -> None:
    with refused(InvalidProblem, ErrorCode.WRONG_TYPE):
        parse_function_class(value)


def test_costs_share_a_class_or_have_one_each() -> None:
    names = ["spend", "wait"]
    assert isinstance(parse_function_classes(TABLE, names), FiniteFunctionClass)
    assert isinstance(parse_function_classes([first, second], names), FiniteFunctionClass)
    assert [len(c) for c in parse_function_classes([TABLE, TABLE[:1]], names)] == [2, 1]
    assert [len(c) for c in parse_function_classes(np.array([TABLE, TABLE]), names)] == [2, 2]
    assert [len(c) for c in parse_function_classes([[first], [first, second]], names)] == [1, 2]
    assert list(parse_function_classes({"wait": TABLE, "spend": TABLE[:1]}, names)) == names


@pytest.mark.parametrize(
    ("value", "parts"),
    [({"spend": TABLE}, [ErrorCode.UNKNOWN_NAME]), ([TABLE], [ErrorCode.WRONG_SHAPE]), ([], [ErrorCode.WRONG_SHAPE])],
)
def test_costs_without_a_class_are_refused(value: Any, parts: list[object]) -> None:
    with refused(InvalidProblem, *parts):
        parse_function_classes(value, ["spend", "wait"])
