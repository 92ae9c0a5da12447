"""What worlds of users have in common: every round another user, for whom one of the same actions is chosen."""

from abc import abstractmethod
from typing import Any, ClassVar

from stagewise.problem.checks import Floats
from stagewise.records.draw import Draw
from stagewise.records.outcome import Outcome
from stagewise.worlds.world import NoisyWorld


class UserWorld(NoisyWorld):
    """A world whose actions are told by their place among those listed, and what is known of the user."""

    parameters: Floats  # (1 + m, …) what the means are made of
    assumed: ClassVar[bool] = True  # the safe action must keep the limits; False: it may break them, which is counted

    @abstractmethod
    def means_of(self, index: int, features: Any) -> Floats:
        """Return the expected reward and costs (1 + m,) of a listed action, given its features."""

    def outcome_of(self, index: int, features: Any, draw: Draw) -> Outcome:
        """Return what is seen when a listed action is played in this round."""
        return self.seen(self.means_of(index, features), draw)
