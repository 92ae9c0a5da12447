"""Decorators that make kernels (`@kernel`), and how kernels are compiled or interpreted."""

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
    from stagewise.engine.jit import compile_kernel
except ImportError as missing:  # slower, with the same results to the bit
    warnings.warn(f"kernels are interpreted, not compiled: {missing}", RuntimeWarning, stacklevel=2)

    def compile_kernel(function: Any, build_python_form: Callable[[Any], Any], inline: bool) -> Any:
        """Return the function: there is no compiler."""
        return function


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
INDEX_TYPE = np.int64  # dtype under which a slice of a float array holds indices
FEW_ROWS, ALL_ROWS = 64, sys.maxsize
P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function with Numba: float64, IEEE order of operations, machine code cached between processes.

    Kernels own no memory, so reference counting is off (`_nrt`): it doubled the time of a round on ten rays. Therefore
    a kernel cannot create an array, assign one array to another, or return a slice to Python; use `as_python` for the
    last (docs/decisions/0007-kernels-count-no-references.md). Functions outside the package are compiled in every
    process, because the cache does not know their sources.
    """
    return make_kernel(function, inline=True)


def called(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a long kernel that is called from many places, without inlining it.

    A mixture under several limits solves up to six programs; with six inlined copies of the simplex, a loop compiled
    for 40 s.
    """
    return make_kernel(function, inline=False)


def make_kernel(function: Callable[P, R], inline: bool) -> Callable[P, R]:
    """Return the compiled kernel; without a compiler, the function with the math functions of compiled code."""
    python_form: Any = function
    compiled: Any = compile_kernel(function, build_python_form, inline)
    if compiled is function and "math" in python_form.__globals__:
        python_form.__globals__["math"] = build_compiled_math()
    return cast(Callable[P, R], compiled)


@cache
def build_compiled_math() -> Any:
    """Return `math` as compiled kernels see it: Python's `math.lgamma` differs from the C library's in the last bits.

    All other functions of `math` that kernels call are the C library's in both (`tests/agreement/test_interpreted.py`).
    """
    names = {name: getattr(math, name) for name in dir(math) if not name.startswith("_")}
    log_gamma = ctypes.CDLL("ucrtbase" if os.name == "nt" else None).lgamma
    log_gamma.argtypes, log_gamma.restype = [ctypes.c_double], ctypes.c_double
    return SimpleNamespace(**names | {"lgamma": log_gamma})


def distinct(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a kernel that reaches no memory that it writes through two of its arguments; `@kernel` stands above it.

    Its loops need no overlap checks and need not read values again after a write. If the mark were false, results would
    be wrong; tests/engine/test_distinct.py checks it.
    """
    vars(function)["distinct"] = True
    return function


def factory(make: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that builds kernels from its arguments, by which the compiling process finds them."""

    @cache
    def kernels(*arguments: Any) -> Any:
        result: Any = make(*arguments)  # type: ignore[call-arg]
        fields = {None: result} if hasattr(result, "py_func") else getattr(result, "_asdict", dict)()
        for field, compiled in fields.items():
            if hasattr(compiled, "py_func"):
                compiled._compile_for_args.origin = (make.__module__, make.__name__, arguments, field)
        return result

    update_wrapper(kernels, make)
    return cast(Callable[P, R], kernels)


def compile_eagerly(function: Callable[P, R]) -> Callable[P, R]:
    """Return a kernel that is compiled at its first call, because it plays many rounds per call."""
    if hasattr(hook := get_compile_hook(function), "eager"):
        hook.eager = True
    return function


def get_batch_rows(function: Callable[..., Any]) -> int:
    """Return how many rows to pass to a kernel at once: few while it is interpreted, until compiled code is there."""
    return FEW_ROWS if getattr(get_compile_hook(function), "is_pending", False) else ALL_ROWS


def get_compile_hook(function: Any) -> Any:
    """Return the hook that Numba calls while a kernel has no machine code; None without a compiler."""
    return vars(function).get("_compile_for_args")


def as_python(function: Callable[P, R]) -> Callable[P, R]:
    """Return a kernel, with the kernels that it calls, as plain Python, so that it can return slices of arrays."""
    python_form: Callable[P, R] = build_python_form(function)
    return python_form


@cache
def build_python_form(function: Any) -> Any:
    """Return a kernel whose calls to other kernels are calls of Python functions."""
    python_form: Any = getattr(function, "py_func", function)
    scope = python_form.__globals__
    called = {
        name: build_python_form(scope[name])
        for name in python_form.__code__.co_names
        if hasattr(scope.get(name), "py_func")
    }
    cells = [cell.cell_contents for cell in python_form.__closure__ or ()]
    closure = tuple(CellType(build_python_form(cell) if hasattr(cell, "py_func") else cell) for cell in cells)
    namespace = {**scope, **called} | ({"math": build_compiled_math()} if "math" in scope else {})
    return FunctionType(
        python_form.__code__, namespace, python_form.__name__, python_form.__defaults__, closure or None
    )
