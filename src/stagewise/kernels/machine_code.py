"""Cache of Numba's machine code: one file per kernel and signature, in a folder that may be read-only or missing."""

import hashlib
import pickle
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from numba.core.caching import FunctionCache
from numba.core.compiler import CompileResult
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from stagewise.kernels import code_cache


class MachineCode(FunctionCache):
    """The cached machine code of one kernel, in the interface that Numba expects of a cache.

    Numba's own cache needs a writable folder and numbers its files, so two processes may give one number to two
    signatures. Here the file name is a digest of its content's key and does not depend on where the package is
    installed.
    """

    def __init__(self, function: FunctionType, folder: Path | None) -> None:
        self._py_func = function
        self._name = repr(function)
        self._folder = folder
        self._cache_path = str(folder)
        self.enable()

    def path(self, key: tuple[Any, ...]) -> Path:
        """Return the file for one signature, processor and set of captured values."""
        if self._folder is None:
            raise FileNotFoundError(0, "this user has no home folder")
        function = f"{self._py_func.__module__}.{self._py_func.__qualname__}".replace("<locals>.", "")
        line = self._py_func.__code__.co_firstlineno
        return self._folder / f"{function}-{line}-{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.nbc"

    def has(self, sig: Any, target_context: Any) -> bool:
        """Return whether machine code is cached for these arguments."""
        try:
            return self.path(self._index_key(sig, target_context.codegen())).exists()
        except OSError:
            return False

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """Return the key of one machine code of a kernel; the folder's name covers the sources."""
        return sig, codegen.magic_tuple(), get_captured_values(self._py_func)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the cached machine code for these arguments; None if the file is missing or unusable."""
        rtsys.initialize(target_context)  # what machine code needs at run time
        key = self._index_key(sig, target_context.codegen())
        try:
            found, parts = pickle.loads(code_cache.read(self.path(key)))
            return CompileResult._rebuild(target_context, *parts) if found == key else None
        except Exception:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write machine code for these arguments; warn once if it cannot be written."""
        if data.lifted or data.library.has_dynamic_globals:
            return
        key = self._index_key(sig, data.codegen)
        try:
            code_cache.write(self.path(key), dumps((key, data._reduce())))
        except OSError as problem:
            warn_not_cached("" if self._folder is None else f"{self._folder}: ", problem.strerror)

    def flush(self) -> None:
        """Do nothing: a kernel with other sources has another folder."""


def get_captured_values(function: Any) -> tuple[Any, ...]:
    """Return the values that a kernel captures: constants, and kernels by name with their own captured values."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return tuple(
        (cell.py_func.__module__, cell.py_func.__qualname__, get_captured_values(cell.py_func))
        if hasattr(cell, "py_func")
        else repr(cell)
        for cell in cells
    )


@cache
def warn_not_cached(folder: str, reason: str) -> None:
    """Warn once that nothing is cached; never fail, even where warnings are errors."""
    with suppress(RuntimeWarning):
        warnings.warn(
            f"compiled kernels are not kept ({folder}{reason}), so every process compiles them again; "
            "let STAGEWISE_CACHE name a folder of your own",
            RuntimeWarning,
            stacklevel=3,
        )
