"""Names and ranges as a problem declares them, and segments numbered as they are first met."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from stagewise.problem.checks import LARGEST, number, shown
from stagewise.problem.context import MOST_SEGMENTS
from stagewise.problem.declared import title
from stagewise.problem.errors import InvalidActions, InvalidProblem


def listing(names: Any) -> str:
    """Return names as a sentence holds them."""
    names = list(names)
    return ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "") if names else "nothing"


def meant(name: Any, known: Any) -> str:
    """Return the end of a sentence that asks whether another name was meant."""
    near = get_close_matches(str(name), list(known), 1)
    return f"; did you mean {near[0]!r}" if near else ""


def names_of(value: Any, what: str) -> tuple[str, ...]:
    """Return names that differ."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidProblem(f"{what} are {shown(value)}; they must be a list of names")
    names = tuple(title(name, f"one of the {what}") for name in value)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidProblem(f"{twice!r} stands twice among the {what}; each needs a name of its own")
    return names


def ranges_of(value: Any) -> dict[str, tuple[float, float]]:
    """Return the range of every number about a user."""
    if not isinstance(value, Mapping):
        return dict.fromkeys(names_of(value, "numbers of the context"), (-1.0, 1.0))
    ranges = {}
    for name in names_of(tuple(value), "numbers of the context"):
        ends = value[name]
        if not isinstance(ends, Sequence) or isinstance(ends, str) or len(ends) != 2:
            raise InvalidProblem(f"the range of {name!r} is {shown(ends)}; it must be (low, high)")
        low, high = (number(end, f"the range of {name!r}") for end in ends)
        if not (low < high and high - low < LARGEST):
            raise InvalidProblem(f"the range of {name!r} is ({low:g}, {high:g}); low must be below high")
        ranges[name] = low, high
    return ranges


def number_of(numbered: dict[str, int], value: Any, name: str) -> int:
    """Return the number of a segment, a new one if it was never met."""
    place = numbered.get(value) if type(value) is str else None
    if place is not None:
        return place
    if not isinstance(value, str | int | np.integer) or (isinstance(value, str) and len(value) > 200):
        raise InvalidActions(f"{name!r} is {shown(value)}; a segment is a short text, a whole number or a truth value")
    key = value if isinstance(value, str) else str(value)
    if key not in numbered:
        if len(numbered) >= MOST_SEGMENTS:
            raise InvalidActions(f"{name!r} is {shown(value)}, a new segment; there are {MOST_SEGMENTS} already")
        numbered[key] = len(numbered)
    return numbered[key]
