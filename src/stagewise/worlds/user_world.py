"""Base class of worlds with a new user in every round."""

from abc import abstractmethod
from typing import Any

from stagewise.problem.checks import Floats
from stagewise.records.outcome import Outcome
from stagewise.records.random_key import RandomKey
from stagewise.worlds.world import NoisyWorld


class UserWorld(NoisyWorld):
    """A world whose actions are identified by their index and the user's context."""

    parameters: Floats  # (1 + m, …) what the means are made of

    @abstractmethod
    def action_means(self, index: int, features: Any) -> Floats:
        """Return the expected reward and costs (1 + m,) of a listed action, given its features."""

    def action_outcome(self, index: int, features: Any, draw: RandomKey) -> Outcome:
        """Return the outcome of a listed action that is played in this round."""
        return self.draw_outcome(self.action_means(index, features), draw)

    @property
    def plain_users(self) -> Any:
        return None if self.actions.crossed else self.actions

    @property
    def draw_parameters(self) -> tuple[int, Floats]:
        return self.actions.safe, self.actions.draw_parameters.copy()

    def means_at(self, index: int, actions: Any) -> Floats:
        return self.action_means(index, actions.at(index))

    def means_played(self, index: int, action: Any, actions: Any) -> Floats:
        return self.means_at(index if index >= 0 else self.actions.safe, actions)

    def outcome_played(self, index: int, action: Any, actions: Any, draw: RandomKey) -> Outcome:
        played = index if index >= 0 else self.actions.safe
        return self.action_outcome(played, actions.at(played), draw)
