"""A simulation as a TOML file: read, checked key by key, and built, before anything runs."""

import dataclasses
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError

from stagewise.policies.saved import KINDS, POLICIES
from stagewise.problem.actions import Finite, Rays
from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidFile, StagewiseError
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import AtLeast, RelativeToSafe
from stagewise.worlds.arms import ArmsWorld
from stagewise.worlds.fresh import RandomFinite, RandomRays
from stagewise.worlds.linear import LinearWorld


class Strict(BaseModel):
    """A table of the file: no other keys, no other types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Simulation(Strict):
    """How much is played, and from which seed."""

    rounds: PositiveInt
    runs: PositiveInt = 1
    seed: int = 0
    record: PositiveInt = 1000
    backend: Literal["auto", "cpu", "python"] = "auto"
    audit: bool = False


class Sweep(Strict):
    """What else a sweep goes through."""

    thresholds: list[float] | None = None
    seeds: list[int] | None = None


class Certify(Strict):
    """Which worlds a certificate is about."""

    family: Literal["fixed", "random-sphere", "random-arms"] = "fixed"


class Actions(Strict):
    """What can be chosen from."""

    kind: Literal["rays", "finite", "random-rays", "random-finite"]
    features: list[list[float]] | None = None
    count: PositiveInt | None = None
    dimension: PositiveInt | None = None


class Linear(Strict):
    """A linear world."""

    kind: Literal["linear"]
    theta: list[float]
    mu: list[float] | list[list[float]]
    noise: float | list[float]
    noise_kind: Literal["gaussian", "uniform", "rademacher"] = "gaussian"
    actions: Actions


class Bandit(Strict):
    """A world of arms."""

    kind: Literal["arms"]
    reward: list[float]
    cost: list[float] | list[list[float]]
    outcomes: Literal["bernoulli", "gaussian", "clipped-gaussian"] = "bernoulli"
    noise: float | list[float] = 0.1


Table = Annotated[Linear | Bandit, Field(discriminator="kind")]


class File(Strict):
    """The whole file: one world or several, and one policy or several."""

    simulation: Simulation
    world: Table | None = None
    worlds: dict[str, Table] | None = None
    policy: dict[str, Any] | None = None
    policies: dict[str, dict[str, Any]] | None = None
    sweep: Sweep = Sweep()
    certify: Certify = Certify()


class Spec(NamedTuple):
    """What a file asks for."""

    simulation: Simulation
    worlds: dict[str, LinearWorld | ArmsWorld]
    policies: dict[str, Any]
    sweep: Sweep
    certify: Certify

    @property
    def world(self) -> LinearWorld | ArmsWorld:
        """The only world."""
        if len(self.worlds) > 1:
            raise InvalidFile(f"the file holds {len(self.worlds)} worlds; `stagewise sweep` plays in several")
        return next(iter(self.worlds.values()))


def read(path: Path) -> Spec:
    """Return what the file asks for, or refuse it with the key, the value and what was expected."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidFile(f"{path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidFile(f"{path} is not TOML: {error}") from None
    try:
        file = File.model_validate(content)
    except ValidationError as error:
        raise InvalidFile(f"{path}: {complaint(error)}") from None
    given = file.policies or ({"policy": file.policy} if file.policy else {})
    if not given or (file.policy and file.policies):
        raise InvalidFile(f"{path}: give one [policy], or several as [policies.NAME]")
    places = file.worlds or ({"world": file.world} if file.world else {})
    if not places or (file.world and file.worlds):
        raise InvalidFile(f"{path}: give one [world], or several as [worlds.NAME]")
    try:
        worlds = {name: built_world(table) for name, table in places.items()}
        policies = {name: built_policy(name, table) for name, table in given.items()}
        return Spec(file.simulation, worlds, policies, file.sweep, file.certify)
    except StagewiseError as error:
        raise InvalidFile(f"{path}: {error}") from None


def complaint(error: ValidationError) -> str:
    """Return the first thing wrong: key, value, expectation."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"] if part not in ("linear", "arms"))
    if first["type"] == "extra_forbidden":
        return f"unknown key {key!r} with value {shown(first['input'])}; docs/cli.md lists the keys there are"
    if first["type"] == "missing":
        return f"the key {key!r} is missing"
    return f"{key} is {shown(first['input'])}; {first['msg'][0].lower()}{first['msg'][1:]}"


def built_world(table: Linear | Bandit) -> LinearWorld | ArmsWorld:
    """Return the world."""
    if isinstance(table, Bandit):
        return ArmsWorld(reward=table.reward, cost=table.cost, outcomes=table.outcomes, noise=table.noise)
    actions = built_actions(table.actions)
    return LinearWorld(theta=table.theta, mu=table.mu, actions=actions, noise=table.noise, noise_kind=table.noise_kind)


def built_actions(table: Actions) -> Any:
    """Return the actions."""
    fresh = {"random-rays": RandomRays, "random-finite": RandomFinite}.get(table.kind)
    if fresh is not None:
        if table.count is None or table.dimension is None or table.features is not None:
            raise InvalidFile(f"world.actions of kind {table.kind!r} need count and dimension, and no features")
        return fresh(count=table.count, dimension=table.dimension)
    if table.features is None or table.count is not None or table.dimension is not None:
        raise InvalidFile(f"world.actions of kind {table.kind!r} need features, and neither count nor dimension")
    return Rays(table.features) if table.kind == "rays" else Finite(table.features)


def built_policy(name: str, table: dict[str, Any]) -> Any:
    """Return a policy; its own settings say which keys there are."""
    settings = dict(table)
    kind = settings.pop("kind", None)
    kinds = {policy.__name__: policy for policy in (*POLICIES, KINDS["ROFUL"], KINDS["DOSLB"])}
    if kind not in kinds:
        raise InvalidFile(f"{name}.kind is {kind!r}; it must be one of {', '.join(sorted(kinds))}")
    keys = sorted(field.name for field in dataclasses.fields(kinds[kind]) if field.init)
    for key in settings:
        if key not in keys:
            raise InvalidFile(f"unknown key '{name}.{key}' with value {settings[key]!r}; {kind} has {', '.join(keys)}")
    if "safe_action" in settings:
        settings["safe_action"] = built_safe(f"{name}.safe_action", settings["safe_action"])
    if "threshold" in settings:
        settings["threshold"] = built_threshold(settings["threshold"])
    try:
        return kinds[kind](**settings)
    except TypeError as error:
        raise InvalidFile(f"{name}: {error}".replace(f"{kind}.__init__() ", "")) from None


def built_safe(name: str, table: Any) -> SafeAction:
    """Return the safe action."""
    if not isinstance(table, dict) or set(table) - {"features", "arm", "reward", "cost"}:
        raise InvalidFile(f"{name} is {table!r}; it must be a table with features or arm, and reward and cost if known")
    return SafeAction(**table)


def built_threshold(value: Any) -> Any:
    """Return thresholds; {at_least = v} and {relative_to_safe = v} stand for the two special kinds."""
    if isinstance(value, dict) and set(value) == {"at_least"}:
        return AtLeast(built_threshold(value["at_least"]))
    if isinstance(value, dict) and set(value) == {"relative_to_safe"}:
        return RelativeToSafe(value["relative_to_safe"])
    if isinstance(value, dict):
        return {key: built_threshold(entry) for key, entry in value.items()}
    return [built_threshold(entry) for entry in value] if isinstance(value, list) else value
