"""A kernel as Numba has it: linked into those that call it, kept as machine code, interpreted until that is there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np

from stagewise.kernels import kept
from stagewise.kernels.background import COMPILER
from stagewise.kernels.interpreted import Interpreted
from stagewise.kernels.linked import linking
from stagewise.kernels.machine_code import MachineCode

SOURCES = kept.sources()
FOLDER = kept.folder(SOURCES, [numba.__version__, llvmlite.__version__, np.__version__])
OPTIONS: Any = {"fastmath": False, "error_model": "numpy", "_nrt": False}


def compile_kernel(function: Any, plain_form: Callable[[Any], Any], inline: bool) -> Any:
    """Return Numba's dispatcher of a kernel; the function itself where Numba is switched off."""
    options = OPTIONS | {"forceinline": inline}
    compiled: Any = numba.njit(function, **options)
    if compiled is function:
        return function
    linking(function, compiled, options)
    if is_packaged(function):
        compiled._cache = MachineCode(function, FOLDER)
    compiled._compile_for_args = Interpreted(compiled, plain_form, COMPILER.ask)
    return compiled


def is_packaged(function: Any) -> bool:
    """Say whether a kernel, and every kernel that it captures, stands in the files that the cache digests.

    Else its machine code is not kept: the cache could not tell that the text of what it captures has changed.
    """
    if Path(function.__code__.co_filename) not in SOURCES:
        return False
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return all(is_packaged(cell.py_func) for cell in cells if hasattr(cell, "py_func"))
