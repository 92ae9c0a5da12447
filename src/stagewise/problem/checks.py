"""Numbers and arrays as they come from outside, checked once: each check returns the value it vouches for."""

import math
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.ma import MaskedArray

from stagewise.problem.errors import InvalidProblem, StagewiseError

Floats = npt.NDArray[np.float64]
PerSignal = float | Sequence[float] | Floats  # one number for all signals, or one for each

LARGEST = 1e100  # beyond it a square cannot be told from infinity


def shown(value: Any) -> str:
    """Return a value as an error message shows it: never longer than a line.

    >>> shown(list(range(100)))
    '[0, 1, 2, 3, 4, 5, ...]'
    """
    if isinstance(value, type):  # often given where one of its objects belongs, and then its name tells
        return repr(value)
    try:
        return reprlib.repr(value)
    except ValueError:  # an integer of more digits than Python prints
        return f"a {type(value).__name__} of very many digits"


def number(value: Any, name: str, error: type[StagewiseError] = InvalidProblem) -> float:
    """Return a finite float.

    >>> number(2, "delta")
    2.0
    """
    if isinstance(value, bool | np.bool_ | str | bytes | complex | np.complexfloating) or value is None:
        raise error(f"{name} is {shown(value)}; it must be a number")
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise error(f"{name} is {shown(value)}; it must be a number that a double can hold") from None
    if not math.isfinite(result):
        raise error(f"{name} is {result}; it must be finite, since every bound is built from it")
    return result


def positive(value: Any, name: str) -> float:
    """Return a finite float above zero."""
    result = number(value, name)
    if not 0.0 < result < LARGEST:
        raise InvalidProblem(
            f"{name} is {result}; it must be greater than 0, and below {LARGEST:g}, since bounds are built from squares"
        )
    return result


def whole_at_least(value: Any, name: str, least: int, error: type[StagewiseError] = InvalidProblem) -> int:
    """Return a whole number that is not too small."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < least:
        raise error(f"{name} is {shown(value)}; it must be a whole number of at least {least}")
    return int(value)


def seed_of(value: Any) -> int:
    """Return a seed; one beyond 64 bits would be taken for another."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or not 0 <= value < 2**64:
        raise InvalidProblem(f"seed is {shown(value)}; it must be a whole number from 0 to 2**64 - 1")
    return int(value)


def switch(value: Any, name: str) -> bool:
    """Return True or False, and no other value that Python would take for one of them."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidProblem(f"{name} is {shown(value)}; it must be True or False")
    return bool(value)


def one_of(value: Any, choices: tuple[str, ...], name: str) -> str:
    """Return one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidProblem(f"{name} is {shown(value)}; it must be one of {', '.join(map(repr, choices))}")
    return value


def array(value: Any, name: str, error: type[StagewiseError] = InvalidProblem) -> Floats:
    """Return a C-contiguous float64 array with finite entries; what already is one is not copied.

    >>> array([[1, 2]], "targets")
    array([[1., 2.]])
    """
    return measured(value, name, error)[0]


def measured(value: Any, name: str, error: type[StagewiseError] = InvalidProblem) -> tuple[Floats, float]:
    """Return the same array, and the size of its largest entry.

    >>> measured([1, -2], "targets")
    (array([ 1., -2.]), 2.0)
    """
    whole = unmasked(value, name, error)
    try:
        given = np.asarray(whole)
    except ValueError:
        raise error(f"{name} must be a rectangular array of numbers; its rows differ in length") from None
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


def unmasked(value: Any, name: str, error: type[StagewiseError] = InvalidProblem) -> Any:
    """Return the value unless it is a masked array or lists one: NumPy would take what is masked for data."""
    if isinstance(value, MaskedArray) or (
        isinstance(value, list | tuple) and any(isinstance(entry, MaskedArray) for entry in value)
    ):
        raise error(f"masked values stand in {name}, and would be taken for data; leave them out or fill them in first")
    return value


def frozen(values: Floats) -> Floats:
    """Return a copy that nobody can write to."""
    copy = np.array(values, dtype=np.float64, order="C")
    copy.flags.writeable = False
    return copy


def is_listing(value: Any) -> bool:
    """Say whether a value lists others: a list, a tuple or an array with an axis."""
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)


def entries_of(value: Any, what: str, error: type[StagewiseError] = InvalidProblem) -> list[Any]:
    """Return the entries of a flat listing."""
    if isinstance(unmasked(value, what, error), np.ndarray) and value.ndim > 1:
        raise error(f"{what} has shape {value.shape}; it must be a number or one flat list of numbers")
    return list(value)


def kept(value: Any) -> Any:
    """Return a copy of what a user may go on changing, so that what was promised stays promised."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.ndarray):
        return value.copy()
    return list(value) if isinstance(value, list | tuple) else value


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
