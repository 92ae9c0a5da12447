"""Checks of numbers and arrays from users: each returns the checked value or raises an error."""

import math
import operator
from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.ma import MaskedArray

from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem, StagewiseError
from stagewise.problem.formatting import safe_repr as safe_repr
from stagewise.problem.formatting import suggest_name

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
    if isinstance(number, BOOL_TYPES):
        raise error(
            ErrorCode.WRONG_TYPE,
            "{name} is {value}; it must be a number, such as 1.0 or 0.0, and not True or False",
            name=name,
            value=safe_repr(value),
        )
    if isinstance(number, NO_NUMBERS):
        share = "; two percent are 0.02" if isinstance(number, str) and number.rstrip().endswith("%") else ""
        raise error(
            ErrorCode.WRONG_TYPE,
            "{name} is {value}; it must be a number{share}",
            name=name,
            value=safe_repr(value),
            share=share,
        )
    try:
        if getattr(number, "ndim", 0):
            raise TypeError
        result = float(number)
    except OverflowError:
        raise error(
            ErrorCode.OUT_OF_RANGE,
            "{name} is {value}; it must be a number that a double can hold",
            name=name,
            value=safe_repr(value),
        ) from None
    except Exception:  # an object's own code can raise anything
        raise error(
            ErrorCode.WRONG_TYPE, "{name} is {value}; it must be a number", name=name, value=safe_repr(value)
        ) from None
    if not math.isfinite(result):
        raise error(
            ErrorCode.NOT_FINITE,
            "{name} is {result}; it must be finite, since every bound is built from it",
            name=name,
            result=result,
        )
    if abs(result) > LARGEST:
        raise error(
            ErrorCode.OUT_OF_RANGE,
            "{name} is {result}; it must be at most {largest:g} in size, since bounds use its square",
            name=name,
            result=result,
            largest=LARGEST,
        )
    return result


def check_outcome(value: Any, name: str, error: type[StagewiseError] = InvalidOutcome) -> float:
    """Return an outcome as a finite float; True counts as 1 and False as 0.

    >>> check_outcome(True, "the reward")
    1.0
    """
    number = unwrap_scalar(value)
    if isinstance(number, str | bytes | type(None)):
        raise error(
            ErrorCode.WRONG_TYPE,
            "{name} is {value}; it must be a number, or True or False",
            name=name,
            value=safe_repr(value),
        )
    return float(number) if isinstance(number, BOOL_TYPES) else check_number(value, name, error)


def check_positive(value: Any, name: str) -> float:
    """Return a finite float above zero."""
    result = check_number(value, name)
    if not 0.0 < result < LARGEST:
        raise InvalidProblem(
            ErrorCode.OUT_OF_RANGE,
            "{name} is {result}; it must be greater than 0 and below {largest:g}, since bounds use its square",
            name=name,
            result=result,
            largest=LARGEST,
        )
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
    if result is None:
        raise error(
            ErrorCode.WRONG_TYPE,
            "{name} is {value}; it must be a whole number {rule}",
            name=name,
            value=safe_repr(value),
            rule=rule,
        )
    if not low <= result <= high:
        raise error(
            ErrorCode.OUT_OF_RANGE,
            "{name} is {value}; it must be a whole number {rule}",
            name=name,
            value=safe_repr(value),
            rule=rule,
        )
    return result


def check_integer_at_least(value: Any, name: str, least: int, error: type[StagewiseError] = InvalidProblem) -> int:
    """Return an integer of at least `least`."""
    result = check_integer(value, name, f"of at least {least}", least, math.inf, error)
    if result >= MANY:
        raise error(
            ErrorCode.OUT_OF_RANGE,
            "{name} is {value}; it must be below 2**62",
            name=name,
            value=safe_repr(value),
        )
    return result


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
        raise InvalidProblem(
            ErrorCode.WRONG_TYPE, "{name} is {value}; it must be True or False", name=name, value=safe_repr(value)
        )
    return bool(flag)


def check_choice(value: Any, choices: Sequence[str], name: str) -> str:
    """Return one of the choices."""
    choice = unwrap_scalar(value)
    if not isinstance(choice, str) or str.__str__(choice) not in choices:
        hint = suggest_name(choice, choices)
        raise InvalidProblem(
            ErrorCode.INVALID_CHOICE,
            "{name} is {value}; it must be one of {repr}{hint}",
            name=name,
            value=safe_repr(value),
            repr=", ".join(map(repr, choices)),
            hint=hint,
        )
    return str.__str__(choice)


def find_missing_attributes(value: Any, names: Sequence[str]) -> list[str]:
    """Return which of these attributes an object lacks."""

    def has(name: str) -> bool:
        try:
            return hasattr(value, name)
        except Exception:
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
        raise error(
            ErrorCode.WRONG_SHAPE,
            "{name} must be {rule}; its lists are nested more than {deepest} levels deep",
            name=name,
            rule=rule,
            deepest=DEEPEST,
        )
    try:
        return np.asarray(value)
    except ValueError:
        raise error(
            ErrorCode.WRONG_SHAPE, "{name} must be {rule}; its rows differ in length", name=name, rule=rule
        ) from None
    except Exception:  # an object's own code can raise anything
        raise error(
            ErrorCode.WRONG_TYPE,
            "{name} is {value}; it must be {rule}",
            name=name,
            rule=rule,
            value=safe_repr(value),
        ) from None


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
        raise error(
            ErrorCode.WRONG_TYPE,
            "{name} has values of type {dtype}; it must have real numbers",
            dtype=array.dtype,
            name=name,
        )
    if array.dtype == np.float64:
        result = np.ascontiguousarray(array)
    else:
        with np.errstate(over="ignore"):  # numbers too large for a double become infinite, which is rejected below
            result = np.ascontiguousarray(array, dtype=np.float64)
    low, high = (result.min(), result.max()) if result.size else (0.0, 0.0)
    if not (low > -LARGEST and high < LARGEST):  # false for NaN too
        index = tuple(int(i) for i in np.argwhere(~(np.abs(result) < LARGEST))[0])
        raise error(
            ErrorCode.NOT_FINITE,
            "{name} has {result} at {index}; every entry must be finite and below {largest:g}",
            result=result[index],
            name=name,
            index=index,
            largest=LARGEST,
        )
    return result.reshape(array.shape), max(float(high), -float(low))


def check_table(value: Any, name: str, error: type[StagewiseError], row: str = "action") -> tuple[Floats, float]:
    """Return a table (rows, columns) that is not empty, and its largest absolute entry."""
    table, largest = check_array_and_max(value, name, error)
    if table.ndim != 2 or table.size == 0:
        raise error(
            ErrorCode.WRONG_SHAPE,
            "{name} must be a table with one row per {row} and at least one; it has shape {shape}",
            name=name,
            row=row,
            shape=table.shape,
        )
    return table, largest


def check_vector(value: Any, name: str, error: type[StagewiseError]) -> Floats:
    """Return one vector that is not empty."""
    vector = check_array(value, name, error)
    if vector.ndim != 1 or vector.size == 0:
        raise error(
            ErrorCode.WRONG_SHAPE,
            "{name} must be one vector of length d; it has shape {shape}",
            name=name,
            shape=vector.shape,
        )
    return vector


def check_unmasked(value: Any, name: str, error: type[StagewiseError] = InvalidProblem) -> Any:
    """Return the value; raise an error for masked arrays, whose masked entries NumPy would use as data."""
    if isinstance(value, MaskedArray) or (
        isinstance(value, list | tuple) and any(isinstance(entry, MaskedArray) for entry in value)
    ):
        raise error(
            ErrorCode.MISSING_VALUE,
            "{name} has masked values, which would be used as data; remove them or fill them in first",
            name=name,
        )
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
    """Return the entries of a flat listing."""
    if isinstance(value, list | tuple):
        return list(check_unmasked(value, what, error))
    array = as_array(value, what, error)
    if array.ndim != 1:
        raise error(
            ErrorCode.WRONG_SHAPE,
            "{what} has shape {shape}; it must be a number or one flat list of numbers",
            what=what,
            shape=array.shape,
        )
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
    except Exception:
        raise error(
            ErrorCode.WRONG_TYPE, "{what} is {value}; its entries cannot be read", what=what, value=safe_repr(value)
        ) from None


def check_per_signal(value: Any, names: Sequence[str], what: str) -> Floats:
    """Return one positive number per name, from one for all or a sequence.

    >>> check_per_signal(0.1, ["reward", "cost"], "noise")
    array([0.1, 0.1])
    """
    entries = list_entries(value, what) if is_listing(value) else [value] * len(names)
    if len(entries) != len(names):
        raise InvalidProblem(
            ErrorCode.WRONG_SHAPE,
            "{what} has {entries_count} entries; it needs one number for all, or one for each of {names}",
            what=what,
            entries_count=len(entries),
            names=", ".join(names),
        )
    return np.array([check_positive(entry, f"{what} of {name}") for entry, name in zip(entries, names, strict=True)])


def check_name(value: Any, what: str) -> str:
    """Return a valid name."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > 100:
        raise InvalidProblem(
            ErrorCode.INVALID_NAME,
            "{what} is {value}; it must be a name: text of 1 to 100 printable characters",
            what=what,
            value=safe_repr(value),
        )
    return value


def check_unique_names(value: Any, what: str) -> tuple[str, ...]:
    """Return different names."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidProblem(
            ErrorCode.WRONG_TYPE, "{what} are {value}; they must be a list of names", what=what, value=safe_repr(value)
        )
    names = tuple(check_name(name, f"one of the {what}") for name in value)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidProblem(
            ErrorCode.DUPLICATE_NAME,
            "{twice!r} occurs twice in the {what}; every name must be unique",
            twice=twice,
            what=what,
        )
    return names


def order_by_name(
    values: Mapping[Any, Any], names: Sequence[str], what: str, error: type[StagewiseError] = InvalidProblem
) -> list[Any]:
    """Return the values in the order of the constraints; the names must be equal."""
    if set(values) != set(names):
        hint = next((found for name in values if name not in names and (found := suggest_name(name, names))), "")
        raise error(
            ErrorCode.UNKNOWN_NAME,
            "{what} names {values}; the constraints are {names}{hint}",
            what=what,
            values=safe_repr(list(values)),
            names=safe_repr(list(names)),
            hint=hint,
        )
    return [values[name] for name in names]
