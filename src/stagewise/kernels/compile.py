"""The one place where kernels are made: `@kernel`, how they are compiled, and what they are while they are not."""

import ctypes
import math
import os
import sys
import warnings
from collections.abc import Callable
from functools import cache, update_wrapper
from types import CellType, FunctionType, SimpleNamespace
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt

try:
    from stagewise.kernels.jit import compile_kernel
except ImportError as missing:  # slower, and the same to the bit
    warnings.warn(f"kernels are interpreted, not compiled: {missing}", RuntimeWarning, stacklevel=2)

    def compile_kernel(function: Any, plain_form: Callable[[Any], Any], inline: bool) -> Any:
        """Return the function: there is no compiler."""
        return function


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
WHOLE = np.int64  # what a part of a float array is viewed as where it holds indices
FEW_ROWS, ALL_ROWS = 64, sys.maxsize

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile plain arithmetic with Numba: float64, IEEE order of operations, machine code kept between processes.

    Kernels own no memory, so references to it are not counted (`_nrt`): counting cost a round on ten rays twice its
    arithmetic. Hence a kernel cannot make an array, assign an array to another, or hand a slice of one to Python;
    `named` is for the last (docs/decisions/0007-kernels-count-no-references.md). What stands outside the package is
    compiled in every process: no one can tell here which texts it is made of.
    """
    return made(function, inline=True)


def called(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that others call rather than take in: one that is long, and called in many places.

    A mixture under several limits solves up to six programs; with the simplex in six copies, a loop compiled for 40 s.
    """
    return made(function, inline=False)


def made(function: Callable[P, R], inline: bool) -> Callable[P, R]:
    """Return a kernel; where nothing is compiled, the function, with the mathematics that machine code has."""
    plain: Any = function
    compiled: Any = compile_kernel(function, interpreted_form, inline)
    if compiled is function and "math" in plain.__globals__:
        plain.__globals__["math"] = math_of_machine_code()
    return cast(Callable[P, R], compiled)


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


def factory(make: Callable[P, R]) -> Callable[P, R]:
    """Mark what makes kernels, one for each of its arguments: another process finds a kernel by these."""

    @cache
    def kernels(*arguments: Any) -> Any:
        result: Any = make(*arguments)  # type: ignore[call-arg]
        parts = {None: result} if hasattr(result, "py_func") else getattr(result, "_asdict", dict)()
        for part, compiled in parts.items():
            if hasattr(compiled, "py_func"):
                compiled._compile_for_args.origin = (make.__module__, make.__name__, arguments, part)
        return result

    update_wrapper(kernels, make)
    return cast(Callable[P, R], kernels)


def compiled_at_once(function: Callable[P, R]) -> Callable[P, R]:
    """Return a kernel that is compiled at its first call, whoever waits: one that plays many rounds in a call."""
    if hasattr(waiting := waiting_of(function), "at_once"):
        waiting.at_once = True
    return function


def rows_at_once(function: Callable[..., Any]) -> int:
    """Return how many rows to give to a kernel at once: few while it is interpreted, so that it is soon asked again."""
    return FEW_ROWS if getattr(waiting_of(function), "is_pending", False) else ALL_ROWS


def waiting_of(function: Any) -> Any:
    """Return what a kernel asks while it has no machine code; None where nothing is compiled."""
    return vars(function).get("_compile_for_args")


def named(function: Callable[P, R]) -> Callable[P, R]:
    """Return a kernel that names parts of arrays, and the kernels it calls, as the plain Python they are written in."""
    plain: Callable[P, R] = interpreted_form(function)
    return plain


@cache
def interpreted_form(function: Any) -> Any:
    """Return a kernel whose calls are calls of Python."""
    plain: Any = getattr(function, "py_func", function)
    scope = plain.__globals__
    called = {
        name: interpreted_form(scope[name]) for name in plain.__code__.co_names if hasattr(scope.get(name), "py_func")
    }
    cells = [cell.cell_contents for cell in plain.__closure__ or ()]
    taken = tuple(CellType(interpreted_form(cell) if hasattr(cell, "py_func") else cell) for cell in cells)
    known = {**scope, **called} | ({"math": math_of_machine_code()} if "math" in scope else {})
    return FunctionType(plain.__code__, known, plain.__name__, plain.__defaults__, taken or None)
