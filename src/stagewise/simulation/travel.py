"""Policies and worlds on their way to a worker: one pair for all runs, or what a function draws for each."""

import pickle
from collections.abc import Callable
from typing import Any

from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidProblem, StagewiseError
from stagewise.worlds.world import World

Family = World | Callable[[int], Any]


class Same:
    """The family of one policy and one world."""

    def __init__(self, policy: Any, world: Any) -> None:
        self.pair = (policy, world)

    def __call__(self, run: int) -> tuple[Any, Any]:
        """Return both, for any run."""
        return self.pair


class Drawn:
    """The family of worlds, or of policies and worlds, that a function draws."""

    def __init__(self, policy: Any, world: Callable[[int], Any]) -> None:
        self.policy, self.world = policy, world

    def __call__(self, run: int) -> tuple[Any, Any]:
        """Return what is played in a run."""
        return pair(self.policy, self.world, run)


class Listed:
    """Policies and worlds drawn beforehand, for functions that cannot travel to another process."""

    def __init__(self, first: int, pairs: list[tuple[Any, Any]]) -> None:
        self.first, self.pairs = first, pairs

    def __call__(self, run: int) -> tuple[Any, Any]:
        """Return what is played in a run."""
        return self.pairs[run - self.first]


def carried(policy: Any, world: Family, first: int, count: int) -> Any:
    """Return the family in a form that can travel; `count` runs from run `first` on will be asked for."""
    if not callable(world):
        return Same(policy, world)
    try:
        pickle.dumps(world)
    except (pickle.PicklingError, AttributeError, TypeError):
        return Listed(first, [pair(policy, world, run) for run in range(first, first + count)])
    return Drawn(policy, world)


def pair(policy: Any, world: Any, run: int) -> tuple[Any, Any]:
    """Return the policy and the world of a run."""
    drawn = drawn_in(world, run) if callable(world) else world
    both = drawn if isinstance(drawn, tuple) else (policy, drawn)
    if len(both) != 2 or both[0] is None:
        raise InvalidProblem("there is no policy; give one, or let the function return a policy and a world")
    return both


def drawn_in(family: Callable[[int], Any], run: int) -> Any:
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


def family_description(policy: Any, world: Any) -> dict[str, Any]:
    """Return what was played in, as plain values."""
    if hasattr(world, "description"):
        told: dict[str, Any] = world.description()
        return told if "family" in told else {"family": "fixed", "world": told}
    name = f"{getattr(world, '__module__', '')}.{getattr(world, '__qualname__', type(world).__qualname__)}"
    return {"family": "callable", "name": name, "draws_policies": policy is None}
