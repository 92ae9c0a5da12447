"""The doors: a value goes in as it was given and comes out as what it is, or is refused in one short line."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fuzz.hostile import Closed, Mute, Torn, itself, nested, objects
from tests.problem.refusal import refused

from stagewise.files.paths import parse_path
from stagewise.problem.checks import (
    LARGEST,
    as_array,
    check_array,
    check_bool,
    check_choice,
    check_integer_at_least,
    check_mapping,
    check_number,
    check_outcome,
    check_seed,
    check_size,
    is_listing,
)
from stagewise.problem.errors import ErrorCode, InvalidFile, InvalidOutcome, InvalidProblem, StagewiseError
from stagewise.problem.formatting import fit_line, safe_repr

ODD = {
    "mute": Mute(),
    "closed": Closed(),
    "itself": itself(),
    "deep": nested(100_000),
    "many digits": 10**5000,
    "lines": "a\nb\u2028c\x1b[31m",
    "long": "x" * 10_000,
    "object array": objects(Mute(), None),
    "a class": Mute,
    "a mapping": {"a" * 1000: "b\n" * 1000},
}


@pytest.mark.parametrize("value", [*ODD.values(), np.zeros((30, 30))], ids=[*ODD, "a table"])
def test_any_value_is_shown_in_one_short_line(value: Any) -> None:
    text = safe_repr(value)
    assert 0 < len(text) <= 120
    assert text.isprintable()


@pytest.mark.wording
def test_an_error_is_one_line_whatever_stands_in_it() -> None:
    name = "long\n" * 1000
    text = str(StagewiseError(ErrorCode.INVALID_NAME, "the name is {name}; it must be short", name=name))
    assert len(text) < 400
    assert text.isprintable()
    assert text.startswith("the name is long")
    assert text.endswith("it must be short")


@pytest.mark.wording
def test_the_forms_of_an_error_say_the_value_and_the_rule() -> None:
    code, raised = ErrorCode.OUT_OF_RANGE, InvalidProblem
    assert str(raised.must_be(code, "delta", 2.0, "below 1")) == "delta is 2.0; it must be below 1"
    chosen = "radius is 'jont'; it must be one of 'joint', 'paper'; did you mean 'joint'?"
    assert str(raised.must_be_one_of(code, "radius", "jont", ("joint", "paper"))) == chosen
    conflict = raised.conflict("noise", 0.5, "radius is 'x'", "leave noise out")
    assert (conflict.code, str(conflict)) == ("conflicting_settings", "noise is 0.5 and radius is 'x'; leave noise out")
    unused = raised.unused("blocks", 3, "nothing uses it")
    assert (unused.code, unused.details["value"]) == ("unused_setting", "3")
    unread = InvalidFile.cannot_be(code, Path("a.json"), "read", PermissionError(13, "Permission denied"))
    assert str(unread) == "a.json cannot be read: Permission denied"


def test_a_short_line_stays_as_it_is() -> None:
    assert fit_line("two  spaces, θ ≤ 1", 30) == "two  spaces, θ ≤ 1"


@pytest.mark.parametrize(
    "value", [*ODD.values(), None, object(), b"b", {1, 2}], ids=[*ODD, "nothing", "an object", "bytes", "a set"]
)
@pytest.mark.parametrize(
    "door",
    [
        lambda value: check_number(value, "it"),
        lambda value: check_outcome(value, "it"),
        lambda value: check_integer_at_least(value, "it", 1),
        lambda value: check_size(value, "it"),
        lambda value: check_seed(value, "it"),
        lambda value: check_bool(value, "it"),
        lambda value: check_choice(value, ("a", "b"), "it"),
        lambda value: check_array(value, "it"),
    ],
    ids=["number", "observed", "whole", "size", "seed", "switch", "choice", "array"],
)
def test_every_door_refuses_odd_values_in_a_sentence(door: Any, value: Any) -> None:
    with pytest.raises(StagewiseError) as caught:
        door(value)
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("value", [itself(), nested(100_000)], ids=["itself", "deep"])
def test_lists_without_a_floor_are_refused_before_anything_follows_them(value: Any) -> None:
    with pytest.raises(StagewiseError) as caught:
        check_array(value, "it")
    assert caught.value.code is ErrorCode.WRONG_SHAPE


@pytest.mark.parametrize(
    "value",
    [2, 2.0, np.int8(2), np.float32(2.0), np.array(2), np.array(2.0), Fraction(2), Decimal(2), np.array(Fraction(2))],
    ids=repr,
)
def test_numbers_of_any_kind_are_numbers(value: Any) -> None:
    assert check_number(value, "it") == 2.0
    assert type(check_number(value, "it")) is float


@pytest.mark.parametrize(
    "value",
    [
        True,
        np.True_,
        np.array(True),
        np.array([2.0]),
        np.array("2.0"),
        np.timedelta64(2),
        np.datetime64("2020-01-01"),
        Decimal("sNaN"),
        Fraction(10**400),
        2j,
        bytearray(b"2"),
    ],
    ids=repr,
)
def test_what_is_no_number_is_refused(value: Any) -> None:
    code = ErrorCode.OUT_OF_RANGE if isinstance(value, Fraction) else ErrorCode.WRONG_TYPE
    with refused(InvalidProblem, code, "it"):
        check_number(value, "it")


@pytest.mark.parametrize("truth", [True, np.True_, np.array(True)], ids=repr)
def test_a_truth_value_is_an_outcome_and_no_setting(truth: Any) -> None:
    assert check_outcome(truth, "the reward") == 1.0
    with refused(InvalidProblem, ErrorCode.WRONG_TYPE):
        check_number(truth, "noise")


def test_what_was_seen_must_be_a_number_too() -> None:
    assert check_outcome(0.25, "the reward") == 0.25
    with refused(InvalidOutcome, ErrorCode.WRONG_TYPE):
        check_outcome("yes", "the reward")


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), np.array(3)], ids=repr)
def test_whole_numbers_of_numpy_are_counts(value: Any) -> None:
    assert check_integer_at_least(value, "runs", 1) == 3
    assert type(check_integer_at_least(value, "runs", 1)) is int
    assert type(check_seed(value)) is int


@pytest.mark.parametrize("value", [3.0, "3", np.float64(3.0), np.array([3]), np.timedelta64(3), True], ids=repr)
def test_other_values_are_no_counts(value: Any) -> None:
    with refused(InvalidProblem, ErrorCode.WRONG_TYPE):
        check_integer_at_least(value, "runs", 1)


def test_counts_and_sizes_have_an_end() -> None:
    assert check_integer_at_least(2**62 - 1, "runs", 1) == 2**62 - 1
    for count in (2**62, 10**400):
        with refused(InvalidProblem, ErrorCode.OUT_OF_RANGE):
            check_integer_at_least(count, "runs", 1)
    assert check_size(10_000_000, "arms") == 10_000_000
    with refused(InvalidProblem, ErrorCode.OUT_OF_RANGE):
        check_size(10_000_001, "arms")


def test_arrays_are_neither_switches_nor_choices() -> None:
    assert check_bool(np.array(True), "audit") is True
    assert check_choice(np.array("a"), ("a", "b"), "radius") == "a"
    for value in (np.array([True, False]), np.array(["a", "b"])):
        with refused(InvalidProblem, ErrorCode.WRONG_TYPE):
            check_bool(value, "audit")
        with refused(InvalidProblem, ErrorCode.INVALID_CHOICE):
            check_choice(value, ("a", "b"), "radius")


def test_exact_numbers_stand_in_arrays() -> None:
    assert check_array([[Fraction(1, 4), 10**30], [Decimal("0.5"), 1]], "it").tolist() == [[0.25, 1e30], [0.5, 1.0]]
    with refused(InvalidProblem, ErrorCode.OUT_OF_RANGE):
        check_array([10**400], "it")
    with refused(InvalidProblem, ErrorCode.NOT_FINITE):
        check_array([Decimal("nan")], "it")
    with refused(InvalidProblem, ErrorCode.OUT_OF_RANGE):
        check_array([Fraction(10**101)], "it")
    assert check_array([Fraction(10**99)], "it")[0] < LARGEST


def test_what_numpy_cannot_take_is_refused() -> None:
    with refused(InvalidProblem, ErrorCode.WRONG_SHAPE):
        as_array([[1.0], [1.0, 2.0]], "it")
    with refused(InvalidProblem, ErrorCode.WRONG_TYPE):
        as_array(Mute(), "it")


def test_a_listing_has_an_axis() -> None:
    class Series:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.zeros(3)

        def __len__(self) -> int:
            return 3

    for value in ([1], (1,), np.zeros(1), Series()):
        assert is_listing(value)
    for value in (1.0, np.array(1.0), np.float64(1.0), "text", {"a": 1}, Series, Mute()):
        assert not is_listing(value)


def test_a_mapping_that_cannot_be_read_is_refused() -> None:
    assert check_mapping({"a": 1}, "it") == {"a": 1}
    with refused(InvalidProblem, ErrorCode.WRONG_TYPE):
        check_mapping(Torn(), "it")


@pytest.mark.parametrize("value", ["a/b.json", Path("a/b.json")], ids=["text", "path"])
def test_a_path_is_text_or_stands_for_it(value: Any) -> None:
    assert parse_path(value) == Path("a/b.json")


NO_PATHS = {
    "nothing": None,
    "a number": 3,
    "bytes": b"agent.json",
    "empty": "",
    "a zero": "agent\0.json",
    "half a pair": "agent\ud800.json",
    "a long name": "a" * 256,
    "a long folder": "a" * 300 + "/agent.json",
    "a long path": "a/" * 3000,
    "a list": ["agent.json"],
    "mute": Mute(),
    "a class": Path,
}


@pytest.mark.parametrize("value", NO_PATHS.values(), ids=NO_PATHS)
def test_what_is_no_path_is_refused(value: Any) -> None:
    with refused(InvalidFile, "out"):
        parse_path(value, "out")
