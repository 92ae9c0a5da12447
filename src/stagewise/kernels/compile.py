"""The one place where kernels are compiled: `@kernel`, its options, and where its machine code is kept."""

from collections.abc import Callable
from pathlib import Path
from types import CellType, FunctionType
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
    if compiled is not function:
        linking(function, compiled, options)
        if Path(plain.__code__.co_filename) in _SOURCES:
            compiled._cache = MachineCode(plain, _FOLDER)
    typed: Callable[P, R] = compiled
    return typed


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
    renamed: Callable[P, R] = FunctionType(plain.__code__, {**scope, **called}, *arguments)
    return renamed
