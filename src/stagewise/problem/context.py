"""Contexts: the numbers and segments of a user, with their names and ranges."""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from stagewise.problem.actions import ALL, ActionSet, Flags, build_mask
from stagewise.problem.checks import Floats, as_array, check_array_and_max, copy_read_only
from stagewise.problem.columns import is_blank, is_unicode
from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.problem.proposal import Proposal

NO_SEGMENTS: Floats = np.empty(0)
LARGEST_SEGMENT = 2**52  # integers up to it are exact floats


class ContextVector(ActionSet):
    """The context of a contextual policy: features and segments of one user.

    Args:
        features: The numbers about the user, each in [−1, 1].
        segments: The key of each segment of the user, whole numbers from 0.
        allowed: The eligible actions (indices or a mask); None: all.

    Raises:
        InvalidActions: The features or segments have the wrong shape or type.

    Example:
        >>> ContextVector([0.3, 0.1], segments=[2])
        ContextVector(2 features, 1 segment)
    """

    __slots__ = ("chosen", "clipped", "features", "inside", "proposal", "segments", "time")

    features: Floats
    segments: Floats
    chosen: Any  # the eligible actions; None: all
    inside: bool  # the numbers were checked to lie in [−1, 1]
    proposal: Proposal | None  # what the caller proposes for this user
    clipped: Sequence[str]  # the names of numbers that were beyond their range
    time: float | None  # of the decision, in seconds since 1970; needed where a mean drifts

    def __init__(self, features: ArrayLike = (), segments: ArrayLike = (), *, allowed: ArrayLike | None = None) -> None:
        values = as_array(features, "the context", InvalidActions)
        numbers, _ = check_array_and_max(values if values.size else np.empty(0), "the context", InvalidActions)
        if numbers.ndim != 1:
            rule = "that of one list of numbers"
            raise InvalidActions.must_be(ErrorCode.WRONG_SHAPE, "the shape of the context", numbers.shape, rule)
        self.features, self.segments = copy_read_only(numbers), copy_read_only(check_segments(segments))
        self.chosen, self.inside, self.proposal, self.clipped, self.time = allowed, False, None, (), None

    @classmethod
    def from_checked(
        cls,
        features: Floats,
        segments: list[int],
        only: list[int] | None,
        proposal: Proposal | None = None,
        clipped: Sequence[str] = (),
    ) -> "ContextVector":
        """Return a context of checked values."""
        context = cls.__new__(cls)
        context.features, context.chosen, context.inside, context.proposal = features, only, True, proposal
        context.clipped = clipped
        context.segments = np.array(segments, dtype=np.float64) if segments else NO_SEGMENTS
        context.time = None
        return context

    def at(self, time: float) -> "ContextVector":
        """Return the same context at the time of a decision, in seconds since 1970.

        Args:
            time: The time.

        Returns:
            A new context.

        Example:
            >>> ContextVector([0.3]).at(60.0).time
            60.0
        """
        context = self._copy()
        context.time = time
        return context

    def only(self, chosen: ArrayLike) -> "ContextVector":
        """Return the same context with only these actions eligible.

        Args:
            chosen: Indices or a mask.

        Returns:
            A new context.

        Example:
            >>> ContextVector([0.3]).only([0, 2]).get_eligible(3).tolist()
            [True, False, True]
        """
        context = self._copy()
        context.chosen = chosen
        return context

    def _copy(self) -> "ContextVector":
        """Return a copy; `copy.copy` would take a seventh of a decision."""
        context = ContextVector.__new__(ContextVector)
        context.features, context.segments, context.chosen = self.features, self.segments, self.chosen
        context.inside, context.proposal, context.clipped = self.inside, self.proposal, self.clipped
        context.time = self.time
        return context

    def get_eligible(self, actions: int) -> Flags:
        """Return the mask of the eligible actions; empty: all."""
        return ALL if self.chosen is None else build_mask(self.chosen, actions)

    def __repr__(self) -> str:
        segments = f", {self.segments.size} segment{'s' * (self.segments.size != 1)}" if self.segments.size else ""
        return f"ContextVector({self.features.size} features{segments})"


def check_segments(value: Any) -> Floats:
    keys = as_array(value, "the segments", InvalidActions)
    is_integer = keys.size == 0 or keys.dtype.kind in "iu"
    if keys.ndim != 1 or not is_integer or (keys.size and not (keys.min() >= 0 and keys.max() < LARGEST_SEGMENT)):
        rule = "whole numbers from 0 to 2**52 - 1, in one list"
        raise InvalidActions.must_be(ErrorCode.WRONG_TYPE, "the list of segments", value, rule)
    return keys.astype(np.float64)


SEGMENTS: dict[int, str] = {}  # names of segments by key
MOST_SEGMENTS = 1_000_000
LONGEST_SEGMENT = 200  # characters
LARGEST_NAMED = 10**LONGEST_SEGMENT
FLOATS = (float, np.floating)


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


def find_segment_names(keys: Floats) -> set[str]:
    """Return the names of keys, without those that this process has not hashed.

    >>> find_segment_names(np.array([hash_segment("NZ"), 3.0]))
    {'NZ'}
    """
    return {SEGMENTS[key] for key in np.unique(keys).tolist() if key in SEGMENTS}


def check_segment_name(value: Any, division: str) -> str:
    """Return the name of a segment, as decisions, logs, files and the server use it.

    A text is its own name, a whole number its digits (also 1.0, which pandas uses beside missing values), and booleans
    are "True" and "False". So 1 and True are two segments, and 1 and "1" are one.

    >>> [check_segment_name(value, "plan") for value in (1, "1", 1.0, np.int64(1), True, np.True_, "True")]
    ['1', '1', '1', '1', 'True', 'True', 'True']
    """
    if type(value) is str and 0 < len(value) <= LONGEST_SEGMENT and is_unicode(value):
        return value
    if is_blank(value):
        template = "{division!r} is missing; every user needs a segment, so give unknown users one such as 'unknown'"
        raise InvalidActions(ErrorCode.MISSING_CONTEXT_FIELD, template, division=division)
    if isinstance(value, FLOATS) and float(value).is_integer():
        value = int(value)
    is_long = isinstance(value, int) and abs(value) >= LARGEST_NAMED  # Python writes no integer of many digits
    name = str(value) if isinstance(value, str | int | np.integer | np.bool_) and not is_long else ""
    if not 0 < len(name) <= LONGEST_SEGMENT or not is_unicode(name):
        rule = "a segment: a short text in valid Unicode, a whole number, True or False"
        raise InvalidActions.must_be(ErrorCode.WRONG_TYPE, repr(division), value, rule)
    return name
