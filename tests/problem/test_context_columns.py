"""Columns of a context: a value is read alone or with its column with one result, or refuses its own row."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from arro3.core import Array, DataType
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.problem.columns import convert_to_array, to_objects
from stagewise.problem.context_columns import build_level_features, encode_column, parse_column
from stagewise.problem.errors import ErrorCode

NAN = float("nan")
PLAN = sw.Category(["free", "basic", "pro"])
OPEN = sw.Category(["free", "basic", "pro"], other=True, missing="other")
COLUMNS = {
    "number": sw.Number(0, 10),
    "clipped": sw.Number(0, 10, clip=True, missing=3),
    "boolean": sw.Boolean(),
    "boolean with a default": sw.Boolean(missing=False),
    "date": sw.Date("2024-01-01", "2026-12-31"),
    "clipped date": sw.Date("2024-01-01", "2026-12-31", clip=True, missing="2025-01-01"),
    "category": PLAN,
    "open category": OPEN,
    "category of other types": sw.Category([1, True, "True story"], other=True),  # type: ignore[list-item]
}
VALUES: list[Any] = [
    None, NAN, np.float32("nan"), np.datetime64("NaT"), "", " ", "free", "Free", "frее", "pro", np.str_("pro"), "gold",
    "other", "__other__", "é", "e\u0301", "x" * 300, "1", 1, 1.0, np.int64(1), np.float32(1.0), True, np.True_, False,
    "True", "False", 0, 5, 10, 10.5, -0.0, -1, 1e101, 10**400, float("inf"), Decimal("2.5"), Decimal("NaN"), 1j, b"pro",
    [1], {"a": 1}, {1}, (1, 2), object(), np.array([1.0]), np.timedelta64(1, "D"), date(2025, 3, 1),
    datetime(2025, 3, 1, 12, tzinfo=UTC), datetime(2025, 3, 1, 12), np.datetime64("2025-03-01T12:00:00.123456789"),
    "2025-03-01", "2025-03-01T12:00:00Z", "2025-13-01", "2031-01-01", "20250301", 1.74e9, 1.74e12,
]  # fmt: skip


def read(column: Any, value: Any) -> Any:
    try:
        return column.read(value, "x")
    except sw.InvalidActions as error:
        return error.code


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_is_read_as_each_of_its_values(name: str) -> None:
    column = COLUMNS[name]
    together = column.read_column(to_objects(VALUES), "x")
    for row, value in enumerate(VALUES):
        expected = read(column, value)
        if row in together.refused:
            assert together.refused[row].code is expected
        else:
            assert (together.values[row], together.clipped[row]) == expected
    assert 0 < len(together.refused) < len(VALUES)


@pytest.mark.parametrize(
    "array",
    [
        np.array([0.0, NAN, 11.0, -1.0, 5.0]),
        np.array([0, 11, 1], dtype=np.uint8),
        np.array([True, False]),
        np.array(["2024-01-01", "NaT", "2030-01-01"], dtype="M8[ns]"),
        np.array(["free", "gold", "pro"], dtype=object),
        np.array([1.0, 2.0, NAN]),
    ],
    ids=str,
)
def test_arrays_of_one_type_are_read_as_their_values(array: Any) -> None:
    for column in COLUMNS.values():
        together = column.read_column(array, "x")
        for row, value in enumerate(array):
            expected = read(column, value)
            if row in together.refused:
                assert together.refused[row].code is expected
            else:
                assert (together.values[row], together.clipped[row]) == expected


def test_missing_values_count_as_declared_or_refuse_their_row() -> None:
    for value in (None, NAN, np.float64("nan"), "", np.datetime64("NaT")):
        assert read(COLUMNS["clipped"], value) == (3.0, False)
        assert read(OPEN, value) == (3.0, False)
        assert read(COLUMNS["boolean with a default"], value) == (0.0, False)
        assert {read(COLUMNS[name], value) for name in ("number", "boolean", "date", "category")} == {
            ErrorCode.MISSING_CONTEXT_FIELD
        }


def test_levels_are_told_apart_as_segments_are() -> None:
    levels = sw.Category([1, True, "one"])  # type: ignore[list-item]
    assert levels.labels == ("1", "True", "one")
    assert [levels.get_label(value, "x") for value in ("1", 1, 1.0, np.int8(1))] == ["1"] * 4
    assert [levels.get_label(value, "x") for value in (True, np.True_, "True")] == ["True"] * 3
    for value in ("a", "а", "One", "one ", "ｏｎｅ", "__other__", "other"):  # Cyrillic, full width
        assert read(levels, value) is ErrorCode.UNKNOWN_LEVEL
    assert OPEN.get_label("__other__", "x") == "other"
    assert sw.Category(["other", "free"], other=True).labels == ("other", "free")


def test_truth_values_are_not_texts() -> None:
    boolean = COLUMNS["boolean"]
    assert [read(boolean, value) for value in (True, np.True_, 1, 1.0, np.int8(1))] == [(1.0, False)] * 5
    assert {read(boolean, value) for value in ("True", "1", "yes", 2, 0.5, [], b"1")} == {ErrorCode.WRONG_TYPE}


def test_dates_are_the_same_time_whoever_tells_it() -> None:
    column, noon = COLUMNS["date"], datetime(2025, 3, 1, 12, tzinfo=UTC)
    same = [noon, noon.replace(tzinfo=None), "2025-03-01T12:00", "2025-03-01T13:00+01:00", noon.timestamp()]
    assert {read(column, value) for value in same} == {(noon.timestamp(), False)}
    assert read(column, np.datetime64("2025-03-01T12")) == (noon.timestamp(), False)
    assert read(column, 1.74e12) is ErrorCode.INVALID_TIME
    assert read(column, "2031-01-01") is ErrorCode.CONTEXT_OUT_OF_RANGE
    assert read(COLUMNS["clipped date"], "2031-01-01") == (column.ends[1], True)  # type: ignore[attr-defined]


def test_tables_of_others() -> None:
    words = ["pro", None, "gold", "free"]
    for array in (Array(words, DataType.string()), Array(words, DataType.string()).cast(
        DataType.dictionary(DataType.int32(), DataType.string())
    )):  # fmt: skip
        found = OPEN.read_column(convert_to_array(array), "plan")
        assert found.values.tolist() == [2.0, 3.0, 3.0, 0.0]
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frames = [
        pandas.Series(pandas.Categorical(words)),
        pandas.Series(words, dtype="string"),
        polars.Series(words, dtype=polars.Enum(["free", "gold", "pro"])),
        polars.Series(words, dtype=polars.Categorical),
    ]
    for frame in frames:
        found = OPEN.read_column(convert_to_array(frame), "plan")
        assert found.values.tolist() == [2.0, 3.0, 3.0, 0.0]
    numbers = pandas.Series([1, None, 20], dtype="Int64")
    assert COLUMNS["clipped"].read_column(convert_to_array(numbers), "x").values.tolist() == [1.0, 3.0, 10.0]


@pytest.mark.parametrize("levels", range(2, 40))
def test_a_mean_between_0_and_1_has_a_parameter_of_norm_at_most_1(levels: int) -> None:
    """Rows with a constant are orthogonal and of squared length K, so that ‖θ‖² is the mean of squared means."""
    rows = np.column_stack([np.ones(levels), build_level_features(levels)])
    np.testing.assert_allclose(rows @ rows.T, levels * np.eye(levels), atol=1e-9 * levels)
    means = np.random.default_rng(levels).integers(0, 2, (200, levels)).astype(float)
    norms = np.linalg.norm(np.linalg.solve(rows, means.T), axis=0)
    np.testing.assert_allclose(norms**2, (means**2).mean(axis=1), atol=1e-9)
    assert norms.max() <= 1.0 + 1e-12
    coded = np.column_stack([np.ones(levels), np.eye(levels)[:, 1:]])  # 0/1 columns break it
    assert np.linalg.norm(np.linalg.solve(coded, 1.0 - np.eye(levels)[:, 0])) > np.sqrt(levels - 1.0) - 1e-9


WRONG: dict[str, tuple[Any, ErrorCode]] = {
    "no levels": (lambda: sw.Category([]), ErrorCode.WRONG_SHAPE),
    "one level": (lambda: sw.Category(["a"]), ErrorCode.WRONG_SHAPE),
    "10,000 levels": (lambda: sw.Category([str(i) for i in range(10_000)]), ErrorCode.WRONG_SHAPE),
    "a level twice": (lambda: sw.Category(["1", 1]), ErrorCode.DUPLICATE_NAME),  # type: ignore[list-item]
    "an empty level": (lambda: sw.Category(["a", ""]), ErrorCode.INVALID_NAME),
    "a level that is missing": (lambda: sw.Category(["a", None]), ErrorCode.INVALID_NAME),  # type: ignore[list-item]
    "levels in one text": (lambda: sw.Category("ab"), ErrorCode.WRONG_TYPE),
    "an unknown default": (lambda: sw.Category(["a", "b"], missing="other"), ErrorCode.INVALID_CHOICE),
    "no range": (lambda: sw.Number(1, 1), ErrorCode.OUT_OF_RANGE),
    "a default out of range": (lambda: sw.Number(0, 1, missing=2), ErrorCode.OUT_OF_RANGE),
    "a default of text": (lambda: sw.Number(0, 1, missing="0"), ErrorCode.WRONG_TYPE),  # type: ignore[arg-type]
    "a word for a truth value": (lambda: sw.Boolean(missing="no"), ErrorCode.WRONG_TYPE),  # type: ignore[arg-type]
    "clip in words": (lambda: sw.Number(0, 1, clip="yes"), ErrorCode.WRONG_TYPE),  # type: ignore[arg-type]
    "no date": (lambda: sw.Date("today", "2026-01-01"), ErrorCode.INVALID_TIME),
    "dates in the wrong order": (lambda: sw.Date("2026-01-01", "2024-01-01"), ErrorCode.OUT_OF_RANGE),
    "an unknown setting": (lambda: sw.Number(0, 1, cut=True), ErrorCode.UNKNOWN_SETTING),  # type: ignore[call-arg]
    "an unknown type": (lambda: parse_column({"type": "text"}, "x"), ErrorCode.INVALID_CHOICE),
    "no levels in a file": (lambda: parse_column({"type": "category"}, "x"), ErrorCode.MISSING_VALUE),
    "a number that is one end": (lambda: parse_column([1], "x"), ErrorCode.WRONG_TYPE),
}


@pytest.mark.parametrize(("make", "code"), WRONG.values(), ids=WRONG)
def test_declarations_that_cannot_be_meant(make: Any, code: ErrorCode) -> None:
    with refused(sw.InvalidProblem, code):
        make()


@pytest.mark.parametrize("name", COLUMNS)
def test_a_file_has_the_same_column(name: str) -> None:
    column = COLUMNS[name]
    assert parse_column(encode_column(column), "x") == column


class ChunkedDictionary:
    """A dictionary column of Arrow as pyarrow has it: to NumPy, a missing value is the last entry."""

    type = "dictionary<values=string, indices=int32, ordered=0>"

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(["free", "pro", "pro"], dtype=object)

    def to_pylist(self) -> list[Any]:
        return ["free", None, "pro"]


def test_a_missing_entry_of_a_dictionary_is_missing() -> None:
    assert OPEN.read_column(convert_to_array(ChunkedDictionary()), "plan").values.tolist() == [0.0, 3.0, 2.0]  # type: ignore[arg-type]
