"""Action sets of a round: their base, rays, finite sets and arms."""

from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from stagewise.problem.checks import Floats, as_array, check_size, check_table, copy_read_only
from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.problem.safe_action import Cost, RoundSafeAction, build_round_safe_action

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
    round_safe_action: RoundSafeAction | None = None  # the safe action of this round, where the set names it

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
        safe = self.round_safe_action
        return np.zeros(len(directions)) if safe is None else np.asarray(directions @ safe.features)

    def mean_at_safe(self, directions: Floats) -> Floats:
        """Return the mean of <x₀, v> over rounds, for each direction v (M, d)."""
        return self.max_at_safe(directions)  # the same in every round, unless it is sampled

    def as_rays(self) -> "Listed":
        """Return the set as rays, or raise InvalidActions."""
        raise self._unsupported("have no features", "RaySet")

    def as_list(self) -> "Listed":
        """Return the extreme points, of which every action is a mixture, or raise InvalidActions."""
        raise self._unsupported("have no features", "FiniteSet or RaySet")

    def _unsupported(self, why: str, needed: str) -> InvalidActions:
        """Return the error of a policy that cannot use this kind of set."""
        template = "the actions are {kind}, which {why}; this policy needs {needed}"
        data = {"kind": type(self).__name__, "why": why, "needed": needed}
        return InvalidActions(ErrorCode.UNSUPPORTED_ACTIONS, template, **data)

    def with_dimension(self, dimension: int) -> "ActionSet":
        return self

    def draw(self, draw: Any) -> "ActionSet":
        """Return the set of one round: itself, unless it is sampled in every round."""
        return self

    def description(self) -> Any:
        """Return the set as JSON values for `from_description`."""
        raise NotImplementedError

    @classmethod
    def from_description(cls, description: Any) -> Self:
        return cls(description)  # type: ignore[call-arg]


def build_mask(chosen: Any, count: int) -> Flags:
    """Return a mask over `count` actions from indices or a mask; at least one action must remain."""
    what, must_be = "the eligible actions", InvalidActions.must_be
    indices = as_array(chosen, what, InvalidActions, "one list of indices or one mask")
    if indices.dtype.kind == "b":
        if indices.shape != (count,):
            raise must_be(ErrorCode.WRONG_SHAPE, "the shape of the mask", indices.shape, f"({count},), one per action")
        mask: Flags = indices.copy()
    else:
        if indices.size and indices.dtype.kind not in "iu":
            raise must_be(ErrorCode.WRONG_TYPE, f"the type of {what}", indices.dtype.name, "integer or boolean")
        if indices.ndim > 1:
            raise must_be(ErrorCode.WRONG_SHAPE, f"the shape of {what}", indices.shape, "that of one list of indices")
        for index in indices[(indices < 0) | (indices >= count)].ravel() if indices.size else ():
            rule = f"an index from 0 to {count - 1}"
            raise must_be(ErrorCode.UNKNOWN_ACTION, f"one of {what}", index, rule)
        if indices.shape == (count,) and indices.max() <= 1 and np.unique(indices).size < count:
            rule = "booleans for a mask, or a list with each index once"
            raise must_be(ErrorCode.WRONG_TYPE, what, indices.tolist(), rule)
        mask = np.zeros(count, dtype=np.bool_)
        mask[indices.astype(np.int64)] = True
    if not mask.any():
        problem = "no action is eligible; there must be at least one besides the safe action"
        raise InvalidActions(ErrorCode.INVALID_ACTION_SET, problem)
    mask.flags.writeable = False
    return mask


class Listed(ActionSet):
    """Actions given by their features, one row each; immutable, so that decisions can refer to it."""

    __slots__ = ("eligible", "features", "fits", "largest", "longest", "round_safe_action")

    features: Floats
    eligible: Flags
    largest: float  # the largest absolute feature
    longest: float | None  # the largest norm of a row, computed on request
    round_safe_action: RoundSafeAction | None  # the safe action of this round; None: the policy has one for all rounds
    fits: object  # the token of the policy that checked it last

    def __init__(
        self,
        features: ArrayLike,
        *,
        safe: ArrayLike | None = None,
        safe_cost: Cost = None,
        safe_reward: float | None = None,
    ) -> None:
        table, self.largest = check_table(features, "the actions", InvalidActions)
        self.features, self.eligible, self.longest, self.fits = copy_read_only(table), ALL, None, None
        self.round_safe_action = build_round_safe_action(safe, self.features, not self.between, safe_cost, safe_reward)

    @classmethod
    def from_view(cls, features: Any, safe: RoundSafeAction | None = None) -> Self:
        """Return actions that share the array, for one decision."""
        listed = cls.__new__(cls)
        table, listed.largest = check_table(features, "the actions", InvalidActions)
        listed.features, listed.eligible, listed.longest, listed.fits = table.view(), ALL, None, None
        listed.features.flags.writeable = False  # kernels are compiled once, for read-only arrays
        listed.round_safe_action = safe
        return listed

    def only(self, chosen: ArrayLike) -> Self:
        """Return the same actions with only these eligible.

        Args:
            chosen: Indices or a mask.

        Returns:
            A new action set.

        Raises:
            InvalidActions: No action is eligible, or an index does not exist.
        """
        listed = copy(self)
        listed.eligible = build_mask(chosen, len(self))
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
        """Return the features, and the safe action where the set names one."""
        features, of_round = self.features.tolist(), self.round_safe_action
        if of_round is None:
            return features
        safe = of_round.features.tolist() if of_round.safe_index < 0 else of_round.safe_index
        cost = of_round.cost.tolist() if isinstance(of_round.cost, np.ndarray) else of_round.cost
        return {"features": features, "safe": safe, "safe_cost": cost, "safe_reward": of_round.reward}

    @classmethod
    def from_description(cls, description: Any) -> Self:
        if not isinstance(description, dict):
            return cls(description)
        settings = dict(description)
        return cls(settings.pop("features"), **settings)

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        some = "" if self.eligible.size == 0 else f", {int(self.eligible.sum())} eligible"
        if self.round_safe_action is not None:
            index = self.round_safe_action.safe_index
            some += ", a safe point" if index < 0 else f", {index} safe"
        return f"{type(self).__name__}({len(self)} actions, {self.features.shape[1]} features{some})"


class RaySet(Listed):
    """Every point on the segments from the safe action to the targets.

    Args:
        targets: The far ends (M, d), one row each.
        safe: The point x₀ (d,) where the rays of this round start, for a policy whose SafeAction has no features.
        safe_cost: An upper bound on the cost of `safe` in this round.
        safe_reward: A lower bound on the reward of `safe` in this round.

    Raises:
        InvalidActions: The targets are not a table of finite numbers, or `safe` does not fit them.

    Example:
        >>> len(RaySet([[1.0, 0.0], [0.0, 1.0]]).only([0]))
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


class FiniteSet(Listed):
    """A finite set of actions: its rows and their mixtures can be played, points between them cannot.

    Args:
        features: The actions (K, d), one row each.
        safe: The row of this round's safe action, or the features (d,) of one beside the list, for a policy whose
            SafeAction has no features.
        safe_cost: An upper bound on the cost of `safe` in this round.
        safe_reward: A lower bound on the reward of `safe` in this round.

    Raises:
        InvalidActions: The features are not a table of finite numbers, or `safe` does not fit them.

    Example:
        >>> FiniteSet([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]).only([0, 2])
        FiniteSet(3 actions, 2 features, 2 eligible)
        >>> FiniteSet([[0.0, 1.0], [1.0, 0.0]], safe=0, safe_cost=0.01)
        FiniteSet(2 actions, 2 features, 0 safe)
    """

    __slots__ = ()

    def as_rays(self) -> Listed:
        """Raise InvalidActions: only the rows can be played."""
        needed = "RaySet for safe steps; a policy that mixes actions, such as OPLB, takes this set"
        raise self._unsupported("has no points between its members", needed)


class ArmSet(ActionSet):
    """Arms 0 to count − 1, without features.

    Args:
        count: The number of arms.

    Raises:
        InvalidActions: The count is not a whole number of at least 1.

    Example:
        >>> ArmSet(3).only([True, False, True])
        ArmSet(3, 2 eligible)
    """

    __slots__ = ("count", "eligible")

    count: int
    eligible: Flags

    def __init__(self, count: int) -> None:
        self.count = check_size(count, "the number of arms", InvalidActions)
        self.eligible = ALL

    def at(self, index: int) -> int:
        return index

    def only(self, chosen: ArrayLike) -> "ArmSet":
        """Return the same arms with only these eligible.

        Args:
            chosen: Indices or a mask.

        Returns:
            A new set of arms.

        Raises:
            InvalidActions: No arm is eligible, or an index does not exist.

        Example:
            >>> ArmSet(3).only([0]).eligible.tolist()
            [True, False, False]
        """
        arms = ArmSet(self.count)
        arms.eligible = build_mask(chosen, self.count)
        return arms

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        some = "" if self.eligible.size == 0 else f", {self.eligible.sum()} eligible"
        return f"ArmSet({self.count}{some})"
