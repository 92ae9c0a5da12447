"""What a simulation asks of a world, and what a world answers of which only the five names of `World` are known."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from stagewise.problem.action_set import ActionSet
from stagewise.problem.checks import Floats
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.records.draw import Draw
from stagewise.records.outcome import Outcome


class Answers(ABC):
    """A world that can be asked all of this, so that nobody has to ask which kind of world it is."""

    assumed: ClassVar[bool] = True  # the safe action must keep the limits; False: it may break them, which is counted
    theorems: ClassVar[tuple[str, ...]] = ()  # those on regret that are for worlds like this: see `policy.theorem`
    outcomes: Any = None  # how they are drawn, by name; None: nobody knows

    @property
    @abstractmethod
    def costs(self) -> int:
        """The number of costs m."""

    @abstractmethod
    def means(self, action: Any) -> Floats:
        """Return the expected reward and costs (1 + m,) of an action, or refuse an action that is none."""

    @abstractmethod
    def actions_in(self, draw: Draw) -> Any:
        """Return what can be chosen from in a round."""

    @abstractmethod
    def outcome(self, action: Any, draw: Draw) -> Outcome:
        """Return what is seen when the action is played in this round."""

    @property
    def called(self) -> str:
        """What messages call its kind."""
        return type(self).__name__

    @property
    def known(self) -> bool:
        """Whether stagewise wrote all of it: someone's own, or a subclass, may offer and show anything."""
        return False

    @property
    def within_one(self) -> bool:
        """Whether every outcome lies in [0, 1]."""
        return self.outcomes in ("bernoulli", "clipped-gaussian")

    @property
    def names_safe(self) -> bool:
        """Whether every round's set is known to name its own safe action."""
        return False

    @property
    def offers_same(self) -> bool:
        """Whether every round is known to offer the same actions."""
        return False

    @property
    def offers_rays(self) -> bool:
        """Whether points between the safe action and the listed ones can be played."""
        return False

    @property
    def knows_points(self) -> bool:
        """Whether means are linear in the features, by `parameters` (1 + m, d), and so known of every point."""
        return False

    @property
    def plain_users(self) -> Any:
        """The users, where actions are told by their numbers and what is known of a user; None: they are not."""
        return None

    @property
    def norms(self) -> Floats | None:
        """How long the parameters (1 + m,) of every signal are; None: there are none."""
        return None

    @abstractmethod
    def check(self, policy: Any) -> None:
        """Refuse a world that cannot be judged by its means, and a policy that does not fit it."""

    def under(self, names: Sequence[str]) -> Self:
        """Return the same world with its costs in the order of limits of these names."""
        return self

    def safe_place(self, safe: SafeAction | None) -> Any:
        """Return the safe action as it is played: features or an arm; None: there is none, or none is known."""
        if safe is None:
            return None
        return safe.features if safe.arm is None else safe.arm

    def most_at_safe(self, signs: Floats) -> Floats:
        """Return the largest mean (1 + m,) of every round's own safe action, times its sign: see `names_safe`."""
        raise NotImplementedError

    def mean_at_safe(self) -> Floats:
        """Return the means (1 + m,) of every round's own safe action, on average over rounds."""
        raise NotImplementedError

    def means_at(self, index: int, actions: Any) -> Floats:
        """Return the means (1 + m,) of what a round lists under an index."""
        return self.means(actions.at(index))

    def means_played(self, index: int, action: Any, actions: Any) -> Floats:
        """Return the means (1 + m,) of an action that was played; its index in the round is −1 beside the list."""
        return self.means(action)

    def outcome_played(self, index: int, action: Any, actions: Any, draw: Draw) -> Outcome:
        """Return what is seen of an action that is played; its index in the round is −1 beside the list."""
        return self.outcome(action, draw)

    def truths(self, actions: Any) -> Floats:
        """Return the means (1 + m, K) of all that a round lists."""
        if not isinstance(actions, ActionSet) or not actions.is_list:
            raise InvalidProblem(
                f"the world's actions are {type(actions).__name__}; a world of one's own lists them as Arms, Finite or "
                "Rays, since regret is measured against the best mixture of what is listed"
            )
        return np.column_stack([self.means_at(index, actions) for index in range(actions.count)])
