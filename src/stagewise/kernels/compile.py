"""The one place where kernels are compiled: `@kernel`, its options, and where its machine code is kept."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

import numba
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

P = ParamSpec("P")
R = TypeVar("R")


def _cache_folder() -> Path:
    """Return a folder named after the kernels' own text, so that a changed kernel can never meet old machine code.

    Numba compares the time stamp of the file a function stands in, not of the files it calls into.
    """
    text = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        text.update(source.name.encode())
        text.update(source.read_bytes())
    name = f"kernels-{text.hexdigest()[:16]}"
    root = os.environ.get("STAGEWISE_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    try:
        (Path(root) / "stagewise").mkdir(parents=True, exist_ok=True)
    except OSError:  # a home that cannot be written to, as in many containers
        root = tempfile.gettempdir()
    return Path(root) / "stagewise" / name


_FOLDER = _cache_folder()


_OPTIONS: Any = {"cache": True, "fastmath": False, "error_model": "numpy", "forceinline": True, "_nrt": False}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile plain arithmetic with Numba: float64, IEEE order of operations, machine code kept between processes.

    Kernels own no memory, so references to it are not counted (`_nrt`): counting cost a round on ten rays twice its
    arithmetic. Hence a kernel cannot make an array, assign an array to another, or hand a slice of one to Python;
    `named` is for the last (docs/decisions/0007-kernels-count-no-references.md).
    """
    config: Any = numba.config
    elsewhere = config.CACHE_DIR
    config.CACHE_DIR = str(_FOLDER)
    try:
        compiled: Any = numba.njit(function, **_OPTIONS)
    finally:
        config.CACHE_DIR = elsewhere
    typed: Callable[P, R] = compiled
    return typed


def named(function: Callable[P, R]) -> Callable[P, R]:
    """Return a kernel that names parts of arrays, and the kernels it calls, as the plain Python they are written in."""
    plain: Any = getattr(function, "py_func", function)
    scope = plain.__globals__
    called = {name: named(scope[name]) for name in plain.__code__.co_names if hasattr(scope.get(name), "py_func")}
    renamed: Callable[P, R] = FunctionType(plain.__code__, {**scope, **called}, plain.__name__, plain.__defaults__)
    return renamed
