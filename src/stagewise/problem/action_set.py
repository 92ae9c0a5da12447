"""Base of all action sets."""

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from stagewise.problem.checks import Floats
from stagewise.problem.errors import ErrorCode, InvalidActions

if TYPE_CHECKING:
    from stagewise.problem.actions import Listed
    from stagewise.problem.round_safe_action import RoundSafeAction

Flags = npt.NDArray[np.bool_]

ALL: Flags = np.empty(0, dtype=np.bool_)
ALL.flags.writeable = False


class ActionSet:
    """The actions of a round; the safe action is always available too.

    A new kind of set subclasses `Listed` (rows of features) or `Convex` (a geometry).
    """

    __slots__ = ()

    is_list: ClassVar[bool] = True  # a list; False: all points of a convex set
    between: bool = False  # points between the safe action and a member can be played
    eligible: Flags = ALL  # which members are eligible; empty: all
    fresh: ClassVar[bool] = False  # it is sampled in every round
    round_safe_action: "RoundSafeAction | None" = None  # the safe action of this round, where the set names it

    @property
    def names_safe(self) -> bool:
        """Whether the set of every round names the round's own safe action."""
        return self.round_safe_action is not None

    @property
    def dimension(self) -> int | None:
        """The number of features; 0: none, None: any."""
        return 0

    @property
    def count(self) -> int:
        """The number of listed actions or vertices; 0: infinitely many."""
        raise NotImplementedError

    def at(self, index: int) -> Any:
        """Return the arm or the features at an index."""
        raise NotImplementedError

    def most(self, directions: Floats) -> Floats:
        """Return the largest <x, v> over the set, for each direction v (M, d)."""
        raise NotImplementedError

    def max_at_safe(self, directions: Floats) -> Floats:
        """Return the largest <x₀, v> over the safe actions of all rounds, for each direction v (M, d)."""
        return (
            np.asarray(directions @ self.round_safe_action.features)
            if self.round_safe_action
            else np.zeros(len(directions))
        )

    def mean_at_safe(self, directions: Floats) -> Floats:
        """Return the mean of <x₀, v> over rounds, for each direction v (M, d)."""
        return self.max_at_safe(directions)  # the same in every round, unless it is sampled

    def as_rays(self) -> "Listed":
        """Return the set as rays, or raise InvalidActions."""
        raise InvalidActions(
            ErrorCode.UNSUPPORTED_ACTIONS,
            "the actions are {name}, which have no features; this policy needs Rays",
            name=type(self).__name__,
        )

    def as_list(self) -> "Listed":
        """Return the extreme points, of which every action is a mixture, or raise InvalidActions."""
        raise InvalidActions(
            ErrorCode.UNSUPPORTED_ACTIONS,
            "the actions are {name}, which have no features; this policy needs FiniteSet or Rays",
            name=type(self).__name__,
        )

    def with_dimension(self, dimension: int) -> "ActionSet":
        """Return the set in this dimension."""
        return self

    def draw(self, draw: Any) -> "ActionSet":
        """Return the set of one round: itself, unless it is sampled in every round."""
        return self

    def description(self) -> Any:
        """Return the set as JSON values for `from_description`."""
        raise NotImplementedError

    @classmethod
    def from_description(cls, description: Any) -> Self:
        """Return the set of a description."""
        return cls(description)  # type: ignore[call-arg]
