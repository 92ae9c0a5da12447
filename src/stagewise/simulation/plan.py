"""What a result says of the policy, and of what computed it, as plain JSON values."""

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

import stagewise
from stagewise.policies.policy_encoding import encode_value, get_kinds
from stagewise.problem.errors import InvalidProblem


def describe_policy(policy: Any) -> dict[str, Any]:
    """Return a policy as plain JSON values: its kind and its settings, or its repr, without addresses."""
    try:
        if type(policy).__name__ in get_kinds():
            known: dict[str, Any] = encode_value(policy)
            return known
    except InvalidProblem:
        pass
    return {"kind": type(policy).__name__, "settings": re.sub(r" at 0x[0-9a-fA-F]+", "", repr(policy))}


def get_versions() -> dict[str, str]:
    """Return what computed a result: arithmetic depends on each."""
    names = {"stagewise": stagewise.__version__, "python": platform.python_version()}
    try:
        numba = version("numba")
    except PackageNotFoundError:
        numba = "none"
    return {**names, "numpy": np.__version__, "numba": numba}


def describe_machine() -> str:
    """Return where a result was computed."""
    return f"{platform.machine()} {platform.system()}, {os.cpu_count()} cores"
