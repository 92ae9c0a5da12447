"""Worlds drawn per run, and worlds built again from their descriptions."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.kernels.draw import INSTANCE, fill_normal, fill_uniform, signed
from stagewise.problem.checks import number, seed_of, shown, whole
from stagewise.problem.errors import InvalidFile, InvalidProblem
from stagewise.worlds.arms import ArmsWorld
from stagewise.worlds.kinds import world_kind
from stagewise.worlds.linear import LinearWorld
from stagewise.worlds.world import run_of


@dataclass(frozen=True)
class SphereFamily:
    """For every run a linear world with its own θ* and μ*, uniform on the spheres through those of `world`.

    Everything else is as in `world`. Where the safe action is the zero vector it stays safe in all of them.

    >>> from stagewise.problem.actions import Rays
    >>> base = LinearWorld(reward=[3.0, 4.0], cost=[0.6, 0.8], actions=Rays([[1.0, 0.0]]), noise=0.1)
    >>> np.linalg.norm(SphereFamily(base, seed=1)(run=7).parameters, axis=1).round(12).tolist()
    [5.0, 1.0]
    """

    world: LinearWorld
    """The world that all else is as in."""
    seed: int = 0
    """With the run's number it decides what is drawn."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", seed_of(self.seed))
        if type(self.world) is not LinearWorld:
            raise InvalidProblem(f"the world is a {type(self.world).__name__}; directions are drawn for a LinearWorld")

    def __call__(self, run: int) -> LinearWorld:
        """Return the world of a run."""
        world = self.world
        drawn = np.empty(world.parameters.shape)
        fill_normal(drawn.reshape(-1), signed(self.seed), run_of(run), 0, INSTANCE)
        lengths = np.linalg.norm(world.parameters, axis=1, keepdims=True)
        drawn *= lengths / np.linalg.norm(drawn, axis=1, keepdims=True)
        return world.with_truth(drawn)

    def description(self) -> dict[str, Any]:
        """Return the family as plain values."""
        return {"family": "random-sphere", "seed": self.seed, "world": self.world.description()}


@dataclass(frozen=True)
class ArmsFamily:
    """For every run arms with their own means, but for the safe arm, which is as in `world`.

    They are uniform on [0, 1]; with `spread`, on [(1 − spread) m, (1 + spread) m] around each mean m, cut at 1.

    >>> base = ArmsWorld(reward=[0.0, 0.1], cost=[0.0, 0.02])
    >>> ArmsFamily(base, spread=0.5)(run=7).table.round(3).tolist()
    [[0.0, 0.12], [0.0, 0.027]]
    """

    world: ArmsWorld
    """The world that all else is as in."""
    safe: int = 0
    """The safe arm."""
    seed: int = 0
    """With the run's number it decides what is drawn."""
    spread: float | None = None
    """How far means are drawn around those of `world`, relative, in [0, 1]; None: anywhere in [0, 1]."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", seed_of(self.seed))
        if type(self.world) is not ArmsWorld:
            raise InvalidProblem(f"the world is a {type(self.world).__name__}; means are drawn for an ArmsWorld")
        last = self.world.actions.count - 1
        object.__setattr__(self, "safe", whole(self.safe, "safe", f"that is one of the arms 0 to {last}", 0, last))
        if self.spread is not None:
            object.__setattr__(self, "spread", number(self.spread, "spread"))
            if not 0.0 <= self.spread <= 1.0:
                raise InvalidProblem(f"spread is {self.spread}; it must lie in [0, 1], so that no mean is negative")

    def __call__(self, run: int) -> ArmsWorld:
        """Return the world of a run."""
        world = self.world
        drawn = np.empty(world.table.shape)
        fill_uniform(drawn.reshape(-1), signed(self.seed), run_of(run), 0, INSTANCE)
        if self.spread is not None:
            drawn = np.minimum(world.table * (1.0 + self.spread * (2.0 * drawn - 1.0)), 1.0)
        drawn[:, self.safe] = world.table[:, self.safe]
        return world.with_truth(drawn)

    def description(self) -> dict[str, Any]:
        """Return the family as plain values."""
        told = {"family": "random-arms", "seed": self.seed, "safe": self.safe, "world": self.world.description()}
        return told if self.spread is None else {**told, "spread": self.spread}


def family_of(name: str, world: Any, safe: int, seed: int, spread: float | None = None) -> Any:
    """Return a family by name: the world itself, or one drawn per run; `spread` is for arms."""
    if spread is not None and name != "random-arms":
        raise InvalidProblem(f"spread is {spread} and family {name!r}; only the means of 'random-arms' are spread")
    if name == "fixed":
        return world
    if name == "random-sphere":
        return SphereFamily(world, seed)
    if name == "random-arms":
        return ArmsFamily(world, safe, seed, spread)
    raise InvalidProblem(f"family is {shown(name)}; it must be 'fixed', 'random-sphere' or 'random-arms'")


def rebuilt(description: dict[str, Any]) -> Any:
    """Return the world that described itself so."""
    told = dict(description)
    name = told.pop("kind", None)
    kind = world_kind(name)
    if kind is None:
        raise InvalidFile(f"the world is of kind {shown(name)}, which cannot be built again")
    return kind.rebuilt(told)
