"""A simulation as a TOML file: read, checked key by key, and built, before anything runs."""

import dataclasses
import re
import tomllib
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError

from stagewise.models.kernel import RBF, LinearKernel, Matern
from stagewise.policies.saved import KINDS, POLICIES
from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidFile, StagewiseError
from stagewise.problem.functions import FunctionClass
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import AtLeast, RelativeToSafe
from stagewise.simulation.sweep import checked
from stagewise.worlds.arms import ArmsWorld
from stagewise.worlds.family import action_sets
from stagewise.worlds.linear import LinearWorld
from stagewise.worlds.table import TableWorld
from stagewise.worlds.world import World

KERNELS: dict[str, Any] = {"rbf": RBF, "matern": Matern, "linear": LinearKernel}


class Strict(BaseModel):
    """A table of the file: no other keys, no other types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Simulation(Strict):
    """How much is played, and from which seed."""

    rounds: PositiveInt
    runs: PositiveInt = 1
    seed: int = Field(default=0, ge=0, lt=2**64)
    record: PositiveInt = 1000
    backend: Literal["auto", "cpu", "python", "cuda"] = "auto"
    audit: bool = False


class Sweep(Strict):
    """What else a sweep goes through."""

    thresholds: list[float] | None = None
    seeds: list[int] | None = None


class Certify(Strict):
    """Which worlds a certificate is about."""

    family: Literal["fixed", "random-sphere", "random-arms"] = "fixed"
    spread: float | None = None  # of the means of random-arms around those of the world


class Linear(Strict):
    """A linear world."""

    kind: Literal["linear"]
    theta: list[float]
    mu: list[float] | list[list[float]]
    noise: float | list[float]
    noise_kind: Literal["gaussian", "uniform", "rademacher"] = "gaussian"
    actions: dict[str, Any]


class Bandit(Strict):
    """A world of arms."""

    kind: Literal["arms"]
    reward: list[float]
    cost: list[float] | list[list[float]]
    outcomes: Literal["bernoulli", "gaussian", "clipped-gaussian"] = "bernoulli"
    noise: float | list[float] = 0.1


class Listing(Strict):
    """A world of listed actions with any means."""

    kind: Literal["table"]
    features: list[list[float]]
    reward: list[float]
    cost: list[float] | list[list[float]]
    outcomes: Literal["bernoulli", "gaussian", "clipped-gaussian"] = "gaussian"
    noise: float | list[float] = 0.1


Table = Annotated[Linear | Bandit | Listing, Field(discriminator="kind")]


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
    worlds: dict[str, World]
    policies: dict[str, Any]
    sweep: Sweep
    certify: Certify

    @property
    def world(self) -> World:
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
    except RecursionError:
        raise InvalidFile(f"{path} holds lists or tables in each other, deeper than any setting is") from None
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
        checked(given, "policies")
        checked(places, "worlds")
        worlds = {name: built_world(table) for name, table in places.items()}
        policies = {name: built_policy(name, table) for name, table in given.items()}
        return Spec(file.simulation, worlds, policies, file.sweep, file.certify)
    except StagewiseError as error:
        raise InvalidFile(f"{path}: {error}") from None


def complaint(error: ValidationError) -> str:
    """Return the first thing wrong: key, value, expectation."""
    found = error.errors()
    first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])  # a typo makes a key go missing
    key = ".".join(str(part) for part in first["loc"] if part not in ("linear", "arms", "table"))
    if first["type"] == "extra_forbidden":
        return f"unknown key {key!r} with value {shown(first['input'])}; docs/cli.md lists the keys there are"
    if first["type"] == "union_tag_invalid":
        return f"{key}.kind is {shown(first['input'].get('kind'))}; it must be one of {first['ctx']['expected_tags']}"
    if first["type"] == "missing":
        return f"the key {key!r} is missing"
    return f"{key} is {shown(first['input'])}; {first['msg'][0].lower()}{first['msg'][1:]}"


def built_world(table: Linear | Bandit | Listing) -> World:
    """Return the world."""
    if isinstance(table, Listing):
        return TableWorld(**table.model_dump(exclude={"kind"}))
    if isinstance(table, Bandit):
        return ArmsWorld(reward=table.reward, cost=table.cost, outcomes=table.outcomes, noise=table.noise)
    actions = built_actions(table.actions)
    return LinearWorld(theta=table.theta, mu=table.mu, actions=actions, noise=table.noise, noise_kind=table.noise_kind)


def built_actions(table: dict[str, Any]) -> Any:
    """Return the actions; "random-rays" stands for RandomRays, whose constructor says which keys there are."""
    settings = dict(table)
    name = settings.pop("kind", None)
    kinds = {re.sub(r"\B(?=[A-Z])", "-", key).lower(): kind for key, kind in action_sets().items()}
    if not isinstance(name, str) or name not in kinds:
        raise InvalidFile(f"world.actions.kind is {shown(name)}; it must be one of {', '.join(map(repr, kinds))}")
    taken = signature(kinds[name]).parameters
    keys = {"features" if key == "targets" else key: key for key in taken}  # rays are listed like any other actions
    needed = [key for key, own in keys.items() if taken[own].default is Parameter.empty]
    if not set(needed) <= set(settings) <= set(keys):
        raise InvalidFile(
            f"world.actions of kind {name!r} need {' and '.join(needed) or 'some'} of {', '.join(keys)}; given are "
            f"{sorted(settings)}"
        )
    return kinds[name](**{keys[key]: value for key, value in settings.items()})


def built_policy(name: str, table: dict[str, Any]) -> Any:
    """Return a policy; its own settings say which keys there are."""
    settings = dict(table)
    kind = settings.pop("kind", None)
    kinds = {policy.__name__: policy for policy in (*POLICIES, KINDS["ROFUL"], KINDS["DOSLB"])}
    if not isinstance(kind, str) or kind not in kinds:
        raise InvalidFile(f"{name}.kind is {shown(kind)}; it must be one of {', '.join(sorted(kinds))}")
    fields = [field for field in dataclasses.fields(kinds[kind]) if field.init]
    keys = sorted(field.name for field in fields)
    for key in settings:
        if key not in keys:
            raise InvalidFile(
                f"unknown key '{name}.{key}' with value {shown(settings[key])}; {kind} has {', '.join(keys)}"
            )
    for field in fields:
        if field.name not in settings and field.default is field.default_factory is dataclasses.MISSING:
            raise InvalidFile(f"the key '{name}.{field.name}' is missing; {kind} needs it")
    if "safe_action" in settings:
        settings["safe_action"] = built_safe(f"{name}.safe_action", settings["safe_action"])
    if "threshold" in settings:
        settings["threshold"] = built_threshold(settings["threshold"])
    for key in {"reward_class", "cost_class"} & set(settings):
        settings[key] = built_class(settings[key])
    if "kernel" in settings:
        settings["kernel"] = built_kernel(f"{name}.kernel", settings["kernel"])
    return kinds[kind](**settings)


def built_safe(name: str, table: Any) -> SafeAction:
    """Return the safe action."""
    if not isinstance(table, dict) or set(table) - {"features", "arm", "reward", "cost"}:
        raise InvalidFile(
            f"{name} is {shown(table)}; it must be a table with features or arm, and reward and cost if known"
        )
    return SafeAction(**table)


def built_class(value: Any) -> Any:
    """Return classes of functions; {functions = ..., features = ...} stands for a table over listed actions."""
    if isinstance(value, dict) and set(value) == {"functions", "features"}:
        return FunctionClass(**value)
    if isinstance(value, dict):
        return {key: built_class(entry) for key, entry in value.items()}
    return [built_class(entry) for entry in value] if isinstance(value, list) else value


def built_kernel(name: str, table: Any) -> Any:
    """Return a reproducing kernel; {kind = "rbf", lengthscale = 0.3} stands for RBF(lengthscale=0.3)."""
    settings = dict(table) if isinstance(table, dict) else {}
    kind = KERNELS.get(settings.pop("kind", None))
    keys = [field.name for field in dataclasses.fields(kind)] if kind else []
    if kind is None or set(settings) - set(keys) or ("lengthscale" in keys and "lengthscale" not in settings):
        raise InvalidFile(
            f"{name} is {shown(table)}; it must be a table with kind = 'rbf' or 'matern' and a lengthscale, the latter "
            "with smoothness = 0.5, 1.5 or 2.5 if not 2.5, or kind = 'linear' alone"
        )
    return kind(**settings)


def built_threshold(value: Any) -> Any:
    """Return thresholds; {at_least = v} and {relative_to_safe = v} stand for the two special kinds."""
    if isinstance(value, dict) and set(value) == {"at_least"}:
        return AtLeast(built_threshold(value["at_least"]))
    if isinstance(value, dict) and set(value) == {"relative_to_safe"}:
        return RelativeToSafe(value["relative_to_safe"])
    if isinstance(value, dict):
        return {key: built_threshold(entry) for key, entry in value.items()}
    return [built_threshold(entry) for entry in value] if isinstance(value, list) else value
