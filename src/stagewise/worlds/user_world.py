"""What worlds of users have in common: every round another user, for whom one of the same actions is chosen."""

from abc import abstractmethod
from typing import Any

from stagewise.problem.checks import Floats
from stagewise.records.draw import Draw
from stagewise.records.outcome import Outcome
from stagewise.worlds.world import NoisyWorld


class UserWorld(NoisyWorld):
    """A world whose actions are told by their place among those listed, and what is known of the user."""

    parameters: Floats  # (1 + m, …) what the means are made of

    @abstractmethod
    def means_of(self, index: int, features: Any) -> Floats:
        """Return the expected reward and costs (1 + m,) of a listed action, given its features."""

    def outcome_of(self, index: int, features: Any, draw: Draw) -> Outcome:
        """Return what is seen when a listed action is played in this round."""
        return self.seen(self.means_of(index, features), draw)

    @property
    def plain_users(self) -> Any:
        return None if self.actions.crossed else self.actions

    @property
    def drawn(self) -> tuple[int, Floats]:
        return self.actions.safe, self.actions.drawn.copy()

    def means_at(self, index: int, actions: Any) -> Floats:
        return self.means_of(index, actions.at(index))

    def means_played(self, index: int, action: Any, actions: Any) -> Floats:
        return self.means_at(index if index >= 0 else self.actions.safe, actions)

    def outcome_played(self, index: int, action: Any, actions: Any, draw: Draw) -> Outcome:
        place = index if index >= 0 else self.actions.safe
        return self.outcome_of(place, actions.at(place), draw)
