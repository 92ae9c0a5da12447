"""What is played in each run: one policy in one world, or what a function of the run's number draws."""

import pickle
from collections.abc import Callable, Sequence
from typing import Any

from stagewise.policies.problem import Problem
from stagewise.problem.checks import find_missing_attributes
from stagewise.problem.errors import ErrorCode, InvalidProblem, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.simulation.oracle import get_thresholds
from stagewise.worlds.world import NoisyWorld, World

Family = World | Callable[[int], Any]  # a world; or run → its world, or its policy and its world


class PolicyWorlds:
    """The policy and the world of every run, in a form that can be sent to a worker."""

    def __init__(self, policy: Any, world: Any, drawn: dict[int, tuple[Any, Any]] | None = None) -> None:
        self.policy, self.world = policy.build_indexed_policy() if isinstance(policy, Problem) else policy, world
        self.drawn = drawn  # beforehand, for functions that cannot be sent
        draws = callable(world) and (isinstance(world, type) or bool(find_missing_attributes(world, ["means"])))
        self.fixed = drawn is None and not draws  # all runs have the same policy and world
        self.described = not find_missing_attributes(world, ["description"])
        self.sendable: bool | None = None  # not known yet

    def __call__(self, run: int) -> tuple[Any, Any]:
        """Return the policy and the world of a run."""
        if self.drawn is not None:
            return self.drawn[run]
        found = self.world if self.fixed else draw_world(self.world, run)
        both = found if isinstance(found, tuple) else (self.policy, found)
        if len(both) != 2 or both[0] is None:
            raise InvalidProblem(
                ErrorCode.MISSING_VALUE,
                "policy is missing; give an object with start, decide and learn, or let the function "
                "that draws worlds return a policy and a world",
            )
        return both[0], align_costs(*both)

    def make_picklable(self, runs: Sequence[int]) -> "PolicyWorlds":
        """Return the pairs of these runs so that another process can have them."""
        if self.sendable is None:
            try:
                self.sendable = bool(pickle.dumps(self.world))
            except (pickle.PicklingError, AttributeError, TypeError):
                self.sendable = False
        return self if self.sendable else PolicyWorlds(None, None, {run: self(run) for run in runs})

    def description(self) -> dict[str, Any]:
        """Return what is played in, as plain values."""
        world: Any = self.world
        if self.described:
            described: dict[str, Any] = world.description()
            return described if "family" in described else {"family": "fixed", "world": described}
        name = f"{getattr(world, '__module__', '')}.{getattr(world, '__qualname__', type(world).__qualname__)}"
        return {"family": "callable", "name": name, "draws_policies": self.policy is None}


def align_costs(policy: Any, world: Any) -> Any:
    """Return the world with its costs in the order of the policy's limits, where both have names."""
    named = isinstance(world, NoisyWorld) and world.names
    return world.reorder_costs(get_thresholds(policy).names) if named else world


def draw_world(family: Callable[[int], Any], run: int) -> Any:
    """Return what a function draws for a run, or say what it did instead."""
    if isinstance(family, type):
        raise InvalidProblem(
            ErrorCode.WRONG_TYPE,
            "world is {family}; it must be an object of that class, or a function of a run's number",
            family=safe_repr(family),
        )
    try:
        return family(run)
    except StagewiseError:
        raise
    except Exception as reason:
        raise InvalidProblem(
            ErrorCode.CALLBACK_FAILED,
            "the world function raised {name} for run {run}; it must return the run's world",
            name=type(reason).__name__,
            run=run,
        ) from reason
