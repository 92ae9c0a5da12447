"""Link kernels into the kernels that call them, so that each is optimised only once.

Numba optimises a kernel and generates machine code for it, then repeats both for every caller at every level: two
fifths of the time of a first decision. A kernel that only kernels call needs neither. This module uses private classes
of Numba; if they are missing, kernels are compiled in Numba's usual way, slower to start and with the same results
(docs/decisions/0016-kernels-within-kernels-are-linked.md).

Build Numba dispatchers of kernels: linked into their callers, cached as machine code, interpreted until compiled.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import llvmlite
import numba
import numpy as np
from numba.core import codegen
from numba.core.compiler import Compiler
from numba.core.types import unliteral

from stagewise.engine import cache as code_cache
from stagewise.engine.background import COMPILER, InterpretedKernel
from stagewise.engine.cache import MachineCode

NEEDED = ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals", "get_pointer_to_function")
BARE: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # called only by kernels
LIBRARY: Any = getattr(codegen, "JITCodeLibrary", object)


def can_link(compiled: Any) -> bool:
    """Return whether this version of Numba has the methods that are replaced here."""
    replaced = [hasattr(LIBRARY, name) for name in NEEDED]
    return all(replaced) and hasattr(compiled, "get_call_template") and hasattr(compiled, "get_overload")


class NoEnvironment:
    """Stands in for a code generator, which would look for a function's environment in machine code."""

    @staticmethod
    def set_env(name: str, environment: Any) -> None:
        """Do nothing: kernels raise no exceptions and need no environment."""


class LinkedLibrary(LIBRARY):  # type: ignore[misc]
    """A code library that is only linked: it is not optimised and has no machine code of its own."""

    codegen = NoEnvironment()

    def _optimize_final_module(self) -> None:
        """Do nothing: the library that links this one optimises it."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: there is no machine code."""
        return 0


class LinkedCompiler(Compiler):
    """Numba's compiler pipeline, with a `LinkedLibrary` as its target."""

    noalias: ClassVar[bool] = False  # tell LLVM that array arguments do not overlap

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, returned: Any, flags: Any, *rest: Any
    ) -> None:
        flags.noalias = self.noalias
        linked = library or LinkedLibrary(target.codegen(), "kernel")
        super().__init__(typing, target, linked, args, returned, flags, *rest)


class NoaliasLinkedCompiler(LinkedCompiler):
    """Pipeline of a kernel that is marked `distinct`: its arrays do not overlap."""

    noalias = True


def enable_linking(function: Any, compiled: Any, options: dict[str, Any]) -> None:
    """Let kernels call this kernel in linked form, while Python calls its machine code.

    The linked form is built at the first call by a kernel; a process that loads machine code builds none.
    """
    if not can_link(compiled):
        return
    pipeline = NoaliasLinkedCompiler if getattr(function, "distinct", False) else LinkedCompiler

    @cache
    def build_linked() -> Any:
        return numba.njit(function, pipeline_class=pipeline, **options, **BARE)

    def get_call_template(positional: Any, named: Any) -> Any:
        """Return what a call is compiled to: constants are typed as variables, or each would be compiled again."""
        plain = [unliteral(each) for each in positional], {name: unliteral(each) for name, each in named.items()}
        return build_linked().get_call_template(*plain)

    compiled.get_call_template = get_call_template
    compiled.get_overload = lambda *arguments: build_linked().get_overload(*arguments)


SOURCES = code_cache.list_sources()
FOLDER = code_cache.build_folder_path(SOURCES, [numba.__version__, llvmlite.__version__, np.__version__])
OPTIONS: Any = {"fastmath": False, "error_model": "numpy", "_nrt": False}


def compile_kernel(function: Any, build_python_form: Callable[[Any], Any], inline: bool) -> Any:
    """Return Numba's dispatcher of a kernel; the function itself where Numba is disabled."""
    options = OPTIONS | {"forceinline": inline}
    compiled: Any = numba.njit(function, **options)
    if compiled is function:
        return function
    enable_linking(function, compiled, options)
    if is_packaged(function):
        compiled._cache = MachineCode(function, FOLDER)
    compiled._compile_for_args = InterpretedKernel(compiled, build_python_form, COMPILER.submit)
    return compiled


def is_packaged(function: Any) -> bool:
    """Return whether a kernel and every kernel that it captures are defined in the sources that the cache digests.

    Otherwise its machine code is not cached, because the cache could not notice changes of those sources.
    """
    if Path(function.__code__.co_filename) not in SOURCES:
        return False
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return all(is_packaged(cell.py_func) for cell in cells if hasattr(cell, "py_func"))
