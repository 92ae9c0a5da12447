"""Adapter for a user's own world class."""

from typing import Any

from stagewise.problem.checks import Floats, check_array, find_missing_attributes
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.records.outcome import Outcome
from stagewise.records.random_key import RandomKey
from stagewise.worlds.base_world import BaseWorld

REQUIRED_ATTRIBUTES = ("costs", "actions_in", "means", "outcome", "description")


class CustomWorld(BaseWorld):
    """A user's own world; its means are checked, since NaN would violate no limit."""

    def __init__(self, world: Any) -> None:
        self.world = world

    @property
    def outcomes(self) -> Any:
        """The name of the outcome distribution, if the world has one."""
        return getattr(self.world, "outcomes", None)

    @property
    def type_name(self) -> str:
        return type(self.world).__name__

    @property
    def costs(self) -> int:
        return int(self.world.costs)

    def check(self, policy: Any) -> None:
        lacking = find_missing_attributes(self.world, REQUIRED_ATTRIBUTES)
        if isinstance(self.world, type) or lacking:
            raise InvalidProblem(
                ErrorCode.WRONG_TYPE,
                "world is a {type_name} without {lacking}; it must be a LinearWorld, an ArmsWorld, a "
                "TableWorld, or any object with {required_attributes}",
                type_name=self.type_name,
                lacking=", ".join(lacking),
                required_attributes=", ".join(REQUIRED_ATTRIBUTES),
            )

    def means(self, action: Any) -> Floats:
        given = check_array(self.world.means(action), "the world's means")
        if given.shape != (1 + self.costs,):
            raise InvalidProblem(
                ErrorCode.WRONG_SHAPE,
                "the world's means have shape {shape}; they must be one reward and then {costs} of costs",
                shape=given.shape,
                costs=self.costs,
            )
        return given

    def actions_in(self, draw: RandomKey) -> Any:
        return self.world.actions_in(draw)

    def outcome(self, action: Any, draw: RandomKey) -> Outcome:
        outcome: Outcome = self.world.outcome(action, draw)
        return outcome


def as_world(world: Any) -> BaseWorld:
    """Return a `BaseWorld`: the world itself, or an adapter."""
    return world if isinstance(world, BaseWorld) else CustomWorld(world)
