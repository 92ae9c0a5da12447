"""Columns of pandas, polars and Arrow tables, or of mappings of lists, as arrays; none of them is imported."""

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from stagewise.problem.checks import LARGEST, Floats, check_mapping, check_unmasked, is_listing
from stagewise.problem.errors import ErrorCode, InvalidOutcome, StagewiseError
from stagewise.problem.formatting import safe_repr, suggest_name

FORMS = "a data frame of pandas or polars, an Arrow table, or a mapping from names to columns"
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
NOTHINGS = ("NoneType", "NAType", "NaTType")  # types of missing values in pandas, polars and Arrow
UNEQUAL = (float, np.floating, np.datetime64)  # types with a missing value that does not equal itself


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, NA or NaT.

    >>> [is_missing(value) for value in (None, float("nan"), np.datetime64("NaT"), "", 0, False)]
    [True, True, True, False, False, False]
    """
    if isinstance(value, Decimal):
        return value.is_nan()
    return type(value).__name__ in NOTHINGS or (isinstance(value, UNEQUAL) and bool(value != value))


def is_blank(value: Any) -> bool:
    """Return whether a value is missing, or an empty text."""
    return not value if isinstance(value, str) else is_missing(value)


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def read_columns(frame: Any) -> Mapping[Any, Any]:
    """Return the columns of a frame by name, all of one length."""
    columns, first = fetch_columns(frame), None
    for name in list_column_names(columns, InvalidOutcome):
        size = get_length(columns, name)
        first = (name, size) if first is None and size is not None else first
        if first is not None and size not in (None, first[1]):  # `get_column` raises the error of an unknown length
            subject, rule = f"the length of the column {safe_repr(name)}", f"that of {safe_repr(first[0])}, {first[1]}"
            raise InvalidOutcome.must_be(ErrorCode.WRONG_SHAPE, subject, size, rule)
    return columns


def fetch_columns(frame: Any) -> Mapping[Any, Any]:
    if isinstance(frame, Mapping):
        return frame
    hint = "; a LazyFrame holds no rows yet, so give frame.collect()" if type(frame).__name__ == "LazyFrame" else ""
    try:
        is_table = not isinstance(frame, type | str | list | tuple | np.ndarray) and getattr(frame, "ndim", 2) != 1
        names = get_labels(frame) if is_table and not hint else None
        if names is not None and not hasattr(frame, "fetchall"):  # a query has columns without data
            return Columns(frame, names)
        if is_table and not hint and hasattr(frame, "__arrow_c_stream__"):
            from arro3.core import Table

            table = Table.from_arrow(frame)
            return Columns(table, list(table.column_names))
    except Exception as error:  # an object's own code can raise anything
        hint = f"; reading it failed: {safe_repr(str(error))}"
    raise InvalidOutcome.must_be(ErrorCode.WRONG_TYPE, "the frame", frame, FORMS + hint)


def get_length(columns: Mapping[Any, Any], name: Any) -> int | None:
    """Return the length of a column; None: unknown."""
    try:
        column = columns[name]
    except Exception:
        return None
    try:
        return len(column)
    except Exception:
        array = convert_to_array(column)
        return None if array is None or array.ndim != 1 else array.size


class Columns(dict[Any, Any]):
    """Columns that are read on access."""

    def __init__(self, frame: Any, names: list[Any]) -> None:
        super().__init__(dict.fromkeys(names))
        self.frame = frame

    def __getitem__(self, name: Any) -> Any:
        return self.frame[name]


def map_unique(values: list[Any], take: Callable[[Any], Any]) -> list[Any]:
    """Apply a function to every value of a column, once for equal values of one type.

    1, 1.0 and True are three different values here.

    >>> map_unique([1, True, 1.0, 1], str)
    ['1', 'True', '1.0', '1']
    """
    try:
        if len(set(map(type, values))) == 1:
            known = {value: take(value) for value in dict.fromkeys(values)}
            return list(map(known.__getitem__, values))
        keys = list(zip(map(type, values), values, strict=True))
        results = {key: take(key[1]) for key in dict.fromkeys(keys)}
        return [results[key] for key in keys]
    except TypeError:  # an unhashable value, such as a list
        return [take(value) for value in values]


def suggest_column(name: Any, names: Any) -> str:
    """Return " (did you mean ...?)" for the closest name, or an empty text.

    >>> suggest_column("rewrad", ["reward", "cost"]), suggest_column("x", ["reward"])
    (" (did you mean 'reward'?)", '')
    """
    hint = suggest_name(name, [other for other in names if isinstance(other, str)]).removeprefix("; ")
    return f" ({hint})" if hint else ""


def list_names_once(value: Any) -> list[Any]:
    """Return listed names that are all different; an empty list otherwise.

    >>> list_names_once(["a", "b"]), list_names_once("ab"), list_names_once(["a", "a"])
    (['a', 'b'], [], [])
    """
    if not is_listing(value):
        return []
    try:
        names = list(value)
        return names if len(set(names)) == len(names) else []
    except Exception:  # an entry cannot be a name
        return []


def get_column(
    columns: Mapping[Any, Any], name: Any, what: str, error: type[StagewiseError] = InvalidOutcome, hint: str = ""
) -> npt.NDArray[Any]:
    """Return one column as an array (n,); `what` is the argument that names it, `hint` is added to the error."""
    listed = list_column_names(columns, error)
    try:
        exists = name in listed
    except Exception:  # a comparison can raise anything
        exists = False
    if not exists:
        template = "{what} names {name}, which is no column of the frame{meant}; its columns are {listed}{hint}"
        data = {"what": what, "name": safe_repr(name), "listed": safe_repr(listed), "hint": hint}
        raise error(ErrorCode.COLUMN_MISSING, template, meant=suggest_column(name, listed), **data)
    at = f"the column {safe_repr(name)}"
    try:
        content = columns[name]
    except Exception:
        raise error(ErrorCode.COLUMN_WRONG_TYPE, "{at} cannot be read from the frame", at=at) from None
    column = convert_to_array(check_unmasked(content, at, error))
    if column is None or column.ndim != 1:
        several = column is not None and column.ndim > 1
        why = "two columns have that name, or it is a table in itself" if several else f"it is {safe_repr(content)}"
        raise error(ErrorCode.WRONG_SHAPE, "{at} is not one value a row; {why}", at=at, why=why)
    return column


def list_unique_names(entries: list[Any], at: str, error: type[StagewiseError]) -> dict[Any, None]:
    """Return the different names of a column, in order of first occurrence.

    >>> list(list_unique_names(["b", "a", "b"], "the column 'action'", InvalidOutcome))
    ['b', 'a']
    """
    try:
        return dict.fromkeys(entries)
    except Exception:  # an entry cannot be a name, such as a list
        for row, entry in enumerate(entries):
            try:
                dict.fromkeys(entries[: row + 1])
            except Exception:
                subject, rule = f"row {row} of {at}, counted from 0,", "a name: a text or a number"
                raise error.must_be(ErrorCode.INVALID_NAME, subject, entry, rule) from None
        raise


def list_column_names(columns: Mapping[Any, Any], error: type[StagewiseError]) -> list[Any]:
    try:
        return list(columns)
    except Exception:
        rule = "a frame whose column names can be read"
        raise error.must_be(ErrorCode.WRONG_TYPE, "the frame", columns, rule) from None


def convert_to_array(column: Any) -> npt.NDArray[Any] | None:
    """Return a column as an array; None: it cannot be converted.

    >>> convert_to_array([1, True]).tolist(), convert_to_array([1, 0.5]).tolist()
    ([1, True], [1.0, 0.5])
    """
    try:
        if hasattr(column, "to_pylist") and "dictionary" in str(getattr(column, "type", "")):
            return to_objects(column.to_pylist())  # NumPy would read a missing index as the last entry
        kinds = set(map(type, column)) if isinstance(column, list | tuple) else set()
        array = np.asarray(column, dtype=object if len(kinds) > 1 and kinds & {bool, np.bool_} else None)
        # NumPy would convert all entries to text
        return np.array(column, dtype=object) if array.dtype.kind in "US" else array
    except Exception:  # such as an Arrow array with missing values
        try:
            return to_objects(column.to_pylist())
        except Exception:
            return None


def to_objects(entries: list[Any]) -> npt.NDArray[np.object_]:
    """Return values as a column (n,), each as it is."""
    column = np.empty(len(entries), dtype=object)
    column[:] = entries
    return column


def get_numeric_column(
    columns: Mapping[Any, Any], name: Any, what: str, error: type[StagewiseError] = InvalidOutcome, hint: str = ""
) -> Floats:
    """Return one column of finite numbers (n,); true counts as 1 and false as 0.

    >>> get_numeric_column({"clicked": [True, False]}, "clicked", "reward")
    array([1., 0.])
    """
    column, at = get_column(columns, name, what, error, hint), f"the column {safe_repr(name)}"
    if column.dtype.kind == "O":
        column = parse_object_numbers(column, at, error)
    if column.dtype.kind not in "bfiu":
        first = f", such as {safe_repr(column.tolist()[0])}" if column.size else ""
        rule = "that of numbers, or of true and false"
        raise error.must_be(ErrorCode.COLUMN_WRONG_TYPE, f"the type of {at}", f"{column.dtype}{first}", rule)
    with np.errstate(over="ignore"):  # numbers too large for a double become infinite, which is rejected below
        numbers = np.ascontiguousarray(column, dtype=np.float64)
    if numbers.size and not (numbers.min() > -LARGEST and numbers.max() < LARGEST):  # false for NaN too
        absent = np.isnan(numbers)
        if absent.any():
            raise error(ErrorCode.MISSING_VALUE, find_missing_rows(at, absent))
        row = int(np.flatnonzero(~(np.abs(numbers) < LARGEST))[0])
        rule = f"finite and below {LARGEST:g}"
        raise error.must_be(ErrorCode.NOT_FINITE, f"row {row} of {at}", float(numbers[row]), rule)
    return numbers


def parse_object_numbers(column: npt.NDArray[Any], at: str, error: type[StagewiseError]) -> Floats:
    """Return the numbers of an object column, NaN where a value is missing."""
    entries = column.tolist()
    kinds = {type(entry) for entry in entries}
    absent = {kind for kind in kinds if kind.__name__ in NOTHINGS}
    strange = [kind for kind in kinds - absent if not issubclass(kind, NUMBERS) and kind.__name__ != "Decimal"]
    if strange:
        odd = find_non_number(entries)  # one text in a file makes texts of a whole column: it is named
        row = next(i for i, entry in enumerate(entries) if type(entry) in strange) if odd is None else odd
        template = "{at} holds {entry}; it must hold numbers, or true and false"
        raise error(ErrorCode.COLUMN_WRONG_TYPE, template, at=at, entry=describe_non_number(entries, row))
    try:
        return np.array([math.nan if type(entry) in absent else float(entry) for entry in entries])
    except OverflowError:
        raise error(ErrorCode.OUT_OF_RANGE, "{at} holds a number that no double can hold; scale it", at=at) from None


def find_non_number(entries: list[Any]) -> int | None:
    """Return the first row that is not a number, a numeric text or missing; None: there is no such row.

    >>> find_non_number(["0", "1.5", None, "", "yes"]), find_non_number(["0", 1])
    (4, None)
    """
    for row, entry in enumerate(entries):
        if isinstance(entry, NUMBERS) or type(entry).__name__ in (*NOTHINGS, "Decimal"):
            continue
        try:
            float(entry if not isinstance(entry, str) or entry.strip() else "0")
        except (TypeError, ValueError):
            return row
    return None


def describe_non_number(entries: list[Any], row: int) -> str:
    """Return a description of an entry that is not a number.

    >>> describe_non_number(["0", "yes", "1"], 1)
    "'yes' in row 1 of 3, counted from 0, which is not a number (1 for yes and 0 for no?)"
    """
    entry = entries[row]
    hint = " (1 for yes and 0 for no?)" if str(entry).strip().lower() in ("yes", "no", "y", "n") else ""
    kind = "a number written as text" if find_non_number([entry]) is None else "which is not a number"
    return f"{safe_repr(entry)} in row {row} of {len(entries):,}, counted from 0, {kind}{hint}"


def find_missing_rows(at: str, absent: npt.NDArray[np.bool_]) -> str:
    """Return the message for the rows of a column without a value."""
    rows = np.flatnonzero(absent)
    listed = ", ".join(map(str, rows[:5])) + (f" and {rows.size - 5:,} more" if rows.size > 5 else "")
    return (
        f"{at} has no value in row{'s' if rows.size > 1 else ''} {listed} of {absent.size:,}, counted from 0; fill in "
        "the missing values, and remove a row only if that does not depend on its outcome"
    )


def get_named_values(value: Any, what: str, error: type[StagewiseError] = InvalidOutcome) -> dict[Any, Any] | None:
    """Return the entries of a mapping, the columns of a data frame or the values of a labelled row; None: no names.

    Nothing is imported for it: Arrow tables tell their `column_names`, frames of pandas and polars their `columns`, and
    a row of a pandas frame has `keys`. A series whose labels are mere positions has no names.

    >>> get_named_values({"opt_out": 0.1}, "the cost"), get_named_values([0.1], "the cost")
    ({'opt_out': 0.1}, None)
    """
    if isinstance(value, Mapping):
        return check_mapping(value, what, error)
    if isinstance(value, list | tuple | float | int | str | type):  # the most common types have no names
        return None
    try:
        names = get_labels(value)
        return None if names is None else {name: value[name] for name in names}
    except Exception:  # an object's own code can raise anything
        rule = "a table whose columns can be read by their names"
        raise error.must_be(ErrorCode.WRONG_TYPE, what, value, rule) from None


def get_labels(value: Any) -> list[Any] | None:
    """Return the names of a table or a row, in order."""
    for member in ("column_names", "columns"):
        if hasattr(value, member):
            return list(getattr(value, member))
    if not hasattr(value, "keys") or not hasattr(value, "__getitem__"):
        return None
    names = list(value.keys())
    return names if any(isinstance(name, str) for name in names) else None


Hashes = npt.NDArray[np.uint64]
GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def finalize_bits(z: Hashes) -> Hashes:
    """Return SplitMix64's finaliser of 64 bits each (n,), a bijection."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def extend_hashes(before: Hashes, column: Hashes) -> Hashes:
    """Return the hashes (n,) of rows with one more column (FNV multiplication, SplitMix64 finaliser)."""
    return finalize_bits(before * np.uint64(0x100000001B3) + column + GOLDEN_GAMMA)


def convert_to_bits(numbers: npt.NDArray[np.generic]) -> Hashes:
    """Return numbers (n,) as 64 bits each, the same for equal numbers: 0.0 and -0.0 are equal.

    >>> bool(convert_to_bits(np.array([0.0]))[0] == convert_to_bits(np.array([-0.0]))[0])
    True
    """
    return np.ascontiguousarray(numbers.astype(np.float64) + 0.0).view(np.uint64)


def hash_rows(rows: npt.NDArray[np.float64]) -> Hashes:
    """Return the hash (n,) of every row of numbers (n, d)."""
    hashes = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        hashes = extend_hashes(hashes, convert_to_bits(column))
    return hashes
