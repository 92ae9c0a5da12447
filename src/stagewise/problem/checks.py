"""Numbers and arrays as they come from outside, checked once: each check returns the value it vouches for."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stagewise.problem.errors import InvalidProblem, StagewiseError

Floats = npt.NDArray[np.float64]


def number(value: Any, name: str, error: type[StagewiseError] = InvalidProblem) -> float:
    """Return a finite float.

    >>> number(2, "delta")
    2.0
    """
    if isinstance(value, bool | np.bool_ | str | bytes) or value is None:
        raise error(f"{name} is {value!r}; it must be a number")
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise error(f"{name} is {value!r}; it must be a number") from None
    if not math.isfinite(result):
        raise error(f"{name} is {result}; it must be finite, since every bound is built from it")
    return result


def positive(value: Any, name: str) -> float:
    """Return a finite float above zero."""
    result = number(value, name)
    if not result > 0.0:
        raise InvalidProblem(f"{name} is {result}; it must be greater than 0")
    return result


def array(value: Any, name: str, error: type[StagewiseError] = InvalidProblem) -> Floats:
    """Return a C-contiguous float64 array with finite entries; what already is one is not copied.

    >>> array([[1, 2]], "targets")
    array([[1., 2.]])
    """
    try:
        given = np.asarray(value)
    except ValueError:
        raise error(f"{name} must be a rectangular array of numbers; its rows differ in length") from None
    if given.dtype.kind not in "fiu":
        raise error(f"{name} holds values of type {given.dtype}; it must hold real numbers")
    if given.dtype == np.float64:
        result = np.ascontiguousarray(given)
    else:
        with np.errstate(over="ignore"):  # what is too large for a double becomes infinite, and is refused below
            result = np.ascontiguousarray(given, dtype=np.float64)
    if not np.isfinite(result).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(result))[0])
        raise error(f"{name} holds {result[place]} at position {place}; every entry must be finite")
    return result.reshape(given.shape)


def frozen(values: Floats) -> Floats:
    """Return a copy that nobody can write to."""
    copy = np.array(values, dtype=np.float64, order="C")
    copy.flags.writeable = False
    return copy


def one_per(value: Any, names: Sequence[str], what: str) -> Floats:
    """Return one positive number per name, from one for all or a sequence.

    >>> one_per(0.1, ["reward", "cost"], "noise")
    array([0.1, 0.1])
    """
    given = np.ndim(value) > 0
    entries = list(value) if given else [value] * len(names)
    if len(entries) != len(names):
        raise InvalidProblem(f"{what} has {len(entries)} entries; it needs one, or one for each of {', '.join(names)}")
    return np.array([positive(entry, f"{what} of {name}") for entry, name in zip(entries, names, strict=True)])
