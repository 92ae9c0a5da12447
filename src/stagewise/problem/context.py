"""Contexts: features and segments of a user."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from stagewise.problem.action_set import ALL, ActionSet, Flags
from stagewise.problem.actions import build_mask
from stagewise.problem.checks import Floats, as_array, check_array_and_max, copy_read_only, safe_repr
from stagewise.problem.errors import ErrorCode, InvalidActions

NO_SEGMENTS: Floats = np.empty(0)
LARGEST_SEGMENT = 2**52  # integers up to it are exact floats


class Context(ActionSet):
    """The context of a contextual policy: features and segments of one user.

    Args:
        features: The numbers about the user, each in [−1, 1].
        segments: The key of each segment of the user, whole numbers from 0.
        only: The eligible actions (indices or a mask); None: all.

    Raises:
        InvalidActions: The features or segments have the wrong shape or type.

    Example:
        >>> Context([0.3, 0.1], segments=[2])
        Context(2 features, 1 segment)
    """

    __slots__ = ("chosen", "features", "inside", "segments")

    features: Floats
    segments: Floats
    chosen: Any  # the eligible actions; None: all
    inside: bool  # the numbers were checked to lie in [−1, 1]

    def __init__(self, features: ArrayLike = (), segments: ArrayLike = (), *, only: ArrayLike | None = None) -> None:
        values = as_array(features, "the context", InvalidActions)
        numbers, _ = check_array_and_max(values if values.size else np.empty(0), "the context", InvalidActions)
        if numbers.ndim != 1:
            raise InvalidActions(
                ErrorCode.WRONG_SHAPE,
                "the context has shape {shape}; it must be one list of numbers",
                shape=numbers.shape,
            )
        self.features, self.segments, self.chosen = (
            copy_read_only(numbers),
            copy_read_only(check_segments(segments)),
            only,
        )
        self.inside = False

    @classmethod
    def from_checked(cls, features: Floats, segments: list[int], only: list[int] | None) -> "Context":
        """Return a context of checked values."""
        context = cls.__new__(cls)
        context.features, context.chosen, context.inside = features, only, True
        context.segments = np.array(segments, dtype=np.float64) if segments else NO_SEGMENTS
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
        context = Context.__new__(Context)
        context.features, context.segments, context.chosen = self.features, self.segments, chosen
        context.inside = self.inside
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
        raise InvalidActions(
            ErrorCode.WRONG_TYPE,
            "the segments are {value}; they must be a list of whole numbers from 0 to 2**52 - 1",
            value=safe_repr(value),
        )
    return keys.astype(np.float64)
