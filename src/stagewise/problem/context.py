"""A context: numbers about whom the round is for, and the segments they belong to."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from stagewise.problem.action_set import ALL, ActionSet, Flags
from stagewise.problem.actions import mask_of
from stagewise.problem.checks import Floats, as_array, frozen, measured, shown
from stagewise.problem.errors import InvalidActions

NO_SEGMENTS: Floats = np.empty(0)
LARGEST_SEGMENT = 2**52  # whole numbers up to it are exact, and so is the next


class Context(ActionSet):
    """The actions of a policy for one user: numbers about the user, and the number of each segment they belong to.

    `features` are the numbers, `segments` the segments, and `only` says which actions are on offer, where not all are.

    >>> Context([0.3, 0.1], segments=[2])
    Context(2 features, 1 segment)
    """

    __slots__ = ("chosen", "features", "inside", "segments")

    features: Floats
    segments: Floats
    chosen: Any  # which actions are on offer; None: all
    inside: bool  # its numbers are known to lie in [−1, 1]

    def __init__(self, features: ArrayLike = (), segments: ArrayLike = (), *, only: ArrayLike | None = None) -> None:
        given = as_array(features, "the context", InvalidActions)
        numbers, _ = measured(given if given.size else np.empty(0), "the context", InvalidActions)
        if numbers.ndim != 1:
            raise InvalidActions(f"the context has shape {numbers.shape}; it must be one list of numbers")
        self.features, self.segments, self.chosen = frozen(numbers), frozen(segments_of(segments)), only
        self.inside = False

    @classmethod
    def trusted(cls, features: Floats, segments: list[int], only: list[int] | None) -> "Context":
        """Return a context of values that were checked."""
        context = cls.__new__(cls)
        context.features, context.chosen, context.inside = features, only, True
        context.segments = np.array(segments, dtype=np.float64) if segments else NO_SEGMENTS
        return context

    def only(self, chosen: ArrayLike) -> "Context":
        """Return the same context, with only these actions (indices or a mask) on offer in this call."""
        context = Context.__new__(Context)
        context.features, context.segments, context.chosen = self.features, self.segments, chosen
        context.inside = self.inside
        return context

    def eligible_of(self, actions: int) -> Flags:
        """Return which of so many actions are on offer; empty: all."""
        return ALL if self.chosen is None else mask_of(self.chosen, actions)

    def __repr__(self) -> str:
        segments = f", {self.segments.size} segment{'s' * (self.segments.size != 1)}" if self.segments.size else ""
        return f"Context({self.features.size} features{segments})"


def segments_of(value: Any) -> Floats:
    """Return the numbers of segments."""
    given = as_array(value, "the segments", InvalidActions)
    whole = given.size == 0 or given.dtype.kind in "iu"
    if given.ndim != 1 or not whole or (given.size and not (given.min() >= 0 and given.max() < LARGEST_SEGMENT)):
        raise InvalidActions(
            f"the segments are {shown(value)}; they must be a list of whole numbers from 0 to 2**52 - 1"
        )
    return given.astype(np.float64)
