"""An agent on disk: one JSON file with a version, written whole or not at all. Floats survive to the bit."""

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.policies.baselines import UCB, AlwaysSafe, LinUCB
from stagewise.policies.lclucb import LCLUCB, ROFUL
from stagewise.policies.opb import OPB
from stagewise.policies.oplb import OPLB
from stagewise.policies.policy import Policy
from stagewise.policies.safe_lts import SafeLTS
from stagewise.problem.errors import InvalidFile, InvalidProblem, StagewiseError
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import AtLeast, RelativeToSafe

FORMAT, VERSION = "stagewise-agent", 1
KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (LCLUCB, ROFUL, SafeLTS, OPLB, OPB, LinUCB, UCB, AlwaysSafe, SafeAction, AtLeast, RelativeToSafe)
}


class Saved(NamedTuple):
    """What a file holds."""

    policy: Policy
    memory: Floats
    seed: int
    round: int
    waiting: dict[str, Any]


def encoded(value: Any) -> Any:
    """Return plain JSON values; an object becomes its kind and its settings."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if type(value).__name__ not in KINDS:
            raise InvalidProblem(f"{type(value).__name__} cannot be saved; known are {', '.join(KINDS)}")
        settings = {f.name: encoded(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init}
        return {"kind": type(value).__name__, "settings": settings}
    if isinstance(value, Mapping):
        return {"mapping": {name: encoded(entry) for name, entry in value.items()}}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [encoded(entry) for entry in value]
    return value


def decoded(value: Any) -> Any:
    """Return what `encoded` was given."""
    if isinstance(value, dict) and "kind" in value:
        return KINDS[value["kind"]](**{name: decoded(entry) for name, entry in value["settings"].items()})
    if isinstance(value, dict):
        return {name: decoded(entry) for name, entry in value["mapping"].items()}
    if isinstance(value, list):
        return [decoded(entry) for entry in value]
    return value


def written(path: Path, policy: Policy, memory: Floats, seed: int, round_: int, waiting: dict[str, Any]) -> None:
    """Write the file beside its place, then move it there in one step."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "policy": encoded(policy),
        "seed": seed,
        "round": round_,
        "memory": memory.tolist(),
        "waiting": waiting,
    }
    draft = path.with_name(path.name + ".part")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(content, file, allow_nan=False)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


def read(path: Path) -> Saved:
    """Return what the file holds, or say why it cannot be continued from."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidFile(f"{path} does not exist") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InvalidFile(f"{path} is not whole: {error}; restore it from a backup") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InvalidFile(f"{path} is not a saved agent; its format is not {FORMAT!r}")
    if content.get("version") != VERSION:
        raise InvalidFile(
            f"{path} has version {content.get('version')!r}; this stagewise reads version {VERSION}, "
            "so use the one that wrote it"
        )
    try:
        policy = decoded(content["policy"])
        memory = np.array(content["memory"], dtype=np.float64)
        saved = Saved(policy, memory, int(content["seed"]), int(content["round"]), dict(content["waiting"]))
    except StagewiseError as error:
        raise InvalidFile(f"{path} holds settings that are refused: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidFile(f"{path} lacks something or holds it in another form: {error!r}") from None
    fresh = policy.start().memory
    if (fresh.size and fresh.shape != memory.shape) or memory.ndim != 1 or not np.isfinite(memory).all():
        raise InvalidFile(f"{path} holds a memory that does not fit its policy")
    return saved
