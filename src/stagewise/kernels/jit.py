"""Build Numba dispatchers of kernels: linked into their callers, cached as machine code, interpreted until compiled."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np

from stagewise.kernels import code_cache
from stagewise.kernels.background import COMPILER
from stagewise.kernels.interpreted import InterpretedKernel
from stagewise.kernels.linking import enable_linking
from stagewise.kernels.machine_code import MachineCode

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
