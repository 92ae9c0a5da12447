"""Kernels within kernels: linked into what calls them, and optimised there, once.

Numba optimises a kernel and makes machine code of it, then does both again with the kernel that calls it, at every
level of calls: two fifths of the time of a first decision. What only kernels call needs neither. This uses classes that
Numba does not promise to keep; without them kernels are compiled as Numba does it, slower to start and with the same
results (docs/decisions/0016-kernels-within-kernels-are-linked.md).
"""

from functools import cache
from typing import Any, ClassVar

import numba
from numba.core import codegen
from numba.core.compiler import Compiler

NEEDED = ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals", "get_pointer_to_function")
BARE: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # nobody but kernels calls it
LIBRARY: Any = getattr(codegen, "JITCodeLibrary", object)


def can_link(compiled: Any) -> bool:
    """Say whether this Numba still has what is replaced here."""
    replaced = [hasattr(LIBRARY, name) for name in NEEDED]
    return all(replaced) and hasattr(compiled, "get_call_template") and hasattr(compiled, "get_overload")


class NoEnvironment:
    """In the place of a code generator that would look for a function's environment in machine code."""

    @staticmethod
    def set_env(name: str, environment: Any) -> None:
        """Do nothing: kernels raise nothing, and so have no use for one."""


class Linked(LIBRARY):  # type: ignore[misc]
    """A library of functions that others link: never optimised by itself, never machine code."""

    codegen = NoEnvironment()

    def _optimize_final_module(self) -> None:
        """Leave that to what links it."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return none: there is no machine code."""
        return 0


class Within(Compiler):
    """Numba's own pipeline, into such a library."""

    apart: ClassVar[bool] = False  # LLVM is told that the arrays that come in do not overlap

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, returned: Any, flags: Any, *rest: Any
    ) -> None:
        flags.noalias = self.apart
        kept = library or Linked(target.codegen(), "kernel")
        super().__init__(typing, target, kept, args, returned, flags, *rest)


class WithinDistinct(Within):
    """A kernel that others link, marked `distinct`: its arrays do not overlap."""

    apart = True


def linking(function: Any, compiled: Any, options: dict[str, Any]) -> None:
    """Let other kernels call a kernel in this form, while Python calls the one that is machine code.

    It is made when the first of them does: a process that finds its machine code kept makes none.
    """
    if not can_link(compiled):
        return
    pipeline = WithinDistinct if getattr(function, "distinct", False) else Within

    @cache
    def within() -> Any:
        return numba.njit(function, pipeline_class=pipeline, **options, **BARE)

    compiled.get_call_template = lambda *arguments: within().get_call_template(*arguments)
    compiled.get_overload = lambda *arguments: within().get_overload(*arguments)
