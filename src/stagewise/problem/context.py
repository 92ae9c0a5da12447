"""Contexts: the numbers and segments of a user, with their names and ranges."""

import math
from collections.abc import Mapping, Sequence
from copy import copy
from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from stagewise.problem.actions import ALL, ActionSet, Flags, build_mask
from stagewise.problem.checks import (
    Floats,
    as_array,
    check_array_and_max,
    check_mapping,
    check_unique_names,
    copy_read_only,
)
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem
from stagewise.problem.proposal import Proposal
from stagewise.problem.signals import check_range

NO_SEGMENTS: Floats = np.empty(0)
LARGEST_SEGMENT = 2**52  # integers up to it are exact floats


class Context(ActionSet):
    """The context of a contextual policy: features and segments of one user.

    Args:
        features: The numbers about the user, each in [−1, 1].
        segments: The key of each segment of the user, whole numbers from 0.
        allowed: The eligible actions (indices or a mask); None: all.

    Raises:
        InvalidActions: The features or segments have the wrong shape or type.

    Example:
        >>> Context([0.3, 0.1], segments=[2])
        Context(2 features, 1 segment)
    """

    __slots__ = ("chosen", "features", "inside", "proposal", "segments", "time")

    features: Floats
    segments: Floats
    chosen: Any  # the eligible actions; None: all
    inside: bool  # the numbers were checked to lie in [−1, 1]
    proposal: Proposal | None  # what the caller proposes for this user
    time: float | None  # of the decision, in seconds since 1970; needed where a mean drifts

    def __init__(self, features: ArrayLike = (), segments: ArrayLike = (), *, allowed: ArrayLike | None = None) -> None:
        values = as_array(features, "the context", InvalidActions)
        numbers, _ = check_array_and_max(values if values.size else np.empty(0), "the context", InvalidActions)
        if numbers.ndim != 1:
            rule = "that of one list of numbers"
            raise InvalidActions.must_be(ErrorCode.WRONG_SHAPE, "the shape of the context", numbers.shape, rule)
        self.features, self.segments = copy_read_only(numbers), copy_read_only(check_segments(segments))
        self.chosen, self.inside, self.proposal, self.time = allowed, False, None, None

    @classmethod
    def from_checked(
        cls, features: Floats, segments: list[int], only: list[int] | None, proposal: Proposal | None = None
    ) -> "Context":
        """Return a context of checked values."""
        context = cls.__new__(cls)
        context.features, context.chosen, context.inside, context.proposal = features, only, True, proposal
        context.segments = np.array(segments, dtype=np.float64) if segments else NO_SEGMENTS
        context.time = None
        return context

    def at(self, time: float) -> "Context":
        """Return the same context at the time of a decision, in seconds since 1970.

        Args:
            time: The time.

        Returns:
            A new context.

        Example:
            >>> Context([0.3]).at(60.0).time
            60.0
        """
        context = copy(self)
        context.time = time
        return context

    def only(self, chosen: ArrayLike) -> "Context":
        """Return the same context with only these actions eligible.

        Args:
            chosen: Indices or a mask.

        Returns:
            A new context.

        Example:
            >>> Context([0.3]).only([0, 2]).get_eligible(3).tolist()
            [True, False, True]
        """
        context = copy(self)
        context.chosen = chosen
        return context

    def get_eligible(self, actions: int) -> Flags:
        """Return the mask of the eligible actions; empty: all."""
        return ALL if self.chosen is None else build_mask(self.chosen, actions)

    def __repr__(self) -> str:
        segments = f", {self.segments.size} segment{'s' * (self.segments.size != 1)}" if self.segments.size else ""
        return f"Context({self.features.size} features{segments})"


def check_segments(value: Any) -> Floats:
    """Return the keys of segments."""
    keys = as_array(value, "the segments", InvalidActions)
    is_integer = keys.size == 0 or keys.dtype.kind in "iu"
    if keys.ndim != 1 or not is_integer or (keys.size and not (keys.min() >= 0 and keys.max() < LARGEST_SEGMENT)):
        rule = "whole numbers from 0 to 2**52 - 1, in one list"
        raise InvalidActions.must_be(ErrorCode.WRONG_TYPE, "the list of segments", value, rule)
    return keys.astype(np.float64)


SEGMENTS: dict[int, str] = {}  # names of segments by key
MOST_SEGMENTS = 1_000_000
LONGEST_SEGMENT = 200  # characters
FLOATS = (float, np.floating)
NOTHINGS = ("NAType", "NaTType")


def parse_ranges(value: Any) -> dict[str, tuple[float, float]]:
    """Return the range of every number about a user."""
    if not isinstance(value, Mapping):
        return dict.fromkeys(check_unique_names(value, "numbers of the context"), (-1.0, 1.0))
    mapping = check_mapping(value, "the context")
    ranges = {}
    for name in check_unique_names(tuple(mapping), "numbers of the context"):
        ends = mapping[name]
        if not isinstance(ends, Sequence) or isinstance(ends, str) or len(ends) != 2:
            raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, f"the range of {name!r}", ends, "(low, high)")
        low, high = ends
        ranges[name] = check_range(low, high, repr(name))
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
    is_nan = isinstance(value, FLOATS) and value != value
    if value is None or is_nan or type(value).__name__ in NOTHINGS or (isinstance(value, str) and not value):
        template = "{division!r} is missing; every user needs a segment, so give unknown users one such as 'unknown'"
        raise InvalidActions(ErrorCode.MISSING_CONTEXT_FIELD, template, division=division)
    if isinstance(value, FLOATS) and float(value).is_integer():
        value = int(value)
    name = str(value) if isinstance(value, str | int | np.integer | np.bool_) else ""
    if not name or len(name) > LONGEST_SEGMENT:
        rule = "a segment: a short text, a whole number, True or False"
        raise InvalidActions.must_be(ErrorCode.WRONG_TYPE, repr(division), value, rule)
    return name
