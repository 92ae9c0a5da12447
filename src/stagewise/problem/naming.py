"""Names, ranges and segments as a problem declares them."""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np

from stagewise.problem.checks import LARGEST, mapping_of, number, shown
from stagewise.problem.declared import title
from stagewise.problem.errors import InvalidActions, InvalidProblem

SEGMENTS: dict[int, str] = {}  # what numbers of segments stand for: a hash cannot be read backwards
MOST_SEGMENTS = 1_000_000
LONGEST_SEGMENT = 200  # characters
FLOATS = (float, np.floating)
NOTHINGS = ("NAType", "NaTType")


def listing(names: Any) -> str:
    """Return names as a sentence holds them."""
    names = list(names)
    return ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "") if names else "nothing"


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
    given = mapping_of(value, "the context")
    ranges = {}
    for name in names_of(tuple(given), "numbers of the context"):
        ends = given[name]
        if not isinstance(ends, Sequence) or isinstance(ends, str) or len(ends) != 2:
            raise InvalidProblem(f"the range of {name!r} is {shown(ends)}; it must be (low, high)")
        low, high = (number(end, f"the range of {name!r}") for end in ends)
        if not (low < high and high - low < LARGEST):
            raise InvalidProblem(f"the range of {name!r} is ({low:g}, {high:g}); low must be below high")
        ranges[name] = low, high
    return ranges


def outside(name: str, value: float, low: float, high: float) -> str:
    """Return what is wrong with a number about a user that its range does not hold."""
    if math.isnan(value):
        return (
            f"{name!r} is NaN; every number about a user is needed in every call, so fill in what stands for a missing "
            "one, such as the middle of its range"
        )
    percent = " (was it a percentage?)" if (low, high) == (0.0, 1.0) and 1.0 < value <= 100.0 else ""
    return (
        f"{name!r} is {value:.15g}, outside [{low:g}, {high:g}], its range{percent}; declare another in the problem's "
        f"context, as {{{name!r}: (low, high)}}, where users can lie there"
    )


@lru_cache(maxsize=65536)
def number_of(segment: str) -> int:
    """Return a number for a segment's name: 52 bits of its SHA-256, the same in every process and at all times.

    >>> number_of("NZ") == number_of("NZ") < 2**52
    True
    """
    number = int.from_bytes(sha256(segment.encode()).digest()[:8]) >> 12
    if len(SEGMENTS) < MOST_SEGMENTS:
        SEGMENTS[number] = segment
    return number


def name_of_segment(number: int) -> str:
    """Return the name that a number was made of, where this process has met it.

    >>> name_of_segment(number_of("NZ")), name_of_segment(3)
    ('NZ', 'segment 3')
    """
    return SEGMENTS.get(number, f"segment {number}")


def segment_name(value: Any, division: str) -> str:
    """Return the name of a segment, which is what it is known by in decisions, logs, files and at the desk.

    A text is its own name, a whole number is named by its digits (1.0 too, as pandas has it where a value is missing),
    and truth values are "True" and "False": so 1 and True are two segments, 1 and "1" are one.

    >>> [segment_name(value, "plan") for value in (1, "1", 1.0, np.int64(1), True, np.True_, "True")]
    ['1', '1', '1', '1', 'True', 'True', 'True']
    """
    if type(value) is str and 0 < len(value) <= LONGEST_SEGMENT:
        return value
    if (
        value is None
        or type(value).__name__ in NOTHINGS
        or (isinstance(value, FLOATS) and value != value)
        or (
            isinstance(value, str) and not value  # a file of commas has nothing else where a value is missing
        )
    ):
        raise InvalidActions(
            f"{division!r} is missing; every user belongs to a segment, so give those of whom nothing is known one of "
            "their own, such as 'unknown'"
        )
    if isinstance(value, FLOATS) and float(value).is_integer():
        value = int(value)
    name = str(value) if isinstance(value, str | int | np.integer | np.bool_) else ""
    if not name or len(name) > LONGEST_SEGMENT:
        raise InvalidActions(
            f"{division!r} is {shown(value)}; a segment is a short text, a whole number or True or False"
        )
    return name
