"""An agent on disk: one JSON file with a version, written whole or not at all. Floats survive to the bit."""

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.ridge import ELSEWHERE
from stagewise.models.kernel import RBF, LinearKernel, Matern
from stagewise.policies.always_safe import AlwaysSafe
from stagewise.policies.doslb import DOSLB
from stagewise.policies.kernel_oplb import KernelOPLB
from stagewise.policies.lclucb import LCLUCB, ROFUL
from stagewise.policies.linucb import LinUCB
from stagewise.policies.opb import OPB
from stagewise.policies.oplb import OPLB
from stagewise.policies.opnlb import OPNLB
from stagewise.policies.policy import Played, Policy
from stagewise.policies.safe_lts import SafeLTS
from stagewise.policies.ucb import UCB
from stagewise.problem.checks import number, one_of, shown
from stagewise.problem.errors import InvalidFile, InvalidProblem, StagewiseError
from stagewise.problem.functions import FunctionClass
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import AtLeast, RelativeToSafe

FORMAT, VERSION = "stagewise-agent", 2
ORDERS = ("decision", "arrival")
KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(LCLUCB, ROFUL, DOSLB, SafeLTS, OPLB, KernelOPLB, OPB, OPNLB, LinUCB, UCB, AlwaysSafe),
        *(SafeAction, AtLeast, RelativeToSafe, FunctionClass, RBF, Matern, LinearKernel),
    )
}


POLICIES = (LCLUCB, SafeLTS, OPLB, KernelOPLB, OPB, OPNLB, LinUCB, UCB, AlwaysSafe)


class Saved(NamedTuple):
    """What a file holds."""

    policy: Policy
    memory: Floats
    seed: int
    round: int
    waiting: dict[int, Played]  # by round
    order: str
    held: dict[int, tuple[Played, Floats]]  # by round


def check_kind(value: Any) -> None:
    """Refuse what a file cannot name."""
    if type(value).__name__ not in KINDS or type(value) is not KINDS[type(value).__name__]:
        raise InvalidProblem(f"{type(value).__name__} cannot be saved; known are {', '.join(KINDS)}")


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
        settings = {name: decoded(entry) for name, entry in value["settings"].items()}
        if "watch" in getattr(KINDS[value["kind"]], "__dataclass_fields__", {}):
            settings.setdefault("watch", False)  # written when there was none
        return KINDS[value["kind"]](**settings)
    if isinstance(value, dict):
        return {name: decoded(entry) for name, entry in value["mapping"].items()}
    if isinstance(value, list):
        return [decoded(entry) for entry in value]
    return value


def written(
    path: Path,
    policy: Policy,
    memory: Floats,
    seed: int,
    round_: int,
    waiting: dict[str, Any],
    order: str,
    held: dict[str, Any],
) -> None:
    """Write the file beside its place, then move it there in one step."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "policy": encoded(policy),
        "seed": seed,
        "round": round_,
        "memory": memory.tolist(),
        "waiting": waiting,
        "order": order,
        "held": held,
    }
    if path.is_dir() or not path.parent.is_dir():
        wrong = f"{path} is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise InvalidFile(f"the agent cannot be saved as {path}: {wrong}")
    content["digest"] = digest(content)
    draft = path.with_name(path.name + ".part")
    try:
        with draft.open("w", encoding="utf-8") as file:
            json.dump(content, file, allow_nan=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def check_same(path: Path, kept: Policy, given: Policy) -> None:
    """Refuse a file whose policy is not the one given, naming the first setting that differs."""
    check_kind(given)
    if type(kept) is not type(given):
        raise InvalidFile(f"{path} was saved by {type(kept).__name__}, and the policy given is {type(given).__name__}")
    one, other = encoded(kept)["settings"], encoded(given)["settings"]
    for name in one:
        if plain(one[name]) != plain(other[name]):
            raise InvalidFile(
                f"{path} was saved with {name} = {shown(getattr(kept, name))}, and the policy given has "
                f"{shown(getattr(given, name))}; what was learned does not carry over, so start a new agent and "
                "give it the log (learn_log)"
            )


def plain(value: Any) -> str:
    """Return what was encoded as a file would hold it."""
    return json.dumps(value, sort_keys=True)


def digest(content: dict[str, Any]) -> str:
    """Return a fingerprint of what a file says, so that a number that was damaged is noticed."""
    told = {name: value for name, value in content.items() if name != "digest"}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def read(path: Path) -> Saved:
    """Return what the file holds, or say why it cannot be continued from."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidFile(f"{path} does not exist") from None
    except OSError as error:
        raise InvalidFile(f"{path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InvalidFile(f"{path} is not whole: {error}; restore it from a backup") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InvalidFile(f"{path} is not a saved agent; its format is not {FORMAT!r}")
    if content.get("version") != VERSION:
        raise InvalidFile(
            f"{path} has version {content.get('version')!r}; this stagewise reads version {VERSION}, "
            "so use the one that wrote it, or start a new agent and give it the log (learn_log)"
        )
    try:
        policy = decoded(content["policy"])
        if not isinstance(policy, POLICIES):
            raise InvalidProblem("the policy in it is none")
        memory = np.array(content["memory"], dtype=np.float64)
        seed, round_ = whole(content["seed"], "seed", 2**64), whole(content["round"], "round", 2**62)
        waiting = {whole(int(r), "round", round_): played(policy, *entry) for r, entry in content["waiting"].items()}
        order = one_of(content.get("order", ORDERS[0]), ORDERS, "order")
        held = {
            whole(int(r), "round", round_): (played(policy, *entry[:3]), policy.values(*entry[3:]))
            for r, entry in content.get("held", {}).items()
        }
        if any(r in waiting or r < min(waiting, default=round_) for r in held):
            raise InvalidProblem("an outcome in it is held that waits for nothing")
    except StagewiseError as error:
        raise InvalidFile(f"{path} holds settings that are refused: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidFile(f"{path} lacks something or holds it in another form: {error!r}") from None
    if not policy.fits(memory) or not np.isfinite(memory).all():
        raise InvalidFile(f"{path} holds a memory that does not fit its policy")
    if content.pop("digest", None) not in (None, digest(content)):  # files of old have none
        raise InvalidFile(f"{path} was changed after it was saved, so that its digest is another; restore a backup")
    return Saved(policy, memory, seed, round_, waiting, order, held)


def whole(value: Any, name: str, end: int) -> int:
    """Return a whole number from 0 to below the end."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < end:
        raise InvalidProblem(f"{name} is {shown(value)}; it must be a whole number from 0 to {end - 1}")
    return value


def played(policy: Policy, action: Any, index: Any, step: Any) -> Played:
    """Return an action that this policy can have played."""
    row = policy.logged([action])[0]
    place = whole(index - ELSEWHERE, "index", 2**62) + ELSEWHERE
    return Played(row if isinstance(action, list) else int(row), place, number(step, "step", InvalidProblem))


def entry_of(played: Played) -> list[Any]:
    """Return what was played as `played` reads it."""
    return [np.asarray(played.action).tolist(), int(played.ray), float(played.step)]


def held_entry(policy: Policy, played: Played, values: Floats) -> list[Any]:
    """Return what was played and its outcome in the user's own direction, so that reading can check it again."""
    return [*entry_of(played), float(values[0]), policy.thresholds.in_units(values[1:]).tolist()]
