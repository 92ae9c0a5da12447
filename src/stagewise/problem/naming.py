"""Names, ranges and segments as a problem declares them."""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np

from stagewise.problem.checks import LARGEST, check_mapping, check_number, safe_repr
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem
from stagewise.problem.signals import check_name

SEGMENTS: dict[int, str] = {}  # names of segments by key
MOST_SEGMENTS = 1_000_000
LONGEST_SEGMENT = 200  # characters
FLOATS = (float, np.floating)
NOTHINGS = ("NAType", "NaTType")


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


def parse_ranges(value: Any) -> dict[str, tuple[float, float]]:
    """Return the range of every number about a user."""
    if not isinstance(value, Mapping):
        return dict.fromkeys(check_unique_names(value, "numbers of the context"), (-1.0, 1.0))
    mapping = check_mapping(value, "the context")
    ranges = {}
    for name in check_unique_names(tuple(mapping), "numbers of the context"):
        ends = mapping[name]
        if not isinstance(ends, Sequence) or isinstance(ends, str) or len(ends) != 2:
            raise InvalidProblem(
                ErrorCode.WRONG_TYPE,
                "the range of {name!r} is {ends}; it must be (low, high)",
                name=name,
                ends=safe_repr(ends),
            )
        low, high = (check_number(end, f"the range of {name!r}") for end in ends)
        if not (low < high and high - low < LARGEST):
            raise InvalidProblem(
                ErrorCode.OUT_OF_RANGE,
                "the range of {name!r} is ({low:g}, {high:g}); low must be below high",
                name=name,
                low=low,
                high=high,
            )
        ranges[name] = low, high
    return ranges


def describe_range_error(name: str, value: float, low: float, high: float) -> str:
    """Return the message for a context number outside its range."""
    if math.isnan(value):
        return (
            f"{name!r} is NaN; every call needs every number of the context, so fill in a value for missing ones, "
            "such as the middle of the range"
        )
    percent = " (was it a percentage?)" if (low, high) == (0.0, 1.0) and 1.0 < value <= 100.0 else ""
    return (
        f"{name!r} is {value:.15g}, outside its range [{low:g}, {high:g}]{percent}; if that value is valid, declare a "
        f"wider range in the problem's context: {{{name!r}: (low, high)}}"
    )


@lru_cache(maxsize=65536)
def hash_segment(segment: str) -> int:
    """Return the key of a segment's name: 52 bits of its SHA-256, the same in every process.

    >>> hash_segment("NZ") == hash_segment("NZ") < 2**52
    True
    """
    number = int.from_bytes(sha256(segment.encode()).digest()[:8]) >> 12
    if len(SEGMENTS) < MOST_SEGMENTS:
        SEGMENTS[number] = segment
    return number


def get_segment_name(number: int) -> str:
    """Return the name of a key that this process has hashed.

    >>> get_segment_name(hash_segment("NZ")), get_segment_name(3)
    ('NZ', 'segment 3')
    """
    return SEGMENTS.get(number, f"segment {number}")


def check_segment_name(value: Any, division: str) -> str:
    """Return the name of a segment, as decisions, logs, files and the server use it.

    A text is its own name, a whole number its digits (also 1.0, which pandas uses beside missing values), and booleans
    are "True" and "False". So 1 and True are two segments, and 1 and "1" are one.

    >>> [check_segment_name(value, "plan") for value in (1, "1", 1.0, np.int64(1), True, np.True_, "True")]
    ['1', '1', '1', '1', 'True', 'True', 'True']
    """
    if type(value) is str and 0 < len(value) <= LONGEST_SEGMENT:
        return value
    if (
        value is None
        or type(value).__name__ in NOTHINGS
        or (isinstance(value, FLOATS) and value != value)
        or (
            isinstance(value, str) and not value  # a missing value in a CSV file
        )
    ):
        raise InvalidActions(
            ErrorCode.MISSING_CONTEXT_FIELD,
            "{division!r} is missing; every user needs a segment, so give unknown users one such as 'unknown'",
            division=division,
        )
    if isinstance(value, FLOATS) and float(value).is_integer():
        value = int(value)
    name = str(value) if isinstance(value, str | int | np.integer | np.bool_) else ""
    if not name or len(name) > LONGEST_SEGMENT:
        raise InvalidActions(
            ErrorCode.WRONG_TYPE,
            "{division!r} is {value}; a segment must be a short text, a whole number, True or False",
            division=division,
            value=safe_repr(value),
        )
    return name
