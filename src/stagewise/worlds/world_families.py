"""Families of worlds, one drawn for each run, and worlds and families rebuilt from their descriptions."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise import _exported
from stagewise.engine.random import INSTANCE, fill_normal, fill_uniform, to_signed_seed
from stagewise.problem.checks import check_integer, check_number, check_seed
from stagewise.problem.errors import ErrorCode, InvalidFile, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.worlds.finite_worlds import ArmsWorld
from stagewise.worlds.linear_world import LinearWorld
from stagewise.worlds.world import BaseWorld, check_run


@dataclass(frozen=True)
class LinearWorldFamily:
    """A family of linear worlds: every run has its own θ* and μ*, uniform on the spheres through those of `world`.

    Everything else is as in `world`. A safe action that is the zero vector is safe in all of them.

    Raises:
        InvalidProblem: The world is not a `LinearWorld`.

    Example:
        >>> from stagewise.problem.actions import RaySet
        >>> base = LinearWorld(reward=[3.0, 4.0], cost=[0.6, 0.8], actions=RaySet([[1.0, 0.0]]), noise=0.1)
        >>> np.linalg.norm(LinearWorldFamily(base, seed=1)(run=7).parameters, axis=1).round(12).tolist()
        [5.0, 1.0]
    """

    world: LinearWorld
    """The base world."""
    seed: int = 0
    """The seed; it and the run number determine the world."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", check_seed(self.seed))
        if type(self.world) is not LinearWorld:
            raise InvalidProblem.must_be(ErrorCode.WORLD_MISMATCH, "world", self.world, "a LinearWorld")

    def __call__(self, run: int) -> LinearWorld:
        world = self.world
        drawn = np.empty(world.parameters.shape)
        fill_normal(drawn.reshape(-1), to_signed_seed(self.seed), check_run(run), 0, INSTANCE)
        lengths = np.linalg.norm(world.parameters, axis=1, keepdims=True)
        drawn *= lengths / np.linalg.norm(drawn, axis=1, keepdims=True)
        return world.with_truth(drawn)

    def description(self) -> dict[str, Any]:
        """Return the family as JSON holds it."""
        return {"family": "random-sphere", "seed": self.seed, "world": self.world.description()}


@dataclass(frozen=True)
class ArmsWorldFamily:
    """A family of worlds of arms: every run has its own means, except those of the safe arm.

    The means are uniform on [0, 1]; with `spread`, on [(1 − spread) m, (1 + spread) m] around each mean m, clipped at
    1.

    Raises:
        InvalidProblem: The world is not an `ArmsWorld`, or `safe` or `spread` is out of range.

    Example:
        >>> base = ArmsWorld(reward=[0.0, 0.1], cost=[0.0, 0.02])
        >>> ArmsWorldFamily(base, spread=0.5)(run=7).table.round(3).tolist()
        [[0.0, 0.12], [0.0, 0.027]]
    """

    world: ArmsWorld
    """The base world."""
    safe: int = 0
    """The safe arm."""
    seed: int = 0
    """The seed; it and the run number determine the world."""
    spread: float | None = None
    """The relative width of the draws around the means of `world`, in [0, 1]; None draws from [0, 1]."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", check_seed(self.seed))
        if type(self.world) is not ArmsWorld:
            raise InvalidProblem.must_be(ErrorCode.WORLD_MISMATCH, "world", self.world, "an ArmsWorld")
        last = self.world.actions.count - 1
        object.__setattr__(
            self, "safe", check_integer(self.safe, "safe", f"that is one of the arms 0 to {last}", 0, last)
        )
        if self.spread is not None:
            object.__setattr__(self, "spread", check_number(self.spread, "spread"))
            if not 0.0 <= self.spread <= 1.0:
                rule = "in [0, 1], so that no mean is negative"
                raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, "spread", self.spread, rule)

    def __call__(self, run: int) -> ArmsWorld:
        world = self.world
        drawn = np.empty(world.table.shape)
        fill_uniform(drawn.reshape(-1), to_signed_seed(self.seed), check_run(run), 0, INSTANCE)
        if self.spread is not None:
            drawn = np.minimum(world.table * (1.0 + self.spread * (2.0 * drawn - 1.0)), 1.0)
        drawn[:, self.safe] = world.table[:, self.safe]
        return world.with_truth(drawn)

    def description(self) -> dict[str, Any]:
        """Return the family as JSON holds it."""
        content = {"family": "random-arms", "seed": self.seed, "safe": self.safe, "world": self.world.description()}
        return content if self.spread is None else {**content, "spread": self.spread}


def build_family(name: str, world: Any, safe: int, seed: int, spread: float | None = None) -> Any:
    """Return a family by name: the world itself, or one drawn for each run; `spread` is for arms."""
    if spread is not None and name != "random-arms":
        raise InvalidProblem.unused("spread", spread, f"family is {name!r}, and only 'random-arms' uses it")
    if name == "fixed":
        return world
    if name == "random-sphere":
        return LinearWorldFamily(world, seed)
    if name == "random-arms":
        return ArmsWorldFamily(world, safe, seed, spread)
    names = ("fixed", "random-sphere", "random-arms")
    raise InvalidProblem.must_be_one_of(ErrorCode.INVALID_CHOICE, "family", name, names)


def build_world(description: dict[str, Any]) -> Any:
    described = dict(description)
    name = described.pop("kind", None)
    kind = get_world_kind(name)
    if kind is None:
        template = "the world has kind {name}, which cannot be rebuilt from a file"
        raise InvalidFile(ErrorCode.NOT_SERIALIZABLE, template, name=safe_repr(name))
    return kind.from_description(described)


def get_world_kind(name: Any) -> Any:
    """Return the exported class of worlds with this name; None if there is none."""
    kind = _exported("worlds").get(name) if isinstance(name, str) else None
    return kind if kind is not None and issubclass(kind, BaseWorld) else None
