"""Reading and checking the TOML file of a simulation."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

from stagewise import _exported
from stagewise.files.paths import parse_path, read_toml
from stagewise.policies.problem import Problem
from stagewise.policies.saved_policies import get_policies
from stagewise.problem.actions import RaySet
from stagewise.problem.checks import check_bool, check_choice, check_integer_at_least, check_seed
from stagewise.problem.errors import ErrorCode, InvalidFile, StagewiseError
from stagewise.problem.formatting import format_path, join_names, safe_repr, suggest_name
from stagewise.problem.functions import FiniteFunctionClass
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import AtLeast, TimesSafe
from stagewise.simulation.simulate import BACKENDS
from stagewise.worlds.context_world import ContextWorld
from stagewise.worlds.finite_worlds import ArmsWorld, FiniteSetWorld
from stagewise.worlds.linear_world import LinearWorld, get_action_set_kinds
from stagewise.worlds.moving_world import MovingWorld
from stagewise.worlds.world import World

Builders = dict[str, Callable[..., Any]]
WORLDS: Builders = {
    "linear": LinearWorld,
    "arms": ArmsWorld,
    "table": FiniteSetWorld,
    "context": ContextWorld,
    "moving": MovingWorld,
}
THRESHOLD_KINDS = ("at_least", "times_safe")
PROBLEM_KEYS = ("action_names", "safe_name", "reward", "limits", "context", "delta")
HIDDEN_SETTINGS: dict[Any, set[str]] = {ArmsWorld: {"actions"}}  # settings that a file cannot have


@dataclass(frozen=True)
class SimulationTable:
    """The table [simulation]."""

    rounds: int
    runs: int = 1
    seed: int = 0
    record_points: int = 1000
    backend: str = "auto"
    audit: bool = False

    def __post_init__(self) -> None:
        for name in ("rounds", "runs", "record_points"):
            check_integer_at_least(getattr(self, name), f"simulation.{name}", 1)
        check_seed(self.seed, "simulation.seed")
        check_choice(self.backend, BACKENDS, "simulation.backend")
        check_bool(self.audit, "simulation.audit")


@dataclass(frozen=True)
class CertifyTable:
    """The table [certify]; `build_family` checks the spread."""

    family: str = "fixed"
    spread: float | None = None  # half-width of the means of random-arms around those of the world

    def __post_init__(self) -> None:
        check_choice(self.family, ("fixed", "random-sphere", "random-arms"), "certify.family")


TABLES: dict[str, Any] = {"simulation": SimulationTable, "certify": CertifyTable}
KEYS = {name: [one.name for one in fields(table)] for name, table in TABLES.items()}
SECTIONS = (*TABLES, "world", "problem", "policy", "policies")
RESERVED_NAMES = ("comparison.md", "comparison.png")  # of files beside the folders of the policies


class Spec(NamedTuple):
    """The content of a file, with world and policies built."""

    simulation: SimulationTable
    world: World
    policies: dict[str, Any]
    certify: CertifyTable

    @property
    def policy(self) -> Any:
        if len(self.policies) > 1:
            template = "the file declares {count} policies; this command takes one, and `stagewise compare` several"
            raise InvalidFile(ErrorCode.FILE_WRONG_KIND, template, count=len(self.policies))
        return next(iter(self.policies.values()))


def read_spec(path: Path) -> Spec:
    """Return the content of a file, or raise InvalidFile with the key, the value and what was expected."""
    content = read_toml(parse_path(path))
    try:
        check_keys(content, "", SECTIONS)
        simulation, certify = (build_settings(content.get(name, {}), name) for name in TABLES)
        if "world" not in content:
            raise InvalidFile(ErrorCode.MISSING_VALUE, "the table [world] is missing")
        world = build_from_table(content["world"], "world", WORLDS)
        if "problem" not in content:
            policies = collect_policies(content)
        elif "policy" in content or "policies" in content:
            problem = "the file declares a [problem] and a policy; give one of them, since a problem selects its own"
            raise InvalidFile(ErrorCode.CONFLICTING_SETTINGS, problem)
        else:
            policies = {"problem": Problem.from_dict(check_table(content["problem"], "problem"))}
        return Spec(simulation, world, policies, certify)
    except StagewiseError as error:
        raise InvalidFile(ErrorCode.FILE_INVALID, "{path}: {error}", path=format_path(path), error=error) from None


def check_table(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidFile.must_be(ErrorCode.WRONG_TYPE, name, value, "a table of settings")
    return value


def check_keys(table: dict[str, Any], name: str, keys: Sequence[str], needed: Sequence[str] = ()) -> None:
    """Raise InvalidFile for a key that a table of the file does not have, or for one that it lacks."""
    for key in table:
        if key not in keys:
            other = next((other for other, inner in KEYS.items() if key in inner), "")
            hint = suggest_name(key, keys) or (f"; it belongs into [{other}]" if other else "")
            if not name and not hint and key in PROBLEM_KEYS:
                hint = "; in a simulation, the problem is the table [problem], beside [simulation] and [world]"
            template = "unknown key {key!r} with value {value}; known keys: {keys}{hint}"
            data = {
                "key": f"{name}.{key}".strip("."),
                "value": safe_repr(table[key]),
                "keys": ", ".join(keys) or "none",
            }
            raise InvalidFile(ErrorCode.UNKNOWN_SETTING, template, hint=hint, **data)
    for key in needed:
        if key not in table:
            template, known = "the key '{name}.{key}' is missing; known keys: {keys}", ", ".join(keys)
            raise InvalidFile(ErrorCode.MISSING_VALUE, template, name=name, key=key, keys=known)


def build_settings(table: Any, name: str) -> Any:
    check_keys(check_table(table, name), name, KEYS[name], ("rounds",) if name == "simulation" else ())
    return TABLES[name](**table)


def collect_policies(content: dict[str, Any]) -> dict[str, Any]:
    """Return the policies of a file by name, whether there is one or several."""
    if ("policy" in content) == ("policies" in content):
        raise InvalidFile(ErrorCode.CONFLICTING_SETTINGS, "give one [policy], or several as [policies.NAME]")
    tables = check_table(content["policies"], "policies") if "policies" in content else {"policy": content["policy"]}
    if not tables:
        raise InvalidFile.must_be(ErrorCode.WRONG_TYPE, "policies", tables, "a table of at least one policy by name")
    for name in tables:
        is_valid = name.isprintable() and name not in ("", *RESERVED_NAMES) and not name.startswith((".", " "))
        if not is_valid or name != parse_path(name, "policies").name:
            raise InvalidFile.must_be(ErrorCode.INVALID_NAME, "a name of policies", name, "a valid folder name")
    rule = "a table with a kind; write one [policy], or several as [policies.NAME]"
    return {name: build_from_table(table, name, get_policies(), rule) for name, table in tables.items()}


def build_from_table(table: Any, name: str, kinds: Builders, rule: str = "a table with a kind") -> Any:
    """Return the object of a table: `kind` selects the class, whose parameters are the allowed keys."""
    if not isinstance(table, dict) or (table and all(isinstance(entry, dict) for entry in table.values())):
        raise InvalidFile.must_be(ErrorCode.WRONG_TYPE, name, table, rule)
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise InvalidFile.must_be_one_of(ErrorCode.INVALID_CHOICE, f"{name}.kind", kind, kinds)
    make, settings = kinds[kind], {key: value for key, value in table.items() if key != "kind"}
    parameters = {k: one for k, one in signature(make).parameters.items() if k not in HIDDEN_SETTINGS.get(make, ())}
    check_keys(settings, name, list(parameters), [k for k, one in parameters.items() if one.default is one.empty])
    built = {key: BUILDERS[key](value, f"{name}.{key}") for key, value in settings.items() if key in BUILDERS}
    return make(**{**settings, **built})


def build_actions(table: Any, name: str) -> Any:
    """Return an action set; "random-rays" is the class RandomRaySet."""
    kinds: Builders = {}
    for key, kind in get_action_set_kinds().items():
        words = re.sub(r"\B(?=[A-Z])", "-", key.removesuffix("Set")).lower()
        kinds[re.sub("(arm|ray)$", r"\1s", words)] = kind
    return build_from_table(table, name, {**kinds, "rays": build_rays})


def build_rays(features: Any, safe: Any = None, safe_cost: Any = None, safe_reward: Any = None) -> RaySet:
    """Return rays; a file calls them `features`, like all listed actions."""
    return RaySet(features, safe=safe, safe_cost=safe_cost, safe_reward=safe_reward)


def build_moved_world(table: Any, name: str) -> Any:
    return build_from_table(table, name, WORLDS)


def build_kernel(table: Any, name: str) -> Any:
    """Return a reproducing kernel; "linear" is the class LinearKernel."""
    kinds = {key.removesuffix("Kernel").lower(): kind for key, kind in _exported("models").items()}
    return build_from_table(table, name, kinds)


def build_safe_action(table: Any, name: str) -> SafeAction:
    check_keys(check_table(table, name), name, ("features", "arm", "reward", "cost"))
    return SafeAction(**table)


def build_function_class(value: Any, name: str) -> Any:
    """Return function classes; {functions = ..., features = ...} is a table over listed actions."""
    if isinstance(value, dict) and set(value) == {"functions", "features"}:
        return FiniteFunctionClass(**value)
    return build_each(value, build_function_class, name)


def build_threshold(value: Any, name: str) -> Any:
    """Return thresholds; {at_least = v} is AtLeast, {times_safe = v} is TimesSafe."""
    if isinstance(value, dict) and set(value) == {"at_least"}:
        return AtLeast(build_threshold(value["at_least"], name))
    if isinstance(value, dict) and set(value) == {"times_safe"}:
        return TimesSafe(value["times_safe"])
    for key in value if isinstance(value, dict) else ():
        if hint := suggest_name(key, THRESHOLD_KINDS):  # as the name of a limit it would mean "at most"
            rule = f"unlike the keywords {join_names(THRESHOLD_KINDS)}{hint}"
            raise InvalidFile.must_be(ErrorCode.INVALID_NAME, f"a limit's name in {name}", key, rule)
    return build_each(value, build_threshold, name)


def build_each(value: Any, build: Callable[[Any, str], Any], name: str) -> Any:
    """Build every entry of a list or table; return any other value unchanged."""
    if isinstance(value, dict):
        return {key: build(entry, name) for key, entry in value.items()}
    return [build(entry, name) for entry in value] if isinstance(value, list) else value


BUILDERS: dict[str, Callable[[Any, str], Any]] = {  # settings that are objects
    "actions": build_actions,
    "kernel": build_kernel,
    "world": build_moved_world,
    "safe_action": build_safe_action,
    "threshold": build_threshold,
    "reward_class": build_function_class,
    "cost_class": build_function_class,
}
