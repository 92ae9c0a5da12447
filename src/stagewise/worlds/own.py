"""A world of someone's own, as a simulation asks it: all follows from its five names."""

from typing import Any

from stagewise.problem.checks import Floats, array, missing
from stagewise.problem.errors import InvalidProblem
from stagewise.records.draw import Draw
from stagewise.records.outcome import Outcome
from stagewise.worlds.answers import Answers

ASKED = ("costs", "actions_in", "means", "outcome", "description")


class OwnWorld(Answers):
    """Someone's own world; it may answer anything, so its means are looked at: NaN would break no limit."""

    def __init__(self, world: Any) -> None:
        self.world = world

    @property
    def outcomes(self) -> Any:
        """What its outcomes are, where it says so."""
        return getattr(self.world, "outcomes", None)

    @property
    def called(self) -> str:
        return type(self.world).__name__

    @property
    def costs(self) -> int:
        return int(self.world.costs)

    def check(self, policy: Any) -> None:
        lacking = missing(self.world, ASKED)
        if isinstance(self.world, type) or lacking:
            raise InvalidProblem(
                f"world is a {self.called} without {', '.join(lacking)}; it must be a LinearWorld, an ArmsWorld, "
                f"a TableWorld, or any object with {', '.join(ASKED)}"
            )

    def means(self, action: Any) -> Floats:
        given = array(self.world.means(action), "the world's means")
        if given.shape != (1 + self.costs,):
            raise InvalidProblem(
                f"the world's means have shape {given.shape}; they must be the reward's and then {self.costs} of costs"
            )
        return given

    def actions_in(self, draw: Draw) -> Any:
        return self.world.actions_in(draw)

    def outcome(self, action: Any, draw: Draw) -> Outcome:
        seen: Outcome = self.world.outcome(action, draw)
        return seen


def answering(world: Any) -> Answers:
    """Return a world that can be asked: itself, if it comes from stagewise."""
    return world if isinstance(world, Answers) else OwnWorld(world)
