"""A class of functions is checked once, and means the same however it was given."""

from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

from stagewise import FunctionClass, InvalidActions, InvalidProblem
from stagewise.problem.functions import class_of, classes_of

TABLE = [[0.1, 0.5, 0.9], [0.1, 0.2, 0.3]]
GRID = [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]


def first(x: Any) -> float:
    return float(x[0])


def second(x: Any) -> float:
    return float(x[1])


def test_a_table_over_arms_knows_their_number() -> None:
    table = FunctionClass(TABLE)
    assert (len(table), table.arms, table.callables) == (2, 3, False)
    assert not table.functions.flags.writeable


def test_duplicates_count_once_and_keep_their_order() -> None:
    assert np.array_equal(FunctionClass([TABLE[1], TABLE[0], TABLE[1]]).functions, [TABLE[1], TABLE[0]])
    assert np.array_equal(FunctionClass([[0.0, 1.0], [-0.0, 1.0]]).functions, [[0.0, 1.0]])
    assert len(FunctionClass([first, second, first])) == 2


def test_a_table_over_features_is_looked_up() -> None:
    listed = FunctionClass(TABLE, features=GRID)
    assert listed.arms is None
    assert np.array_equal(listed.over(np.array([GRID[2], GRID[0]])), np.array(TABLE)[:, [2, 0]])
    assert np.array_equal(listed.over(np.array([[-0.0, 1.0]])), np.array(TABLE)[:, :1])


def test_callables_are_asked_once_for_each_action() -> None:
    asked = []

    def counting(x: Any) -> float:
        asked.append(x.tolist())
        return 0.5

    functions = FunctionClass([counting, first])
    for _ in range(3):
        assert np.array_equal(functions.over(np.array(GRID)), [[0.5] * 3, [0.0, 1.0, 0.5]])
    assert asked == GRID


def test_callables_with_features_become_the_table_of_their_values() -> None:
    table = FunctionClass([first, second], features=GRID)
    assert not table.callables
    assert np.array_equal(table.functions, np.array(GRID).T)


def test_a_callable_cannot_write_into_the_actions() -> None:
    def greedy(x: Any) -> float:
        x[0] = 9.0
        return 0.0

    with refused(InvalidActions, "function 0", "ValueError"):
        FunctionClass([greedy]).over(np.array(GRID))


@pytest.mark.parametrize(
    ("functions", "features", "words"),
    [
        ([], None, "shape (0,)"),
        ([[]], None, "shape (1, 0)"),
        ([0.1, 0.2], None, "shape (2,)"),
        ([[0.1, np.nan]], None, "nan"),
        ([[0.1, np.inf]], None, "inf"),
        ([[0.1], [0.2, 0.3]], None, "rectangular"),
        ([["a", "b"]], None, "type"),
        ([[True, False]], None, "bool"),
        (TABLE, GRID[:2], "2 listed actions"),
        (TABLE, [0.0, 1.0, 2.0], "shape (3,)"),
        (TABLE, [[0.0], [1.0], [0.0]], "twice"),
        (TABLE, [[0.0], [1.0], [np.nan]], "nan"),
        ([first], [[np.inf, 0.0]], "inf"),
        ([first, 3], None, "type object"),
    ],
)
def test_what_is_no_class_is_refused(functions: Any, features: Any, words: str) -> None:
    with refused(InvalidProblem, words):
        FunctionClass(functions, features=features)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: np.nan, "nan"),
        (lambda x: x, "shape (2,)"),
        (lambda x: None, "None"),
        (lambda x: x[7], "IndexError"),
        (lambda: 0.0, "TypeError"),
    ],
)
def test_a_callable_that_does_not_answer_with_a_number_is_refused(function: Any, words: str) -> None:
    with refused(InvalidActions, "function 1", words):
        FunctionClass([first, function]).over(np.array(GRID))


def test_an_action_that_is_not_listed_is_refused() -> None:
    with refused(InvalidActions, "[0.25, 0.75]", "3 listed"):
        FunctionClass(TABLE, features=GRID).over(np.array([[0.25, 0.75]]))


@pytest.mark.parametrize("value", [None, 0.5, "table", {"a": 1}, FunctionClass])
def test_only_tables_and_callables_make_a_class(value: Any) -> None:
    with refused(InvalidProblem, "must be"):
        class_of(value)


def test_costs_share_a_class_or_have_one_each() -> None:
    names = ["spend", "wait"]
    assert isinstance(classes_of(TABLE, names), FunctionClass)
    assert isinstance(classes_of([first, second], names), FunctionClass)
    assert [len(c) for c in classes_of([TABLE, TABLE[:1]], names)] == [2, 1]
    assert [len(c) for c in classes_of(np.array([TABLE, TABLE]), names)] == [2, 2]
    assert [len(c) for c in classes_of([[first], [first, second]], names)] == [1, 2]
    assert list(classes_of({"wait": TABLE, "spend": TABLE[:1]}, names)) == names


@pytest.mark.parametrize(("value", "words"), [({"spend": TABLE}, "names"), ([TABLE], "1 classes"), ([], "shape (0,)")])
def test_costs_without_a_class_are_refused(value: Any, words: str) -> None:
    with refused(InvalidProblem, words):
        classes_of(value, ["spend", "wait"])
