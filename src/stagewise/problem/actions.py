"""Lists to choose from in a round: rays, a finite set, or arms."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from stagewise.problem.action_set import ALL as ALL
from stagewise.problem.action_set import ActionSet
from stagewise.problem.action_set import Flags as Flags
from stagewise.problem.checks import Floats, as_array, frozen, size_of, table_of
from stagewise.problem.errors import InvalidActions
from stagewise.problem.round_safe import SafeOfRound, safe_of
from stagewise.problem.safe_action import Cost


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


def checked(features: Any) -> tuple[Floats, float]:
    """Return a table (K, d) of actions, and the size of its largest feature."""
    return table_of(features, "the actions", InvalidActions)


class Listed(ActionSet):
    """Actions given by their features, one row each; unchangeable, so that a decision can refer to it later."""

    __slots__ = ("eligible", "features", "fits", "largest", "longest", "safe_of_round")

    features: Floats
    eligible: Flags
    largest: float  # the size of the largest feature
    longest: float | None  # the largest norm of a row, once somebody has asked for it
    safe_of_round: SafeOfRound | None  # the safe action of this round; None: the policy knows one for all rounds
    fits: object  # what the policy that checked it last shows of itself: rows do not change, so once is enough

    def __init__(
        self,
        features: ArrayLike,
        *,
        safe: ArrayLike | None = None,
        safe_cost: Cost = None,
        safe_reward: float | None = None,
    ) -> None:
        given, self.largest = table_of(features, "the actions", InvalidActions)
        self.features, self.eligible, self.longest, self.fits = frozen(given), ALL, None, None
        self.safe_of_round = safe_of(safe, self.features, not self.between, safe_cost, safe_reward)

    @classmethod
    def borrowed(cls, features: Any, safe: SafeOfRound | None = None) -> Self:
        """Take an array as it is, without a copy: for one decision only."""
        listed = cls.__new__(cls)
        given, listed.largest = table_of(features, "the actions", InvalidActions)
        listed.features, listed.eligible, listed.longest, listed.safe_of_round = given.view(), ALL, None, safe
        listed.fits = None
        listed.features.flags.writeable = False  # kernels are compiled once, for arrays that nobody writes to
        return listed

    def only(self, chosen: ArrayLike) -> Self:
        """Return the same actions, of which only these (indices or a mask) are eligible in this call."""
        listed = self.__class__.__new__(self.__class__)
        listed.features, listed.largest, listed.longest = self.features, self.largest, self.longest
        listed.eligible, listed.safe_of_round, listed.fits = mask_of(chosen, len(self)), self.safe_of_round, self.fits
        return listed

    @property
    def dimension(self) -> int:
        return int(self.features.shape[1])

    @property
    def count(self) -> int:
        return len(self.features)

    def at(self, index: int) -> Any:
        return self.features[index]

    def most(self, directions: Floats) -> Floats:
        return np.asarray((directions @ self.features.T).max(axis=1))

    def as_list(self) -> "Listed":
        return self

    def description(self) -> Any:
        """Return the features, and what is said of the safe action where the set names one."""
        features, of_round = self.features.tolist(), self.safe_of_round
        if of_round is None:
            return features
        safe = of_round.features.tolist() if of_round.place < 0 else of_round.place
        told = {"features": features, "safe": safe, "safe_cost": of_round.cost, "safe_reward": of_round.reward}
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in told.items()}

    @classmethod
    def rebuilt(cls, description: Any) -> Self:
        if not isinstance(description, dict):
            return cls(description)
        told = dict(description)
        return cls(told.pop("features"), **told)

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        count = "" if self.eligible.size == 0 else f", {int(self.eligible.sum())} eligible"
        if self.safe_of_round is not None:
            count += ", a safe point" if self.safe_of_round.place < 0 else f", {self.safe_of_round.place} safe"
        return f"{type(self).__name__}({len(self)} actions, {self.features.shape[1]} features{count})"


class Rays(Listed):
    """Every point on the segments from the safe action to the targets (M, d).

    `safe`: the point x₀ (d,) that they begin at in this round, for a policy whose SafeAction has no features;
    `safe_cost`, `safe_reward`: what it costs at most, and is worth at least, in this round.

    >>> len(Rays([[1.0, 0.0], [0.0, 1.0]]).only([0]))
    2
    """

    __slots__ = ()
    between = True

    def __init__(
        self,
        targets: ArrayLike,
        *,
        safe: ArrayLike | None = None,
        safe_cost: Cost = None,
        safe_reward: float | None = None,
    ) -> None:
        super().__init__(targets, safe=safe, safe_cost=safe_cost, safe_reward=safe_reward)

    @property
    def targets(self) -> Floats:
        """The far ends, one row each."""
        return self.features

    def as_rays(self) -> Listed:
        return self


class Finite(Listed):
    """The rows of a table (K, d): no point between them can be played, but mixtures of them can.

    `safe`: which row is the safe action of this round, or the features (d,) of one beside the list, for a policy whose
    SafeAction has no features; `safe_cost`, `safe_reward`: what it costs at most, and is worth at least, in this round.

    >>> Finite([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]).only([0, 2])
    Finite(3 actions, 2 features, 2 eligible)
    >>> Finite([[0.0, 1.0], [1.0, 0.0]], safe=0, safe_cost=0.01)
    Finite(2 actions, 2 features, 0 safe)
    """

    __slots__ = ()

    def as_rays(self) -> Listed:
        """Refuse: only the rows themselves can be played."""
        raise InvalidActions(
            "the actions are a Finite set, between whose members nothing can be played; safe steps need Rays, "
            "and a policy that mixes (OPLB) takes Finite sets"
        )


class Arms(ActionSet):
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

    def at(self, index: int) -> int:
        return index

    def only(self, chosen: ArrayLike) -> "Arms":
        """Return the same arms, of which only these (indices or a mask) are eligible in this call."""
        arms = Arms(self.count)
        arms.eligible = mask_of(chosen, self.count)
        return arms

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        some = "" if self.eligible.size == 0 else f", {self.eligible.sum()} eligible"
        return f"Arms({self.count}{some})"
