"""Numbers and arrays as they come from outside, checked once: each check returns the value it vouches for."""

import math
import operator
from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.ma import MaskedArray

from stagewise.problem.errors import InvalidOutcome, InvalidProblem, StagewiseError
from stagewise.problem.words import nearest
from stagewise.problem.words import shown as shown

Floats = npt.NDArray[np.float64]
PerSignal = float | Sequence[float] | Floats  # one number for all signals, or one for each

LARGEST = 1e100  # beyond it a square cannot be told from infinity
MANY = 2**62  # what is counted stays below it
MOST = 10_000_000  # actions, or features: more would not fit into memory
DEEPEST = 16  # levels of lists in lists: no table has as many
TRUTHS = (bool, np.bool_)
NO_NUMBERS = (str, bytes, bytearray, complex, np.complexfloating, np.timedelta64, np.datetime64, type(None))


def alone(value: Any) -> Any:
    """Return the value that an array without an axis holds, and anything else as it is."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def number(value: Any, name: str, error: type[StagewiseError] = InvalidProblem) -> float:
    """Return a finite float.

    >>> number(2, "delta")
    2.0
    """
    given = alone(value)
    if isinstance(given, TRUTHS):
        raise error(f"{name} is {shown(value)}; it must be a number, such as 1.0 or 0.0, and not True or False")
    if isinstance(given, NO_NUMBERS):
        share = "; two percent are 0.02" if isinstance(given, str) and given.rstrip().endswith("%") else ""
        raise error(f"{name} is {shown(value)}; it must be a number{share}")
    try:
        if getattr(given, "ndim", 0):
            raise TypeError
        result = float(given)
    except Exception:  # whatever the object's own code came to
        raise error(f"{name} is {shown(value)}; it must be a number that a double can hold") from None
    if not math.isfinite(result):
        raise error(f"{name} is {result}; it must be finite, since every bound is built from it")
    if abs(result) > LARGEST:
        raise error(f"{name} is {result}; beyond {LARGEST:g} its square cannot be reckoned with")
    return result


def observed(value: Any, name: str, error: type[StagewiseError] = InvalidOutcome) -> float:
    """Return an outcome that was seen: a finite float; True counts as 1 and False as 0.

    >>> observed(True, "the reward")
    1.0
    """
    given = alone(value)
    if isinstance(given, str | bytes | type(None)):
        raise error(f"{name} is {shown(value)}; it must be a number, or True or False")
    return float(given) if isinstance(given, TRUTHS) else number(value, name, error)


def positive(value: Any, name: str) -> float:
    """Return a finite float above zero."""
    result = number(value, name)
    if not 0.0 < result < LARGEST:
        raise InvalidProblem(
            f"{name} is {result}; it must be greater than 0, and below {LARGEST:g}, since bounds are built from squares"
        )
    return result


def whole(value: Any, name: str, rule: str, low: int, high: float, error: type[StagewiseError] = InvalidProblem) -> int:
    """Return a whole number from `low` to `high`, of Python or of NumPy; `rule` says so in words.

    >>> whole(np.int64(50), "runs", "of at least 1", 1, 2**62)
    50
    """
    given = alone(value)
    try:
        result = low - 1 if isinstance(given, TRUTHS) else operator.index(given)
    except Exception:
        result = low - 1
    if not low <= result <= high:
        raise error(f"{name} is {shown(value)}; it must be a whole number {rule}")
    return result


def whole_at_least(value: Any, name: str, least: int, error: type[StagewiseError] = InvalidProblem) -> int:
    """Return a whole number that is not too small."""
    result = whole(value, name, f"of at least {least}", least, math.inf, error)
    if result >= MANY:
        raise error(f"{name} is {shown(value)}; it must be below 2**62, since nothing is counted further")
    return result


def size_of(value: Any, name: str, error: type[StagewiseError] = InvalidProblem) -> int:
    """Return how many actions or features there are."""
    return whole(value, name, f"of at least 1, and at most {MOST:,} to fit into memory", 1, MOST, error)


def seed_of(value: Any, name: str = "seed") -> int:
    """Return a seed; one beyond 64 bits would be taken for another."""
    return whole(value, name, "from 0 to 2**64 - 1", 0, 2**64 - 1)


def switch(value: Any, name: str) -> bool:
    """Return True or False, and no other value that Python would take for one of them."""
    given = alone(value)
    if not isinstance(given, TRUTHS):
        raise InvalidProblem(f"{name} is {shown(value)}; it must be True or False")
    return bool(given)


def one_of(value: Any, choices: Sequence[str], name: str) -> str:
    """Return one of the choices."""
    given = alone(value)
    if not isinstance(given, str) or str.__str__(given) not in choices:
        near = nearest(given, choices)
        raise InvalidProblem(f"{name} is {shown(value)}; it must be one of {', '.join(map(repr, choices))}{near}")
    return str.__str__(given)


def missing(value: Any, names: Sequence[str]) -> list[str]:
    """Return which of these attributes an object does not have, or does not tell."""

    def has(name: str) -> bool:
        try:
            return hasattr(value, name)
        except Exception:
            return False

    return [name for name in names if not has(name)]


def as_array(
    value: Any, name: str, error: type[StagewiseError] = InvalidProblem, rule: str = "a rectangular array of numbers"
) -> npt.NDArray[Any]:
    """Return what NumPy makes of a value, whatever its type.

    NumPy follows a list that holds itself twice down 2⁶⁴ paths, until the memory is full; so depth is looked at first.
    """
    inner, depth = unmasked(value, name, error), 0
    while isinstance(inner, list | tuple) and inner and depth < DEEPEST:
        inner, depth = inner[0], depth + 1
    if depth == DEEPEST:
        raise error(f"{name} must be {rule}; there are lists in lists more than {DEEPEST} levels deep")
    try:
        return np.asarray(value)
    except ValueError:
        raise error(f"{name} must be {rule}; its rows differ in length") from None
    except Exception:  # whatever the object's own code came to
        raise error(f"{name} must be {rule}; what is given is {shown(value)}") from None


def array(value: Any, name: str, error: type[StagewiseError] = InvalidProblem) -> Floats:
    """Return a C-contiguous float64 array with finite entries; what already is one is not copied.

    Exact numbers, such as fractions and long integers, come as objects and are taken one by one.

    >>> array([[1, 2]], "targets")
    array([[1., 2.]])
    """
    return measured(value, name, error)[0]


def measured(value: Any, name: str, error: type[StagewiseError] = InvalidProblem) -> tuple[Floats, float]:
    """Return the same array, and the size of its largest entry.

    >>> measured([1, -2], "targets")
    (array([ 1., -2.]), 2.0)
    """
    given = as_array(value, name, error)
    if given.dtype.kind == "O" and all(isinstance(entry, Number) for entry in given.flat):
        told = f"an entry of {name}"
        given = np.array([number(entry, told, error) for entry in given.ravel()]).reshape(given.shape)
    if given.dtype.kind not in "fiu":
        raise error(f"values of type {given.dtype} stand in {name}, where only real numbers may")
    if given.dtype == np.float64:
        result = np.ascontiguousarray(given)
    else:
        with np.errstate(over="ignore"):  # what is too large for a double becomes infinite, and is refused below
            result = np.ascontiguousarray(given, dtype=np.float64)
    low, high = (result.min(), result.max()) if result.size else (0.0, 0.0)
    if not (low > -LARGEST and high < LARGEST):  # false for NaN too
        place = tuple(int(i) for i in np.argwhere(~(np.abs(result) < LARGEST))[0])
        raise error(f"there is {result[place]} in {name} at {place}; every entry must be finite and below {LARGEST:g}")
    return result.reshape(given.shape), max(float(high), -float(low))


def table_of(value: Any, name: str, error: type[StagewiseError], row: str = "action") -> tuple[Floats, float]:
    """Return a table (rows, columns) that is not empty, and the size of its largest entry."""
    table, largest = measured(value, name, error)
    if table.ndim != 2 or table.size == 0:
        raise error(
            f"{name} must be a table with one row per {row} and at least one; what is given has shape {table.shape}"
        )
    return table, largest


def vector_of(value: Any, name: str, error: type[StagewiseError]) -> Floats:
    """Return one vector that is not empty."""
    vector = array(value, name, error)
    if vector.ndim != 1 or vector.size == 0:
        raise error(f"{name} must be one vector of length d; what is given has shape {vector.shape}")
    return vector


def unmasked(value: Any, name: str, error: type[StagewiseError] = InvalidProblem) -> Any:
    """Return the value unless it is a masked array or lists one: NumPy would take what is masked for data."""
    if isinstance(value, MaskedArray) or (
        isinstance(value, list | tuple) and any(isinstance(entry, MaskedArray) for entry in value)
    ):
        raise error(f"masked values stand in {name}, and would be taken for data; leave them out or fill them in first")
    return value


def outcomes(value: Any, name: str) -> Floats:
    """Return outcomes that were seen, one array of finite numbers; True counts as 1 and False as 0.

    >>> outcomes([True, False], "the rewards")
    array([1., 0.])
    """
    given = as_array(value, name, InvalidOutcome)
    if given.dtype.kind == "O":  # such as a column of pandas where truth values may be missing
        given = np.asarray(np.frompyfunc(lambda entry: entry + 0 if isinstance(entry, TRUTHS) else entry, 1, 1)(given))
    return array(given.astype(np.float64) if given.dtype.kind == "b" else given, name, InvalidOutcome)


def frozen(values: Floats) -> Floats:
    """Return a copy that nobody can write to."""
    copy = np.array(values, dtype=np.float64, order="C")
    copy.flags.writeable = False
    return copy


def is_listing(value: Any) -> bool:
    """Say whether a value lists others: a list, a tuple, an array with an axis, or a series that can become one."""
    if isinstance(value, list | tuple | np.ndarray):
        return not isinstance(value, np.ndarray) or value.ndim > 0
    try:
        return not isinstance(value, type | str | bytes) and hasattr(value, "__array__") and len(value) >= 0
    except Exception:  # it has no length, or does not tell
        return False


def entries_of(value: Any, what: str, error: type[StagewiseError] = InvalidProblem) -> list[Any]:
    """Return the entries of a flat listing."""
    if isinstance(value, list | tuple):
        return list(unmasked(value, what, error))
    given = as_array(value, what, error)
    if given.ndim != 1:
        raise error(f"{what} has shape {given.shape}; it must be a number or one flat list of numbers")
    return list(given)


def kept(value: Any, name: str = "a mapping") -> Any:
    """Return a copy of what a user may go on changing, so that what was promised stays promised.

    >>> kept(np.array("paper")), kept(np.int64(3))
    ('paper', 3)
    """
    value = alone(value)
    if isinstance(value, np.number | np.bool_ | np.str_) and not isinstance(value, np.timedelta64):
        return value.item()
    if isinstance(value, Mapping):
        return mapping_of(value, name)
    if isinstance(value, np.ndarray):
        return value.copy()
    return list(value) if isinstance(value, list | tuple) else value


def mapping_of(value: Mapping[Any, Any], what: str, error: type[StagewiseError] = InvalidProblem) -> dict[Any, Any]:
    """Return a mapping's entries, whatever its own code does."""
    try:
        return dict(value)
    except Exception:
        raise error(f"{what} is {shown(value)}; its entries cannot be read") from None


def one_per(value: Any, names: Sequence[str], what: str) -> Floats:
    """Return one positive number per name, from one for all or a sequence.

    >>> one_per(0.1, ["reward", "cost"], "noise")
    array([0.1, 0.1])
    """
    entries = entries_of(value, what) if is_listing(value) else [value] * len(names)
    if len(entries) != len(names):
        raise InvalidProblem(
            f"{what} has {len(entries)} entries; it needs one number for all, or one for each of {', '.join(names)}"
        )
    return np.array([positive(entry, f"{what} of {name}") for entry, name in zip(entries, names, strict=True)])
