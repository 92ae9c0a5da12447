"""Checks of numbers, arrays and settings from users: each returns the checked value or raises an error."""

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import fields
from numbers import Number
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from numpy.ma import MaskedArray

from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem, StagewiseError
from stagewise.problem.formatting import join_names, suggest_name

Floats = npt.NDArray[np.float64]
PerSignal = float | Sequence[float] | Floats  # one number for all signals, or one for each

LARGEST = 1e100  # larger numbers have squares near overflow
MANY = 2**62  # upper bound of all counts
MOST = 10_000_000  # actions or features; more do not fit into memory
DEEPEST = 16  # levels of nested lists
BOOL_TYPES = (bool, np.bool_)
NO_NUMBERS = (str, bytes, bytearray, complex, np.complexfloating, np.timedelta64, np.datetime64, type(None))


def unwrap_scalar(value: Any) -> Any:
    """Return the value of a 0-d array, and any other value unchanged."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def check_number(value: Any, name: str, error: type[StagewiseError] = InvalidProblem) -> float:
    """Return a finite float.

    >>> check_number(2, "delta")
    2.0
    """
    number = unwrap_scalar(value)
    try:
        if isinstance(number, (*BOOL_TYPES, *NO_NUMBERS)) or getattr(number, "ndim", 0) != 0:
            raise TypeError
        result = float(number)
    except OverflowError:
        raise error.must_be(ErrorCode.OUT_OF_RANGE, name, value, "a number that a double can hold") from None
    except Exception:  # an object's own code can raise anything
        is_percent = isinstance(number, str) and number.rstrip().endswith("%")
        hint = ", such as 1.0 or 0.0, and not True or False" if isinstance(number, BOOL_TYPES) else ""
        rule = "a number, where two percent are 0.02" if is_percent else f"a number{hint}"
        raise error.must_be(ErrorCode.WRONG_TYPE, name, value, rule) from None
    if not math.isfinite(result):
        raise error.must_be(ErrorCode.NOT_FINITE, name, result, "finite, since every bound is built from it")
    if abs(result) > LARGEST:
        rule = f"at most {LARGEST:g} in size, since bounds use its square"
        raise error.must_be(ErrorCode.OUT_OF_RANGE, name, result, rule)
    return result


def check_outcome(value: Any, name: str, error: type[StagewiseError] = InvalidOutcome) -> float:
    """Return an outcome as a finite float; True counts as 1 and False as 0.

    >>> check_outcome(True, "the reward")
    1.0
    """
    number = unwrap_scalar(value)
    if isinstance(number, str | bytes | type(None)):
        raise error.must_be(ErrorCode.WRONG_TYPE, name, value, "a number, or True or False")
    return float(number) if isinstance(number, BOOL_TYPES) else check_number(value, name, error)


def check_positive(value: Any, name: str, error: type[StagewiseError] = InvalidProblem) -> float:
    """Return a finite float above zero."""
    result = check_number(value, name, error)
    if not 0.0 < result < LARGEST:
        rule = f"greater than 0 and below {LARGEST:g}, since bounds use its square"
        raise error.must_be(ErrorCode.OUT_OF_RANGE, name, result, rule)
    return result


def check_integer(
    value: Any, name: str, rule: str, low: int, high: float, error: type[StagewiseError] = InvalidProblem
) -> int:
    """Return an integer from `low` to `high`; `rule` describes the range in the error.

    >>> check_integer(np.int64(50), "runs", "of at least 1", 1, 2**62)
    50
    """
    number = unwrap_scalar(value)
    try:
        result = None if isinstance(number, BOOL_TYPES) else operator.index(number)
    except Exception:  # an object's own code can raise anything
        result = None
    if result is None or not low <= result <= high:
        code = ErrorCode.WRONG_TYPE if result is None else ErrorCode.OUT_OF_RANGE
        raise error.must_be(code, name, value, f"a whole number {rule}")
    return result


def check_integer_at_least(value: Any, name: str, least: int, error: type[StagewiseError] = InvalidProblem) -> int:
    """Return an integer of at least `least`."""
    return check_integer(value, name, f"of at least {least}, and below 2**62", least, MANY - 1, error)


def check_size(value: Any, name: str, error: type[StagewiseError] = InvalidProblem) -> int:
    """Return a number of actions or features."""
    return check_integer(value, name, f"of at least 1, and at most {MOST:,} to fit into memory", 1, MOST, error)


def check_seed(value: Any, name: str = "seed") -> int:
    """Return a seed of at most 64 bits."""
    return check_integer(value, name, "from 0 to 2**64 - 1", 0, 2**64 - 1)


def check_bool(value: Any, name: str) -> bool:
    """Return a boolean; other truthy values are rejected."""
    flag = unwrap_scalar(value)
    if not isinstance(flag, BOOL_TYPES):
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, name, value, "True or False")
    return bool(flag)


def check_choice(value: Any, choices: Sequence[str], name: str) -> str:
    choice = unwrap_scalar(value)
    if not isinstance(choice, str) or str.__str__(choice) not in choices:
        raise InvalidProblem.must_be_one_of(ErrorCode.INVALID_CHOICE, name, choice, choices)
    return str.__str__(choice)


def find_missing_attributes(value: Any, names: Sequence[str]) -> list[str]:
    """Return which of these attributes an object lacks."""

    def has(name: str) -> bool:
        try:
            return hasattr(value, name)
        except Exception:  # an object's own code can raise anything
            return False

    return [name for name in names if not has(name)]


def as_array(
    value: Any, name: str, error: type[StagewiseError] = InvalidProblem, rule: str = "a rectangular array of numbers"
) -> npt.NDArray[Any]:
    """Return a value as an array of any dtype.

    NumPy expands a list that contains itself until memory is full, so the depth is checked first.
    """
    inner, depth = check_unmasked(value, name, error), 0
    while isinstance(inner, list | tuple) and inner and depth < DEEPEST:
        inner, depth = inner[0], depth + 1
    if depth == DEEPEST:
        rule = f"{rule}, and its lists are nested more than {DEEPEST} levels deep"
        raise error.must_be(ErrorCode.WRONG_SHAPE, name, value, rule)
    try:
        return np.asarray(value)
    except ValueError:
        raise error.must_be(ErrorCode.WRONG_SHAPE, name, value, f"{rule}, and its rows differ in length") from None
    except Exception:  # an object's own code can raise anything
        raise error.must_be(ErrorCode.WRONG_TYPE, name, value, rule) from None


def check_array(value: Any, name: str, error: type[StagewiseError] = InvalidProblem) -> Floats:
    """Return a C-contiguous float64 array with finite entries; one that already is such an array is not copied.

    Exact numbers, such as fractions and long integers, are objects to NumPy and are converted one by one.

    >>> check_array([[1, 2]], "targets")
    array([[1., 2.]])
    """
    return check_array_and_max(value, name, error)[0]


def check_array_and_max(value: Any, name: str, error: type[StagewiseError] = InvalidProblem) -> tuple[Floats, float]:
    """Return the checked array and its largest absolute entry.

    >>> check_array_and_max([1, -2], "targets")
    (array([ 1., -2.]), 2.0)
    """
    array = as_array(value, name, error)
    if array.dtype.kind == "O" and all(isinstance(entry, Number) for entry in array.flat):
        entry_name = f"an entry of {name}"
        array = np.array([check_number(entry, entry_name, error) for entry in array.ravel()]).reshape(array.shape)
    if array.dtype.kind not in "fiu":
        raise error.must_be(ErrorCode.WRONG_TYPE, f"the type of {name}", array.dtype.name, "that of real numbers")
    if array.dtype == np.float64:
        result = np.ascontiguousarray(array)
    else:
        with np.errstate(over="ignore"):  # numbers too large for a double become infinite, which is rejected below
            result = np.ascontiguousarray(array, dtype=np.float64)
    low, high = (result.min(), result.max()) if result.size else (0.0, 0.0)
    if not (low > -LARGEST and high < LARGEST):  # false for NaN too
        index = tuple(int(i) for i in np.argwhere(~(np.abs(result) < LARGEST))[0])
        subject, rule = f"the entry of {name} at {index}", f"finite and below {LARGEST:g}"
        raise error.must_be(ErrorCode.NOT_FINITE, subject, float(result[index]), rule)
    return result.reshape(array.shape), max(float(high), -float(low))


def check_table(value: Any, name: str, error: type[StagewiseError], row: str = "action") -> tuple[Floats, float]:
    """Return a table (rows, columns) that is not empty, and its largest absolute entry."""
    table, largest = check_array_and_max(value, name, error)
    if table.ndim != 2 or table.size == 0:
        rule = f"(rows, columns), with one row per {row} and at least one"
        raise error.must_be(ErrorCode.WRONG_SHAPE, f"the shape of {name}", table.shape, rule)
    return table, largest


def check_vector(value: Any, name: str, error: type[StagewiseError]) -> Floats:
    """Return one vector that is not empty."""
    vector = check_array(value, name, error)
    if vector.ndim != 1 or vector.size == 0:
        raise error.must_be(ErrorCode.WRONG_SHAPE, f"the shape of {name}", vector.shape, "(d,), that of one vector")
    return vector


def check_unmasked(value: Any, name: str, error: type[StagewiseError] = InvalidProblem) -> Any:
    """Return the value; raise an error for masked arrays, whose masked entries NumPy would use as data."""
    entries = value if isinstance(value, list | tuple) else (value,)
    if any(isinstance(entry, MaskedArray) for entry in entries):
        problem = "has masked values, which would be used as data; remove them or fill them in first"
        raise error(ErrorCode.MISSING_VALUE, "{name} {problem}", name=name, problem=problem)
    return value


def check_outcome_array(value: Any, name: str) -> Floats:
    """Return outcomes as an array of finite numbers; True counts as 1 and False as 0.

    >>> check_outcome_array([True, False], "the rewards")
    array([1., 0.])
    """
    array = as_array(value, name, InvalidOutcome)
    if array.dtype.kind == "O":  # such as a column of pandas where truth values may be missing
        array = np.asarray(
            np.frompyfunc(lambda entry: entry + 0 if isinstance(entry, BOOL_TYPES) else entry, 1, 1)(array)
        )
    return check_array(array.astype(np.float64) if array.dtype.kind == "b" else array, name, InvalidOutcome)


def copy_read_only(values: Floats) -> Floats:
    """Return a read-only copy."""
    copy = np.array(values, dtype=np.float64, order="C")
    copy.flags.writeable = False
    return copy


def is_listing(value: Any) -> bool:
    """Return whether a value is a list, a tuple, an array with an axis, or a series."""
    if isinstance(value, list | tuple | np.ndarray):
        return not isinstance(value, np.ndarray) or value.ndim > 0
    try:
        return not isinstance(value, type | str | bytes) and hasattr(value, "__array__") and len(value) >= 0
    except Exception:  # it has no length
        return False


def list_entries(value: Any, what: str, error: type[StagewiseError] = InvalidProblem) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(check_unmasked(value, what, error))
    array = as_array(value, what, error)
    if array.ndim != 1:
        rule = "that of a number or of one flat list of numbers"
        raise error.must_be(ErrorCode.WRONG_SHAPE, f"the shape of {what}", array.shape, rule)
    return list(array)


def copy_value(value: Any, name: str = "a mapping") -> Any:
    """Return a copy of a mutable value, so that later changes by the user have no effect.

    >>> copy_value(np.array("paper")), copy_value(np.int64(3))
    ('paper', 3)
    """
    value = unwrap_scalar(value)
    if isinstance(value, np.number | np.bool_ | np.str_) and not isinstance(value, np.timedelta64):
        return value.item()
    if isinstance(value, Mapping):
        return check_mapping(value, name)
    if isinstance(value, np.ndarray):
        return value.copy()
    return list(value) if isinstance(value, list | tuple) else value


def check_mapping(value: Mapping[Any, Any], what: str, error: type[StagewiseError] = InvalidProblem) -> dict[Any, Any]:
    """Return a mapping as a dictionary; raise an error where it cannot be read."""
    try:
        return dict(value)
    except Exception:  # an object's own code can raise anything
        raise error.must_be(ErrorCode.WRONG_TYPE, what, value, "a mapping whose entries can be read") from None


def check_per_signal(value: Any, names: Sequence[str], what: str) -> Floats:
    """Return one positive number per name, from one for all or a sequence.

    >>> check_per_signal(0.1, ["reward", "cost"], "noise")
    array([0.1, 0.1])
    """
    entries = list_entries(value, what) if is_listing(value) else [value] * len(names)
    check_length(entries, names, what)
    return np.array([check_positive(entry, f"{what} of {name}") for entry, name in zip(entries, names, strict=True)])


def check_length(entries: Sequence[Any], names: Sequence[str], what: str) -> None:
    """Raise InvalidProblem unless there is one entry for each name."""
    if len(entries) != len(names):
        rule = f"{len(names)}, one for each of {join_names(names)}"
        raise InvalidProblem.must_be(ErrorCode.WRONG_SHAPE, f"the number of entries of {what}", len(entries), rule)


def check_name(value: Any, what: str) -> str:
    """Return a valid name."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > 100:
        raise InvalidProblem.must_be(ErrorCode.INVALID_NAME, what, value, "a text of 1 to 100 printable characters")
    return value


def check_unique_names(value: Any, what: str) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, f"the list of {what}", value, "a list of names")
    names = tuple(check_name(name, f"one of the {what}") for name in value)
    for name in names:
        if names.count(name) > 1:
            problem = "{name!r} occurs twice in the {what}; every name must be unique"
            raise InvalidProblem(ErrorCode.DUPLICATE_NAME, problem, name=name, what=what)
    return names


def order_by_name(
    values: Mapping[Any, Any], names: Sequence[str], what: str, error: type[StagewiseError] = InvalidProblem
) -> list[Any]:
    """Return the values in the order of the constraints; the names must be equal."""
    unknown = [name for name in values if name not in names]
    if unknown:
        raise error.must_be_one_of(ErrorCode.UNKNOWN_NAME, f"a name in {what}", unknown[0], names)
    if len(values) != len(names):
        missing = join_names(name for name in names if name not in values)
        raise error(ErrorCode.UNKNOWN_NAME, "{what} lacks {missing}", what=what, missing=missing)
    return [values[name] for name in names]


WAYS = {  # the names of a limit's number in a file
    "at_most": "Limit(0.02, ...)",
    "at_least": "Limit(AtLeast(0.9), ...)",
    "times_safe": "Limit(TimesSafe(1.1), ...)",
}


class StrictSettings:
    """A class that rejects unknown settings and suggests the closest name."""

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        names = [f.name for f in fields(cls)]  # type: ignore[arg-type]
        unknown = next((name for name in settings if name not in names), None)
        if unknown is not None:
            template = "{kind} has no {unknown!r}; it has {names}{hint}"
            way = WAYS.get(unknown, "") if "value" in names else ""
            hint = f"; write {way}" if way else suggest_name(unknown, names)
            data = {"kind": cls.__name__, "unknown": unknown, "names": ", ".join(names), "hint": hint}
            raise InvalidProblem(ErrorCode.UNKNOWN_SETTING, template, **data)
        return super().__new__(cls)


def check_range(low: Any, high: Any, what: str) -> tuple[float, float]:
    """Return the two ends of a range."""
    ends = check_number(low, f"the low of {what}"), check_number(high, f"the high of {what}")
    if not (ends[0] < ends[1] and ends[1] - ends[0] < LARGEST):
        raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, f"the range of {what}", list(ends), "low below high")
    return ends
