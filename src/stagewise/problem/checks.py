"""Numbers and arrays as they come from outside, checked once: each check returns the value it vouches for."""

import math
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stagewise.problem.errors import InvalidProblem, StagewiseError

Floats = npt.NDArray[np.float64]
PerSignal = float | Sequence[float] | Floats  # one number for all signals, or one for each

LARGEST = 1e100  # beyond it a square cannot be told from infinity
DEEPEST = 16  # levels of lists in lists: no table has as many


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
    if not result > 0.0:
        raise InvalidProblem(f"{name} is {result}; it must be greater than 0")
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
    given = table(value)
    if given is None:
        raise error(f"{name} must be a rectangular array of numbers; its rows differ in length")
    if given.dtype.kind not in "fiu":
        raise error(f"values of type {given.dtype} stand in {name}, where only real numbers may")
    if given.dtype == np.float64:
        result = np.ascontiguousarray(given)
    else:
        with np.errstate(over="ignore"):  # what is too large for a double becomes infinite, and is refused below
            result = np.ascontiguousarray(given, dtype=np.float64)
    if result.size and not (result.min() > -LARGEST and result.max() < LARGEST):  # false for NaN too
        place = tuple(int(i) for i in np.argwhere(~(np.abs(result) < LARGEST))[0])
        raise error(f"there is {result[place]} in {name} at {place}; every entry must be finite and below {LARGEST:g}")
    return result.reshape(given.shape)


def table(value: Any) -> Any:
    """Return an array of any type, or None where there is none: rows that differ in length, or that hold themselves.

    NumPy follows a list that holds itself twice down 2⁶⁴ paths, until the memory is full; where the first entries end
    it refuses such a list at once.

    >>> loop = []
    >>> loop.extend([loop, loop])
    >>> table(loop) is None
    True
    """
    inner = value
    for _ in range(DEEPEST):
        if not isinstance(inner, list | tuple) or not inner:
            break
        inner = inner[0]
    else:
        return None
    try:
        return np.asarray(value)
    except ValueError:
        return None


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
    if isinstance(value, np.ndarray) and value.ndim > 1:
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
