"""What can be chosen from in a round: rays, a finite set, or arms; the safe action is always available besides."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from stagewise.problem.checks import Floats, as_array, frozen, measured, size_of
from stagewise.problem.errors import InvalidActions

Flags = npt.NDArray[np.bool_]

ALL: Flags = np.empty(0, dtype=np.bool_)
ALL.flags.writeable = False


def mask_of(chosen: Any, count: int) -> Flags:
    """Return a mask over `count` actions from indices or a mask; at least one action must remain."""
    given = as_array(chosen, "the eligible actions", InvalidActions, "one list of indices or one mask")
    if given.dtype.kind == "b":
        if given.shape != (count,):
            raise InvalidActions(
                f"the mask has shape {given.shape}; it needs one entry for each of the {count} actions"
            )
        mask: Flags = given.copy()
    else:
        if given.size and given.dtype.kind not in "iu":
            raise InvalidActions(f"the eligible actions are of type {given.dtype}; give indices or a mask")
        if given.ndim > 1:
            raise InvalidActions(f"the eligible actions have shape {given.shape}; they must be one list of indices")
        outside = given[(given < 0) | (given >= count)] if given.size else given
        if outside.size:
            first = np.ravel(outside)[0]
            raise InvalidActions(f"the eligible actions hold {first}; they must be indices from 0 to {count - 1}")
        if given.shape == (count,) and given.max() <= 1 and np.unique(given).size < count:
            raise InvalidActions(  # as indices it would make eligible what it means to leave out
                "the eligible actions look like a mask of 0 and 1; a mask must hold booleans, a list each index once"
            )
        mask = np.zeros(count, dtype=np.bool_)
        mask[given.astype(np.int64)] = True
    if not mask.any():
        raise InvalidActions("no action is eligible; a choice needs at least one besides the safe action")
    mask.flags.writeable = False
    return mask


class Listed:
    """Actions given by their features, one row each; unchangeable, so that a decision can refer to it later."""

    __slots__ = ("eligible", "features", "largest", "longest")

    features: Floats
    eligible: Flags
    largest: float  # the size of the largest feature
    longest: float | None  # the largest norm of a row, once somebody has asked for it

    def __init__(self, features: Any) -> None:
        given, self.largest = checked(features)
        self.longest = None
        self.features = frozen(given)
        self.eligible = ALL

    @classmethod
    def borrowed(cls, features: Any) -> Self:
        """Take an array as it is, without a copy: for one decision only."""
        listed = cls.__new__(cls)
        given, listed.largest = checked(features)
        listed.longest = None
        listed.features = given.view()
        listed.features.flags.writeable = False  # kernels are compiled once, for arrays that nobody writes to
        listed.eligible = ALL
        return listed

    def only(self, chosen: Any) -> Self:
        """Return the same actions, of which only these (indices or a mask) are eligible in this call."""
        listed = self.__class__.__new__(self.__class__)
        listed.features, listed.largest, listed.longest = self.features, self.largest, self.longest
        listed.eligible = mask_of(chosen, len(self))
        return listed

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        count = "" if self.eligible.size == 0 else f", {int(self.eligible.sum())} eligible"
        return f"{type(self).__name__}({len(self)} actions, {self.features.shape[1]} features{count})"


def checked(features: Any) -> tuple[Floats, float]:
    result, largest = measured(features, "the actions", InvalidActions)
    if result.ndim != 2 or result.size == 0:
        raise InvalidActions(
            f"the actions have shape {result.shape}; they must be a table with one row per action and at least one"
        )
    return result, largest


class Rays(Listed):
    """Every point on the segments from the safe action to the targets (M, d).

    >>> len(Rays([[1.0, 0.0], [0.0, 1.0]]).only([0]))
    2
    """

    __slots__ = ()

    def __init__(self, targets: Any) -> None:
        super().__init__(targets)

    @property
    def targets(self) -> Floats:
        """The far ends, one row each."""
        return self.features


class Finite(Listed):
    """The rows of a table (K, d): no point between them can be played, but mixtures of them can.

    >>> Finite([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]).only([0, 2])
    Finite(3 actions, 2 features, 2 eligible)
    """

    __slots__ = ()


class Arms:
    """Arms 0 to count − 1, without features.

    >>> Arms(3).only([True, False, True])
    Arms(3, 2 eligible)
    """

    __slots__ = ("count", "eligible")

    count: int
    eligible: Flags

    def __init__(self, count: int) -> None:
        self.count = size_of(count, "the number of arms", InvalidActions)
        self.eligible = ALL

    def only(self, chosen: Any) -> "Arms":
        """Return the same arms, of which only these (indices or a mask) are eligible in this call."""
        arms = Arms(self.count)
        arms.eligible = mask_of(chosen, self.count)
        return arms

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return (
            f"Arms({self.count})" if self.eligible.size == 0 else f"Arms({self.count}, {self.eligible.sum()} eligible)"
        )
