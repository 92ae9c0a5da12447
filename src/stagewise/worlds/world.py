"""What every world is: who knows the truth, and shows a noisy part of it."""

from typing import Any, Protocol

from stagewise.problem.checks import Floats
from stagewise.records.draw import Draw
from stagewise.records.outcome import Outcome


class World(Protocol):
    """What a simulation asks of a world; `LinearWorld`, `ArmsWorld` and `TableWorld` are three of them.

    Equal draws give equal answers: all that is random is a function of seed, run and round.
    """

    @property
    def costs(self) -> int:
        """The number of costs m."""

    def actions_in(self, draw: Draw) -> Any:
        """Return what can be chosen from in a round: Arms, Finite or Rays."""

    def means(self, action: Any) -> Floats:
        """Return the expected reward and costs (1 + m,) of an arm or of features."""

    def outcome(self, action: Any, draw: Draw) -> Outcome:
        """Return what is seen when the action is played in this round."""

    def description(self) -> dict[str, Any]:
        """Return the world as plain JSON values."""
