"""What a result is a function of, and what made it, as plain JSON values."""

import json
import os
import platform
import re
from typing import Any

import numba
import numpy as np

import stagewise
from stagewise.policies.saved import encoded, kinds
from stagewise.problem.errors import InvalidProblem
from stagewise.simulation.judge import Judge
from stagewise.simulation.pairs import Pairs
from stagewise.simulation.run import Settings


def planned(pairs: Pairs, arbiter: Judge, settings: Settings) -> dict[str, Any]:
    """Return what a result is a function of, and what made it; `arbiter` is run 0's."""
    told, limits = pairs.description(), arbiter.thresholds
    plan = {
        "policy": described(pairs(0)[0]),
        "world": told["world"] if told["family"] == "fixed" else told,
        "thresholds": dict(zip(limits.names, limits.values.tolist(), strict=True)),
        "rounds": settings.rounds,
        "record": settings.record,
        "seed": settings.seed,
        "backend": settings.backend,
        "versions": versions(),
        "machine": machine(),
        **({"audit": True} if settings.audit else {}),
    }
    copy: dict[str, Any] = json.loads(json.dumps(plan))
    return copy


def described(policy: Any) -> dict[str, Any]:
    """Return a policy as plain JSON values: its kind and its settings, or its repr, without addresses."""
    try:
        if type(policy).__name__ in kinds():
            known: dict[str, Any] = encoded(policy)
            return known
    except InvalidProblem:
        pass
    return {"kind": type(policy).__name__, "settings": re.sub(r" at 0x[0-9a-fA-F]+", "", repr(policy))}


def versions() -> dict[str, str]:
    """Return what computed a result: arithmetic depends on each."""
    return {
        "stagewise": stagewise.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def machine() -> str:
    """Return where a result was computed."""
    return f"{platform.machine()} {platform.system()}, {os.cpu_count()} cores"
