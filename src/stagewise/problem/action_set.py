"""What every set of actions answers for itself, so that nobody has to ask which kind of set it is."""

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from stagewise.problem.checks import Floats
from stagewise.problem.errors import InvalidActions

if TYPE_CHECKING:
    from stagewise.problem.actions import Listed
    from stagewise.problem.round_safe import SafeOfRound

Flags = npt.NDArray[np.bool_]

ALL: Flags = np.empty(0, dtype=np.bool_)
ALL.flags.writeable = False


class ActionSet:
    """What can be chosen from in a round; the safe action is always available besides.

    A new kind of set is a class that answers these questions: a list by its rows (`Listed`), a convex set by its
    geometry (`Convex`, where most answers follow from two of them).
    """

    __slots__ = ()

    is_list: ClassVar[bool] = True  # one chooses from a list; False: from all points of a convex set
    between: bool = False  # every point between the safe action and a member can be played too
    eligible: Flags = ALL  # which of the list are on offer; empty: all
    fresh: ClassVar[bool] = False  # it is drawn anew in every round
    safe_of_round: "SafeOfRound | None" = None  # the safe action of this round, where the set names it

    @property
    def start(self) -> "SafeOfRound | None":
        """What `safe_of_round` was called before."""
        raise AttributeError("`start` of a set of actions is now `safe_of_round`")

    @property
    def names_safe(self) -> bool:
        """Whether the set of every round names the round's own safe action."""
        return self.safe_of_round is not None

    @property
    def dimension(self) -> int | None:
        """The number of features: 0 where there are none, None where it is whatever it is asked for."""
        return 0

    @property
    def count(self) -> int:
        """How many actions are listed, or how many vertices there are; 0: infinitely many."""
        raise NotImplementedError

    def at(self, index: int) -> Any:
        """Return what is listed under an index: an arm, or features."""
        raise NotImplementedError

    def most(self, directions: Floats) -> Floats:
        """Return the largest <x, v> over the set, for each direction v (M, d)."""
        raise NotImplementedError

    def most_at_safe(self, directions: Floats) -> Floats:
        """Return the largest <x₀, v> over the safe actions that rounds may name, for each direction v (M, d)."""
        return np.asarray(directions @ self.safe_of_round.features) if self.safe_of_round else np.zeros(len(directions))

    def mean_at_safe(self, directions: Floats) -> Floats:
        """Return the mean of <x₀, v> over rounds, for each direction v (M, d): what safe actions come to on average."""
        return self.most_at_safe(directions)  # the same in every round, unless they are drawn

    def as_rays(self) -> "Listed":
        """Return the rays to choose a step on, or refuse a set that has none to list."""
        raise InvalidActions(f"the actions are {type(self).__name__}, which have no features; this policy needs Rays")

    def as_list(self) -> "Listed":
        """Return actions of which every other one is a mixture, which for a linear mean is as good."""
        raise InvalidActions(
            f"the actions are {type(self).__name__}, which have no features; this policy needs Finite or Rays"
        )

    def placed(self, dimension: int) -> "ActionSet":
        """Return the set in so many dimensions, where it fits any number of them."""
        return self

    def draw(self, draw: Any) -> "ActionSet":
        """Return the set of one round: itself, unless it is drawn anew in every round."""
        return self

    def description(self) -> Any:
        """Return the set as plain values, enough for `rebuilt`."""
        raise NotImplementedError

    @classmethod
    def rebuilt(cls, description: Any) -> Self:
        """Return the set that described itself so."""
        return cls(description)  # type: ignore[call-arg]
