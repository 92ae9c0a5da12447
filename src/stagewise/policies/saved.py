"""An agent as a file: JSON with a version and a digest. Floats survive to the bit."""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from stagewise.files.owned import fingerprint
from stagewise.files.paths import brief, named
from stagewise.kernels.compile import Floats
from stagewise.kernels.signals.ridge import ELSEWHERE
from stagewise.policies.learning import Learning
from stagewise.policies.policy import LoggingPolicy, Played
from stagewise.problem.checks import number, one_of, shown
from stagewise.problem.errors import InvalidFile, InvalidProblem, StagewiseError
from stagewise.problem.functions import FunctionClass
from stagewise.problem.renamed import today
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import AtLeast, RelativeToSafe

FORMAT, VERSION = "stagewise-agent", 3
Order = Literal["decision", "arrival"]
ORDERS = get_args(Order)
WITHIN = (SafeAction, AtLeast, RelativeToSafe, FunctionClass)  # what settings may hold, besides models


class Saved(NamedTuple):
    """What a file holds."""

    policy: LoggingPolicy
    memory: Floats
    seed: int
    round: int
    waiting: dict[int, Played]  # by round
    order: Any  # Order
    held: dict[int, tuple[Played, Floats]]  # by round
    generation: int  # how often it was saved


@cache
def policies() -> dict[str, Any]:
    """Return the policies that stagewise exports, by name."""
    return {name: kind for name, kind in exported("policies.").items() if issubclass(kind, Learning)}


def exported(room: str) -> dict[str, Any]:
    """Return what stagewise exports from a room, by name."""
    package = import_module("stagewise")
    return {name: getattr(package, name) for name, home in package._HOMES.items() if home.startswith(room)}


@cache
def kinds() -> dict[str, Any]:
    """Return all that a file can name."""
    return {**policies(), **{kind.__name__: kind for kind in WITHIN}, **exported("models.")}


def check_kind(value: Any) -> None:
    """Refuse what a file cannot name."""
    if kinds().get(type(value).__name__) is not type(value):
        raise InvalidProblem(f"{type(value).__name__} cannot be saved; known are {', '.join(kinds())}")


def encoded(value: Any) -> Any:
    """Return plain JSON values; an object becomes its kind and its settings."""
    if isinstance(value, FunctionClass) and value.callables:
        raise InvalidProblem(
            f"{value!r} cannot be saved, since a file cannot hold callables; "
            "give FunctionClass(callables, features=...), a table of their values at the actions there are"
        )
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        check_kind(value)
        settings = {f.name: encoded(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init}
        return {"kind": type(value).__name__, "settings": settings}
    if isinstance(value, Mapping):
        return {"mapping": {name: encoded(entry) for name, entry in value.items()}}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [encoded(entry) for entry in value]
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    return float(value)  # an exact number, such as a Fraction


def decoded(value: Any) -> Any:
    """Return what `encoded` was given."""
    if isinstance(value, dict) and "kind" in value:
        kind = kinds()[value["kind"]]
        return kind(**{name: decoded(entry) for name, entry in today(kind, value["settings"]).items()})
    if isinstance(value, dict):
        return {name: decoded(entry) for name, entry in value["mapping"].items()}
    if isinstance(value, list):
        return [decoded(entry) for entry in value]
    return value


def pieces(content: Mapping[str, Any]) -> Iterator[str]:
    """Return the JSON of a mapping bit by bit: other threads get a turn in between, and decide while one saves."""
    yield "{"
    for i, (name, value) in enumerate(content.items()):
        yield f"{', ' if i else ''}{json.dumps(name)}: "
        if isinstance(value, dict):
            yield from pieces(value)
        else:
            yield json.dumps(value, allow_nan=False)
    yield "}"


def written(policy: Any, content: Mapping[str, Any]) -> bytes:
    """Return a file: the policy and what its agent knows, closed by a digest of all that."""
    head = {"format": FORMAT, "version": VERSION, "policy": encoded(policy)}
    try:
        told = "".join(pieces({**head, **content})).encode()
    except ValueError:
        raise InvalidProblem(
            "the agent cannot be saved, since its memory holds numbers that are not finite; outcomes of too many sizes "
            "were learned, so start a new agent with scaled rewards and costs"
        ) from None
    return told[:-1] + f', "digest": "{fingerprint(told)}"}}'.encode()


def digest(content: Mapping[str, Any]) -> str:
    """Return a fingerprint of what a file says, so that a number that was damaged is noticed."""
    told = {name: value for name, value in content.items() if name != "digest"}
    return fingerprint(json.dumps(told).encode())


def read(path: Path, raw: bytes) -> Saved:
    """Return what a file holds, or say why it cannot be continued from."""
    try:
        content = json.loads(raw.decode())
        check_version(path, content)
        saved = taken(path, content)
        check_digest(path, content)
    except InvalidFile:
        raise
    except ValueError as error:  # no UTF-8, no JSON, or a number of thousands of digits
        raise InvalidFile(f"{named(path)} is not whole: {brief(error)}; restore it from a backup") from None
    except RecursionError:
        raise InvalidFile(f"{named(path)} is not whole: it is nested too deep; restore it from a backup") from None
    return saved


def check_version(path: Path, content: Any) -> None:
    """Refuse what is no saved agent, or one of another time."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InvalidFile(f"{named(path)} is not a saved agent; its format is not {FORMAT!r}")
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        raise InvalidFile(
            f"{named(path)} has version {shown(version)}; this stagewise reads version {VERSION}, "
            "so use the one that wrote it, or start a new agent and give it the log (learn_log)"
        )


def taken(path: Path, content: dict[str, Any]) -> Saved:
    """Return the values in a file, each one checked as if it came from a user."""
    try:
        policy = decoded(content["policy"])
        if not isinstance(policy, Learning):
            raise InvalidProblem("the policy in it is none")
        memory = numbers(content["memory"])
        seed, round_ = whole(content["seed"], "seed", 2**64), whole(content["round"], "round", 2**62)
        waiting = {whole(int(r), "round", round_): played(policy, *entry) for r, entry in content["waiting"].items()}
        order = one_of(content["order"], ORDERS, "order")
        held = {
            whole(int(r), "round", round_): (played(policy, *entry[:3]), policy.values(*entry[3:]))
            for r, entry in content["held"].items()
        }
        if any(r in waiting or r < min(waiting, default=round_) for r in held):
            raise InvalidProblem("an outcome in it is held that waits for nothing")
        generation = whole(content["generation"], "generation", 2**62)
        fits = policy.fits(memory) and bool(np.isfinite(memory).all())
    except StagewiseError as error:
        raise InvalidFile(
            f"{named(path)} holds settings that are refused: {brief(error)}; where they were taken before, start a new "
            "agent and give it the log (learn_log)"
        ) from None
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, MemoryError) as error:
        raise InvalidFile(f"{named(path)} lacks something or holds it in another form: {brief(error)}") from None
    if not fits:
        raise InvalidFile(f"{named(path)} holds a memory that does not fit its policy")
    return Saved(policy, memory, seed, round_, waiting, order, held, generation)


def check_digest(path: Path, content: dict[str, Any]) -> None:
    """Refuse a file that says something else than when it was saved."""
    told = content.get("digest")
    if told is None:
        raise InvalidFile(f"{named(path)} is not whole: it has no digest, and every file has one")
    if told != digest(content):
        raise InvalidFile(
            f"{named(path)} was changed after it was saved, so that its digest is another; restore a backup"
        )


def numbers(value: Any) -> Floats:
    """Return a memory's numbers; `array` would also refuse those that are not finite, or very large."""
    try:
        given = np.array(value)
    except ValueError:  # rows of several lengths
        given = np.array(None)
    if given.dtype.kind not in "fiu":
        raise InvalidProblem("the memory must be a list of numbers that a double can hold, and holds something else")
    return given.astype(np.float64)


def whole(value: Any, name: str, end: int) -> int:
    """Return a whole number from 0 to below the end."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < end:
        raise InvalidProblem(f"{name} is {shown(value)}; it must be a whole number from 0 to {end - 1}")
    return value


def played(policy: LoggingPolicy, action: Any, index: Any, step: Any) -> Played:
    """Return an action that this policy can have played."""
    row = policy.logged([action])[0]
    place = whole(index - ELSEWHERE, "index", 2**62) + ELSEWHERE
    return Played(row if isinstance(action, list) else int(row), place, number(step, "step", InvalidProblem))


def entry_of(played: Played) -> list[Any]:
    """Return what was played as `played` reads it."""
    return [np.asarray(played.action).tolist(), int(played.ray), float(played.step)]


def held_entry(policy: LoggingPolicy, played: Played, values: Floats) -> list[Any]:
    """Return what was played and its outcome in the user's own direction, so that reading can check it again."""
    return [*entry_of(played), float(values[0]), policy.thresholds.in_units(values[1:]).tolist()]
