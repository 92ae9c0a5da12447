"""A simulation as a TOML file: read, checked key by key, and built, before anything runs."""

import re
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError

from stagewise import _exported
from stagewise.cli.unknown import complaint, refused
from stagewise.files.paths import path_of
from stagewise.files.toml import toml_of
from stagewise.policies.encoded import policies
from stagewise.policies.problem import Problem
from stagewise.problem.actions import Rays
from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidFile, StagewiseError
from stagewise.problem.functions import FunctionClass
from stagewise.problem.renamed import refuse_old
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import AtLeast, RelativeToSafe
from stagewise.problem.words import nearest
from stagewise.simulation.sweep import checked
from stagewise.worlds.arms import ArmsWorld
from stagewise.worlds.context import ContextWorld
from stagewise.worlds.kinds import action_sets
from stagewise.worlds.linear import LinearWorld
from stagewise.worlds.table import TableWorld
from stagewise.worlds.world import World

Kinds = dict[str, Callable[..., Any]]
WORLDS: Kinds = {"linear": LinearWorld, "arms": ArmsWorld, "table": TableWorld, "context": ContextWorld}
PLURALS = (("world", "worlds"), ("policy", "policies"))
SPECIAL = ("at_least", "relative_to_safe")  # kinds of thresholds
HIDDEN: dict[Any, set[str]] = {ArmsWorld: {"actions"}}  # settings that no file has


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
    limits: dict[str, list[Any]] | None = None
    seeds: list[int] | None = None


class Certify(Strict):
    """Which worlds a certificate is about."""

    family: Literal["fixed", "random-sphere", "random-arms"] = "fixed"
    spread: float | None = None  # of the means of random-arms around those of the world


class File(Strict):
    """The whole file: one world or several, and one policy or several."""

    simulation: Simulation
    world: dict[str, Any] | None = None
    worlds: dict[str, dict[str, Any]] | None = None
    problem: dict[str, Any] | None = None
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
    def policy(self) -> Any:
        """The only policy."""
        if len(self.policies) > 1:
            raise InvalidFile(f"the file holds {len(self.policies)} policies; `stagewise compare` plays several")
        return next(iter(self.policies.values()))

    @property
    def world(self) -> World:
        """The only world."""
        if len(self.worlds) > 1:
            raise InvalidFile(f"the file holds {len(self.worlds)} worlds; `stagewise sweep` plays in several")
        return next(iter(self.worlds.values()))


def read(path: Path) -> Spec:
    """Return what the file asks for, or refuse it with the key, the value and what was expected."""
    content = toml_of(path_of(path))
    try:
        file = File.model_validate(content)
        given = {} if file.problem else named(file.policy, file.policies, "policy", "policies")
        if file.problem and (file.policy or file.policies):
            raise InvalidFile("the file holds a [problem] and a policy; a problem chooses its policy by itself")
        places = named(file.world, file.worlds, "world", "worlds")
        worlds = {name: built(table, name, WORLDS) for name, table in places.items()}
        chosen = {name: built(table, name, policies()) for name, table in given.items()}
        if file.problem:
            chosen["problem"] = Problem.from_plain(file.problem)
        swept = file.sweep.model_copy(update={"limits": built_threshold(file.sweep.limits, "sweep.limits")})
        return Spec(file.simulation, worlds, chosen, swept, file.certify)
    except ValidationError as error:
        raise InvalidFile(f"{path}: {complaint(error, File)}") from None
    except StagewiseError as error:
        raise InvalidFile(f"{path}: {error}") from None


def named(one: Any, several: dict[str, Any] | None, word: str, words: str) -> dict[str, Any]:
    """Return what a file gives once or by several names."""
    given = several or ({word: one} if one else {})
    if not given or (one and several):
        raise InvalidFile(f"give one [{word}], or several as [{words}.NAME]")
    return checked(given, words)


def built(table: Any, name: str, kinds: Kinds) -> Any:
    """Return what a table stands for: its `kind` says what is made, whose own settings say which keys there are."""
    if not isinstance(table, dict):
        raise InvalidFile(f"{name} is {shown(table)}; it must be a table with a kind: {', '.join(map(repr, kinds))}")
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        inner = next((key for key, value in table.items() if isinstance(value, dict) and "kind" in value), None)
        if kind is None and inner is not None and name in ("world", "policy"):
            raise InvalidFile(f"[{name}.{inner}] is one of several; write [{dict(PLURALS)[name]}.{inner}]")
        near = nearest(kind, list(kinds))
        raise InvalidFile(f"{name}.kind is {shown(kind)}; it must be one of {', '.join(map(repr, kinds))}{near}")
    make, settings = kinds[kind], {key: value for key, value in table.items() if key != "kind"}
    known = {key: one for key, one in signature(make).parameters.items() if key not in HIDDEN.get(make, ())}
    for key, value in settings.items():
        if key not in known:
            refuse_old(make, {key: value})
            raise InvalidFile(refused(f"{name}.{key}", value, kind, list(known)))
    for key, one in known.items():
        if key not in settings and one.default is one.empty:
            raise InvalidFile(f"the key '{name}.{key}' is missing; {kind!r} has {', '.join(known)}")
    return make(
        **{key: BUILT[key](value, f"{name}.{key}") if key in BUILT else value for key, value in settings.items()}
    )


def built_actions(table: Any, name: str) -> Any:
    """Return a set of actions: "random-rays" stands for RandomRays; rays are listed like any other actions."""
    kinds: Kinds = {re.sub(r"\B(?=[A-Z])", "-", key).lower(): kind for key, kind in action_sets().items()}
    return built(table, name, {**kinds, "rays": rays})


def rays(features: Any, safe: Any = None, safe_cost: Any = None, safe_reward: Any = None) -> Rays:
    """Return rays by the name that all listed actions have in a file."""
    return Rays(features, safe=safe, safe_cost=safe_cost, safe_reward=safe_reward)


def built_kernel(table: Any, name: str) -> Any:
    """Return a reproducing kernel: "linear" stands for LinearKernel."""
    return built(table, name, {key.removesuffix("Kernel").lower(): kind for key, kind in _exported("models").items()})


def built_safe(table: Any, name: str) -> SafeAction:
    """Return the safe action."""
    known = ("features", "arm", "reward", "cost")
    unknown = [key for key in table if key not in known] if isinstance(table, dict) else [None]
    if unknown:
        near = nearest(unknown[0], known)
        raise InvalidFile(
            f"{name} is {shown(table)}; it must be a table with features, arm or neither, and reward and cost if known"
            f"{near}"
        )
    return SafeAction(**table)


def built_class(value: Any, name: str) -> Any:
    """Return classes of functions; {functions = ..., features = ...} stands for a table over listed actions."""
    if isinstance(value, dict) and set(value) == {"functions", "features"}:
        return FunctionClass(**value)
    return each(value, built_class, name)


def built_threshold(value: Any, name: str) -> Any:
    """Return thresholds; {at_least = v} and {relative_to_safe = v} stand for the two special kinds."""
    if isinstance(value, dict) and set(value) == {"at_least"}:
        return AtLeast(built_threshold(value["at_least"], name))
    if isinstance(value, dict) and set(value) == {"relative_to_safe"}:
        return RelativeToSafe(value["relative_to_safe"])
    for key in value if isinstance(value, dict) else ():
        if near := nearest(key, SPECIAL):  # taken for the name of a limit, it would turn into "at most"
            raise InvalidFile(f"{name} has {shown(key)}{near} A limit needs a name that cannot be taken for that")
    return each(value, built_threshold, name)


def each(value: Any, build: Callable[[Any, str], Any], name: str) -> Any:
    """Return a list or a table with everything in it built, and anything else as it is."""
    if isinstance(value, dict):
        return {key: build(entry, name) for key, entry in value.items()}
    return [build(entry, name) for entry in value] if isinstance(value, list) else value


BUILT: dict[str, Callable[[Any, str], Any]] = {  # settings that stand for something that is no number and no word
    "actions": built_actions,
    "kernel": built_kernel,
    "safe_action": built_safe,
    "threshold": built_threshold,
    "reward_class": built_class,
    "cost_class": built_class,
}
