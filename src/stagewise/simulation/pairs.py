"""What is played in each run: one policy in one world, or what a function of the run's number draws."""

import pickle
from collections.abc import Callable, Sequence
from typing import Any

from stagewise.policies.problem import Problem
from stagewise.problem.checks import missing, shown
from stagewise.problem.errors import InvalidProblem, StagewiseError
from stagewise.simulation.judge import judged_by
from stagewise.worlds.world import NoisyWorld, World

Family = World | Callable[[int], Any]  # a world; or run → its world, or its policy and its world


class Pairs:
    """The policy and the world of every run, in a form that can be sent to a worker."""

    def __init__(self, policy: Any, world: Any, drawn: dict[int, tuple[Any, Any]] | None = None) -> None:
        self.policy, self.world = policy.numbered() if isinstance(policy, Problem) else policy, world
        self.drawn = drawn  # beforehand, for functions that cannot be sent
        draws = callable(world) and (isinstance(world, type) or bool(missing(world, ["means"])))
        self.fixed = drawn is None and not draws  # all runs have the same policy and world
        self.described = not missing(world, ["description"])
        self.sendable: bool | None = None  # not known yet

    def __call__(self, run: int) -> tuple[Any, Any]:
        """Return the policy and the world of a run."""
        if self.drawn is not None:
            return self.drawn[run]
        found = self.world if self.fixed else drawn_by(self.world, run)
        both = found if isinstance(found, tuple) else (self.policy, found)
        if len(both) != 2 or both[0] is None:
            raise InvalidProblem(
                "there is no policy; give an object with start, decide and learn, or let the function that draws the "
                "worlds return a policy and a world"
            )
        return both[0], fitted(*both)

    def sent(self, runs: Sequence[int]) -> "Pairs":
        """Return the pairs of these runs so that another process can have them."""
        if self.sendable is None:
            try:
                self.sendable = bool(pickle.dumps(self.world))
            except (pickle.PicklingError, AttributeError, TypeError):
                self.sendable = False
        return self if self.sendable else Pairs(None, None, {run: self(run) for run in runs})

    def description(self) -> dict[str, Any]:
        """Return what is played in, as plain values."""
        world: Any = self.world
        if self.described:
            told: dict[str, Any] = world.description()
            return told if "family" in told else {"family": "fixed", "world": told}
        name = f"{getattr(world, '__module__', '')}.{getattr(world, '__qualname__', type(world).__qualname__)}"
        return {"family": "callable", "name": name, "draws_policies": self.policy is None}


def fitted(policy: Any, world: Any) -> Any:
    """Return the world with its costs in the order of the policy's limits, where both have names."""
    named = isinstance(world, NoisyWorld) and world.names
    return world.under(judged_by(policy).names) if named else world


def drawn_by(family: Callable[[int], Any], run: int) -> Any:
    """Return what a function draws for a run, or say what it did instead."""
    if isinstance(family, type):
        raise InvalidProblem(f"world is {shown(family)}; give an object of that class, or a function of a run's number")
    try:
        return family(run)
    except StagewiseError:
        raise
    except Exception as reason:
        raise InvalidProblem(
            f"world is a function that raised {type(reason).__name__} for run {run}; it must return the run's world"
        ) from reason
