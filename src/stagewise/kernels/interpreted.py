"""Interpret kernels until their machine code is available.

Numba compiles a kernel at its first call with new argument types, which would delay the first decision by seconds.
Instead the kernel runs as plain Python at first; its machine code is loaded from the cache, or compiled there by
another process, and takes over between two calls. Both give the same bits (`tests/agreement/test_interpreted.py`).

`STAGEWISE_COMPILE` is `background` (this), `always` (compile at the first call, as Numba does) or `never`.
"""

import os
import warnings
from collections.abc import Callable
from functools import cache, cached_property
from threading import RLock
from typing import Any, get_type_hints

import numpy as np
from numba.core.dispatcher import OmittedArg

from stagewise.kernels.machine_code import MachineCode

ALWAYS, BACKGROUND, NEVER = MODES = ("always", "background", "never")
SETTING = "STAGEWISE_COMPILE"
LARGE = 20_000  # array elements in a call; with more, interpreting takes longer than compiling
LOCK = RLock()  # stands in for the GIL, which machine code holds throughout a call


@cache
def mode() -> str:
    """Return the compile mode that the environment sets."""
    value = os.environ.get(SETTING, BACKGROUND)
    if value not in MODES:
        warnings.warn(f"{SETTING} is {value!r}; it must be one of {', '.join(MODES)}: {BACKGROUND}", stacklevel=2)
        return BACKGROUND
    return value


class InterpretedKernel:
    """Replaces Numba's compile step for a kernel without machine code for its arguments."""

    def __init__(
        self, kernel: Any, build_python_form: Callable[[Any], Callable[..., Any]], submit: Callable[..., None]
    ) -> None:
        self.kernel, self._build_python_form, self.submit = kernel, build_python_form, submit
        self.eager = False  # compile at the first call
        self.signatures: set[tuple[Any, ...]] = set()  # signatures that are compiled or requested
        self.origin: tuple[Any, ...] = (kernel.py_func.__module__, kernel.py_func.__name__)

    @cached_property
    def python_form(self) -> Callable[..., Any]:
        """The kernel, and every kernel that it calls, as Python functions."""
        return self._build_python_form(self.kernel)

    @cached_property
    def types(self) -> Any:
        """Its return type, from the annotations."""
        return get_type_hints(self.kernel.py_func).get("return", None)

    def __call__(self, *arguments: Any, **_: Any) -> Callable[..., Any]:
        """Return machine code if it is available, else the interpreted kernel."""
        code = self.kernel._cache
        if mode() == NEVER:
            return self.interpret
        if self.eager or mode() == ALWAYS or not isinstance(code, MachineCode) or count_elements(arguments) > LARGE:
            return self.compiled(*arguments)
        signature = tuple(self.kernel.typeof_pyval(get_argument_value(each)) for each in arguments)
        if signature not in self.signatures:
            self.signatures.add(signature)
            if code.has(signature, self.kernel.targetctx):
                return self.compiled(*arguments)
            self.submit(self, signature)
        return self.interpret

    def compiled(self, *arguments: Any) -> Callable[..., Any]:
        """Compile the kernel now, or load it from the cache."""
        found: Callable[..., Any] = type(self.kernel)._compile_for_args(self.kernel, *arguments)
        return found

    def interpret(self, *arguments: Any) -> Any:
        """Run the kernel as Python; where only Python raises, restore the arrays and run machine code."""
        inputs = [get_argument_value(each) for each in arguments]
        before = [each.copy() if isinstance(each, np.ndarray) else each for each in inputs]
        with LOCK, np.errstate(all="ignore"):
            try:
                return convert_result(self.python_form(*inputs), self.types)
            except (ArithmeticError, ValueError):
                if mode() == NEVER:
                    raise
                for one, other in zip(inputs, before, strict=True):
                    if isinstance(one, np.ndarray) and one.flags.writeable:
                        one[...] = other
        return self.compiled(*arguments)(*arguments)

    @property
    def is_pending(self) -> bool:
        """Whether the kernel is still interpreted."""
        return mode() == NEVER or not self.kernel.overloads


def count_elements(arguments: tuple[Any, ...]) -> int:
    """Return how many numbers the arrays contain."""
    return sum(each.size for each in arguments if isinstance(each, np.ndarray))


def get_argument_value(argument: Any) -> Any:
    """Return an argument's value, or its default if it was omitted."""
    return argument.value if isinstance(argument, OmittedArg) else argument


def convert_result(result: Any, types: Any) -> Any:
    """Return a Python result in the types that machine code returns, without NumPy scalars."""
    if types in (int, float, bool):
        return types(result)
    if isinstance(result, tuple):
        values = [each.item() if isinstance(each, np.generic) else each for each in result]
        return result._make(values) if hasattr(result, "_make") else tuple(values)
    return result.item() if isinstance(result, np.generic) else result
