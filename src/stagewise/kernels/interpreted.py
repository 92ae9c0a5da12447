"""Kernels are interpreted until their machine code is there.

Numba compiles a kernel when Python first calls it with arguments of a kind: seconds, before the first decision. Here it
is handed the kernel as the plain Python that it is written in instead, and the machine code is taken from where it is
kept, or made there by another process, and loaded between two calls. Both end in the same bits
(`tests/agreement/test_interpreted.py`).

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
LARGE = 20_000  # numbers in all arrays of a call: with more, a call in Python takes longer than it is worth
LOCK = RLock()  # machine code holds the interpreter's lock throughout; this stands for it


@cache
def mode() -> str:
    """Return when kernels are compiled, as the environment says."""
    given = os.environ.get(SETTING, BACKGROUND)
    if given not in MODES:
        warnings.warn(f"{SETTING} is {given!r}; it must be one of {', '.join(MODES)}: {BACKGROUND}", stacklevel=2)
        return BACKGROUND
    return given


class Interpreted:
    """What Numba asks for something to call, whenever a kernel has no machine code for its arguments."""

    def __init__(self, kernel: Any, plain: Callable[[Any], Callable[..., Any]], ask: Callable[..., None]) -> None:
        self.kernel, self._plain, self.ask = kernel, plain, ask
        self.at_once = False  # compile at the first call, whoever waits
        self.signatures: set[tuple[Any, ...]] = set()  # that were met, and are compiled or will be
        self.origin: tuple[Any, ...] = (kernel.py_func.__module__, kernel.py_func.__name__)

    @cached_property
    def plain(self) -> Callable[..., Any]:
        """The kernel, and all that it calls, as Python."""
        return self._plain(self.kernel)

    @cached_property
    def types(self) -> Any:
        """What it returns, as its text says."""
        return get_type_hints(self.kernel.py_func).get("return", None)

    def __call__(self, *arguments: Any, **_: Any) -> Callable[..., Any]:
        """Return the machine code where there is any, and what interprets the kernel where there is none."""
        code = self.kernel._cache
        if mode() == NEVER:
            return self.interpret
        if self.at_once or mode() == ALWAYS or not isinstance(code, MachineCode) or size_of(arguments) > LARGE:
            return self.compiled(*arguments)
        signature = tuple(self.kernel.typeof_pyval(value_of(each)) for each in arguments)
        if signature not in self.signatures:
            self.signatures.add(signature)
            if code.has(signature, self.kernel.targetctx):
                return self.compiled(*arguments)
            self.ask(self, signature)
        return self.interpret

    def compiled(self, *arguments: Any) -> Callable[..., Any]:
        """Compile it here and now, or load what is kept."""
        found: Callable[..., Any] = type(self.kernel)._compile_for_args(self.kernel, *arguments)
        return found

    def interpret(self, *arguments: Any) -> Any:
        """Call it as Python. Where Python raises what machine code does not, nothing is changed and it is compiled."""
        given = [value_of(each) for each in arguments]
        before = [each.copy() if isinstance(each, np.ndarray) else each for each in given]
        with LOCK, np.errstate(all="ignore"):
            try:
                return typed(self.plain(*given), self.types)
            except (ArithmeticError, ValueError):
                if mode() == NEVER:
                    raise
                for one, other in zip(given, before, strict=True):
                    if isinstance(one, np.ndarray) and one.flags.writeable:
                        one[...] = other
        return self.compiled(*arguments)(*arguments)

    @property
    def is_pending(self) -> bool:
        """Whether it is interpreted still."""
        return mode() == NEVER or not self.kernel.overloads


def size_of(arguments: tuple[Any, ...]) -> int:
    """Return how many numbers the arrays hold."""
    return sum(each.size for each in arguments if isinstance(each, np.ndarray))


def value_of(argument: Any) -> Any:
    """Return an argument; of one that was left out, its default."""
    return argument.value if isinstance(argument, OmittedArg) else argument


def typed(result: Any, types: Any) -> Any:
    """Return a result of Python in the types that machine code returns: no scalars of NumPy."""
    if types in (int, float, bool):
        return types(result)
    if isinstance(result, tuple):
        values = [each.item() if isinstance(each, np.generic) else each for each in result]
        return result._make(values) if hasattr(result, "_make") else tuple(values)
    return result.item() if isinstance(result, np.generic) else result
