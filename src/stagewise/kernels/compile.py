"""The one place where kernels are compiled: `@kernel`, its options, and where its machine code is kept."""

import ctypes
import math
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CellType, FunctionType, SimpleNamespace
from typing import Any, ParamSpec, TypeVar

import llvmlite
import numba
import numpy as np
import numpy.typing as npt

from stagewise.kernels import kept
from stagewise.kernels.linked import linking
from stagewise.kernels.machine_code import MachineCode

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
WHOLE = np.int64  # what a part of a float array is viewed as where it holds indices

P = ParamSpec("P")
R = TypeVar("R")

_SOURCES = kept.sources()
_FOLDER = kept.folder(_SOURCES, [numba.__version__, llvmlite.__version__, np.__version__])
_OPTIONS: Any = {"fastmath": False, "error_model": "numpy", "forceinline": True, "_nrt": False}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile plain arithmetic with Numba: float64, IEEE order of operations, machine code kept between processes.

    Kernels own no memory, so references to it are not counted (`_nrt`): counting cost a round on ten rays twice its
    arithmetic. Hence a kernel cannot make an array, assign an array to another, or hand a slice of one to Python;
    `named` is for the last (docs/decisions/0007-kernels-count-no-references.md). What stands outside the package is
    compiled in every process: no one can tell here which texts it is made of.
    """
    return _compiled(function, _OPTIONS)


def called(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that others call rather than take in: one that is long, and called in many places.

    A mixture under several limits solves up to six programs; with the simplex in six copies, a loop compiled for 40 s.
    """
    return _compiled(function, _OPTIONS | {"forceinline": False})


def _compiled(function: Callable[P, R], options: dict[str, Any]) -> Callable[P, R]:
    plain: Any = function
    compiled: Any = numba.njit(function, **options)
    if compiled is function:  # Numba is switched off
        if "math" in plain.__globals__:
            plain.__globals__["math"] = math_of_machine_code()
        return function
    linking(function, compiled, options)
    if is_packaged(plain):
        compiled._cache = MachineCode(plain, _FOLDER)
    typed: Callable[P, R] = compiled
    return typed


def is_packaged(function: Any) -> bool:
    """Say whether a kernel, and every kernel that it captures, stands in the files that the cache digests.

    Else its machine code is not kept: the cache could not tell that the text of what it captures has changed.
    """
    if Path(function.__code__.co_filename) not in _SOURCES:
        return False
    return all(is_packaged(kernel.py_func) for kernel in captured_kernels(function))


def captured_kernels(function: Any) -> list[Any]:
    """Return the kernels that stand in a function's closure."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return [cell for cell in cells if hasattr(cell, "py_func")]


@cache
def math_of_machine_code() -> Any:
    """Return `math` as compiled kernels have it: `math.lgamma` of Python is its own, and ends in other bits.

    Everything else in `math` that kernels call is the C library's in both (`tests/agreement/test_interpreted.py`).
    """
    names = {name: getattr(math, name) for name in dir(math) if not name.startswith("_")}
    log_gamma = ctypes.CDLL("ucrtbase" if os.name == "nt" else None).lgamma
    log_gamma.argtypes, log_gamma.restype = [ctypes.c_double], ctypes.c_double
    return SimpleNamespace(**names | {"lgamma": log_gamma})


def distinct(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a kernel that reaches nothing that it writes by two of its arguments; `@kernel` stands above it.

    Where other kernels call it, its loops do not ask whether arrays overlap, and need not read again what was read
    before something was written. Were it not true, results would be wrong: tests/kernels/test_distinct.py watches it.
    """
    vars(function)["distinct"] = True
    return function


def named(function: Callable[P, R]) -> Callable[P, R]:
    """Return a kernel that names parts of arrays, and the kernels it calls, as the plain Python they are written in."""
    plain: Any = getattr(function, "py_func", function)
    scope = plain.__globals__
    called = {name: named(scope[name]) for name in plain.__code__.co_names if hasattr(scope.get(name), "py_func")}
    cells = [cell.cell_contents for cell in plain.__closure__ or ()]
    taken = tuple(CellType(named(cell) if hasattr(cell, "py_func") else cell) for cell in cells)
    arguments = (plain.__name__, plain.__defaults__, taken or None)
    known = {**scope, **called} | ({"math": math_of_machine_code()} if "math" in scope else {})
    renamed: Callable[P, R] = FunctionType(plain.__code__, known, *arguments)
    return renamed
