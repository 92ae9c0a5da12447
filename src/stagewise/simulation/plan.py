"""What a result is a function of and what made it, and the folder that keeps the runs of one plan."""

import json
import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import stagewise
from stagewise.policies.saved import KINDS, encoded
from stagewise.problem.errors import InvalidFile, InvalidProblem
from stagewise.reports.files import made, write_text
from stagewise.reports.result import Result, kept
from stagewise.simulation.judge import judge
from stagewise.worlds.world import World


def planned(policy: Any, world: World, rounds: int, record: int, seed: int, backend: str) -> dict[str, Any]:
    """Return what a result is a function of, and what made it, as plain JSON values."""
    arbiter = judge(policy, world)
    plan = {
        "policy": described(policy),
        "world": world.description(),
        "thresholds": dict(zip(arbiter.thresholds.names, arbiter.thresholds.values.tolist(), strict=True)),
        "rounds": rounds,
        "record": record,
        "seed": seed,
        "backend": backend,
        "versions": versions(),
        "machine": machine(),
    }
    copy: dict[str, Any] = json.loads(json.dumps(plan))
    return copy


def described(policy: Any) -> dict[str, Any]:
    """Return a policy as plain JSON values: its kind and its settings, or its repr, without addresses."""
    try:
        if type(policy).__name__ in KINDS:
            known: dict[str, Any] = encoded(policy)
            return known
    except InvalidProblem:
        pass
    return {"kind": type(policy).__name__, "settings": re.sub(r" at 0x[0-9a-fA-F]+", "", repr(policy))}


def versions() -> dict[str, str]:
    """Return what computed a result."""
    return {"stagewise": stagewise.__version__, "python": platform.python_version(), "numpy": np.__version__}


def machine() -> str:
    """Return where a result was computed."""
    return f"{platform.machine()} {platform.system()}, {os.cpu_count()} cores"


def begin(out: Path | None, plan: dict[str, Any]) -> None:
    """Write down what a folder is for, so that nothing else is put there."""
    if out is not None and not (out / "plan.json").exists():
        write_text(made(out) / "plan.json", json.dumps(plan, indent=1))


def agreed(out: Path, plan: dict[str, Any], keys: Iterable[str]) -> bool:
    """Say whether a folder was begun; refuse one that was begun for another plan."""
    path = out / "plan.json"
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InvalidFile(f"{out} cannot be used as a folder: {error.strerror}") from None
    except ValueError as error:
        raise InvalidFile(f"{path} is not whole: {error}; choose another folder") from None
    for key in keys:
        if not isinstance(told, dict) or told.get(key) != plan.get(key):
            raise InvalidFile(f"{out} holds runs of another plan, whose {key} differs; choose another folder")
    return True


def finished(out: Path, plan: dict[str, Any], numbers: list[int]) -> dict[int, Result]:
    """Return the runs that the folder holds already, as they were written; refuse a folder of another plan."""
    if not agreed(out, plan, ("policy", "world", "rounds", "record", "seed", "audit")):
        return {}
    parts = {run: kept(out / "parts" / f"run-{run:06d}") for run in numbers}
    return {run: part for run, part in parts.items() if part is not None}
