"""Reading and checking the TOML file of a simulation."""

import re
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError

from stagewise import _exported
from stagewise.cli.spec_errors import format_unknown_key, format_validation_error
from stagewise.files.paths import parse_path, read_toml
from stagewise.policies.policy_encoding import get_policies
from stagewise.policies.problem import Problem
from stagewise.problem.actions import Rays
from stagewise.problem.errors import ErrorCode, InvalidFile, StagewiseError
from stagewise.problem.formatting import safe_repr, suggest_name
from stagewise.problem.functions import FunctionClass
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import AtLeast, RelativeToSafe
from stagewise.simulation.sweep import check_names
from stagewise.worlds.context_world import ContextWorld
from stagewise.worlds.linear_world import LinearWorld, get_action_set_kinds
from stagewise.worlds.table_world import ArmsWorld, TableWorld
from stagewise.worlds.world import World

Builders = dict[str, Callable[..., Any]]
WORLDS: Builders = {"linear": LinearWorld, "arms": ArmsWorld, "table": TableWorld, "context": ContextWorld}
PLURALS = (("world", "worlds"), ("policy", "policies"))
THRESHOLD_KINDS = ("at_least", "relative_to_safe")
HIDDEN_SETTINGS: dict[Any, set[str]] = {ArmsWorld: {"actions"}}  # settings that a file cannot have


class StrictModel(BaseModel):
    """A table of the file; other keys and types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SimulationTable(StrictModel):
    """The table [simulation]."""

    rounds: PositiveInt
    runs: PositiveInt = 1
    seed: int = Field(default=0, ge=0, lt=2**64)
    record_points: PositiveInt = 1000
    backend: Literal["auto", "cpu", "python", "cuda"] = "auto"
    audit: bool = False


class SweepTable(StrictModel):
    """The table [sweep]."""

    thresholds: list[float] | None = None
    limits: dict[str, list[Any]] | None = None
    seeds: list[int] | None = None


class CertifyTable(StrictModel):
    """The table [certify]."""

    family: Literal["fixed", "random-sphere", "random-arms"] = "fixed"
    spread: float | None = None  # half-width of the means of random-arms around those of the world


class SpecFile(StrictModel):
    """The file: one or several worlds, and one or several policies."""

    simulation: SimulationTable
    world: dict[str, Any] | None = None
    worlds: dict[str, dict[str, Any]] | None = None
    problem: dict[str, Any] | None = None
    policy: dict[str, Any] | None = None
    policies: dict[str, dict[str, Any]] | None = None
    sweep: SweepTable = SweepTable()
    certify: CertifyTable = CertifyTable()


class Spec(NamedTuple):
    """The content of a file, with worlds and policies built."""

    simulation: SimulationTable
    worlds: dict[str, World]
    policies: dict[str, Any]
    sweep: SweepTable
    certify: CertifyTable

    @property
    def policy(self) -> Any:
        """The only policy."""
        if len(self.policies) > 1:
            raise InvalidFile(
                ErrorCode.FILE_WRONG_KIND,
                "the file declares {policies_count} policies; this command takes one, and `stagewise "
                "compare` takes several",
                policies_count=len(self.policies),
            )
        return next(iter(self.policies.values()))

    @property
    def world(self) -> World:
        """The only world."""
        if len(self.worlds) > 1:
            raise InvalidFile(
                ErrorCode.FILE_WRONG_KIND,
                "the file declares {worlds_count} worlds; this command takes one, and `stagewise sweep` takes several",
                worlds_count=len(self.worlds),
            )
        return next(iter(self.worlds.values()))


def read_spec(path: Path) -> Spec:
    """Return the content of a file, or raise InvalidFile with the key, the value and what was expected."""
    content = read_toml(parse_path(path))
    try:
        file = SpecFile.model_validate(content)
        policy_tables = {} if file.problem else collect_named(file.policy, file.policies, "policy", "policies")
        if file.problem and (file.policy or file.policies):
            raise InvalidFile(
                ErrorCode.CONFLICTING_SETTINGS,
                "the file declares a [problem] and a policy; give one of them, since a problem selects its own policy",
            )
        world_tables = collect_named(file.world, file.worlds, "world", "worlds")
        worlds = {name: build_from_table(table, name, WORLDS) for name, table in world_tables.items()}
        policies = {name: build_from_table(table, name, get_policies()) for name, table in policy_tables.items()}
        if file.problem:
            policies["problem"] = Problem.from_dict(file.problem)
        sweep = file.sweep.model_copy(update={"limits": build_threshold(file.sweep.limits, "sweep.limits")})
        return Spec(file.simulation, worlds, policies, sweep, file.certify)
    except ValidationError as error:
        raise InvalidFile(
            ErrorCode.FILE_INVALID, "{path}: {error}", path=path, error=format_validation_error(error, SpecFile)
        ) from None
    except StagewiseError as error:
        raise InvalidFile(ErrorCode.FILE_INVALID, "{path}: {error}", path=path, error=error) from None


def collect_named(one: Any, several: dict[str, Any] | None, word: str, words: str) -> dict[str, Any]:
    """Return the tables of a file by name, whether there is one or several."""
    tables = several or ({word: one} if one else {})
    if not tables or (one and several):
        raise InvalidFile(
            ErrorCode.CONFLICTING_SETTINGS, "give one [{word}], or several as [{words}.NAME]", word=word, words=words
        )
    return check_names(tables, words)


def build_from_table(table: Any, name: str, kinds: Builders) -> Any:
    """Return the object of a table: `kind` selects the class, whose parameters are the allowed keys."""
    if not isinstance(table, dict):
        raise InvalidFile(
            ErrorCode.WRONG_TYPE,
            "{name} is {table}; it must be a table with a kind: {kinds}",
            name=name,
            table=safe_repr(table),
            kinds=", ".join(map(repr, kinds)),
        )
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        inner = next((key for key, value in table.items() if isinstance(value, dict) and "kind" in value), None)
        if kind is None and inner is not None and name in ("world", "policy"):
            raise InvalidFile(
                ErrorCode.UNKNOWN_SETTING,
                "[{name}.{inner}] is one of several tables; write [{plurals}.{inner}]",
                name=name,
                inner=inner,
                plurals=dict(PLURALS)[name],
            )
        raise InvalidFile(
            ErrorCode.INVALID_CHOICE,
            "{name}.kind is {kind}; it must be one of {kinds}{hint}",
            name=name,
            kind=safe_repr(kind),
            kinds=", ".join(map(repr, kinds)),
            hint=suggest_name(kind, list(kinds)),
        )
    make, settings = kinds[kind], {key: value for key, value in table.items() if key != "kind"}
    hidden = HIDDEN_SETTINGS.get(make, ())
    parameters = {key: one for key, one in signature(make).parameters.items() if key not in hidden}
    for key, value in settings.items():
        if key not in parameters:
            raise InvalidFile(
                ErrorCode.UNKNOWN_SETTING,
                "{problem}",
                problem=format_unknown_key(f"{name}.{key}", value, kind, list(parameters)),
            )
    for key, parameter in parameters.items():
        if key not in settings and parameter.default is parameter.empty:
            raise InvalidFile(
                ErrorCode.MISSING_VALUE,
                "the key '{name}.{key}' is missing; {kind!r} has {keys}",
                name=name,
                key=key,
                kind=kind,
                keys=", ".join(parameters),
            )
    return make(
        **{key: BUILDERS[key](value, f"{name}.{key}") if key in BUILDERS else value for key, value in settings.items()}
    )


def build_actions(table: Any, name: str) -> Any:
    """Return an action set; "random-rays" is the class RandomRays."""
    kinds: Builders = {re.sub(r"\B(?=[A-Z])", "-", key).lower(): kind for key, kind in get_action_set_kinds().items()}
    return build_from_table(table, name, {**kinds, "rays": build_rays})


def build_rays(features: Any, safe: Any = None, safe_cost: Any = None, safe_reward: Any = None) -> Rays:
    """Return rays; a file calls them `features`, like all listed actions."""
    return Rays(features, safe=safe, safe_cost=safe_cost, safe_reward=safe_reward)


def build_kernel(table: Any, name: str) -> Any:
    """Return a reproducing kernel; "linear" is the class LinearKernel."""
    return build_from_table(
        table, name, {key.removesuffix("Kernel").lower(): kind for key, kind in _exported("models").items()}
    )


def build_safe_action(table: Any, name: str) -> SafeAction:
    """Return the safe action."""
    keys = ("features", "arm", "reward", "cost")
    unknown = [key for key in table if key not in keys] if isinstance(table, dict) else [None]
    if unknown:
        raise InvalidFile(
            ErrorCode.WRONG_TYPE,
            "{name} is {table}; it must be a table with features, arm or neither, and with reward "
            "and cost if they are known{hint}",
            name=name,
            table=safe_repr(table),
            hint=suggest_name(unknown[0], keys),
        )
    return SafeAction(**table)


def build_function_class(value: Any, name: str) -> Any:
    """Return function classes; {functions = ..., features = ...} is a table over listed actions."""
    if isinstance(value, dict) and set(value) == {"functions", "features"}:
        return FunctionClass(**value)
    return build_each(value, build_function_class, name)


def build_threshold(value: Any, name: str) -> Any:
    """Return thresholds; {at_least = v} is AtLeast, {relative_to_safe = v} is RelativeToSafe."""
    if isinstance(value, dict) and set(value) == {"at_least"}:
        return AtLeast(build_threshold(value["at_least"], name))
    if isinstance(value, dict) and set(value) == {"relative_to_safe"}:
        return RelativeToSafe(value["relative_to_safe"])
    for key in value if isinstance(value, dict) else ():
        if hint := suggest_name(key, THRESHOLD_KINDS):  # as the name of a limit it would mean "at most"
            raise InvalidFile(
                ErrorCode.INVALID_NAME,
                "a limit cannot have this name, because it resembles a keyword: {name} has {key}{hint}",
                name=name,
                key=safe_repr(key),
                hint=hint,
            )
    return build_each(value, build_threshold, name)


def build_each(value: Any, build: Callable[[Any, str], Any], name: str) -> Any:
    """Build every entry of a list or table; return any other value unchanged."""
    if isinstance(value, dict):
        return {key: build(entry, name) for key, entry in value.items()}
    return [build(entry, name) for entry in value] if isinstance(value, list) else value


BUILDERS: dict[str, Callable[[Any, str], Any]] = {  # settings that are objects
    "actions": build_actions,
    "kernel": build_kernel,
    "safe_action": build_safe_action,
    "threshold": build_threshold,
    "reward_class": build_function_class,
    "cost_class": build_function_class,
}
