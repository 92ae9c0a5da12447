"""Numba's machine code: a file for each kernel and kind of arguments, in a folder that may be read-only or missing."""

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

from stagewise.kernels import kept


class MachineCode(FunctionCache):
    """What was compiled of one kernel, for Numba to ask before it compiles and to tell when it has.

    Numba's own cache wants a folder that it can write to, and numbers its files, so that two processes may give one
    number to two kinds of arguments. Here the name of a file says what is in it, wherever the package is installed.
    """

    def __init__(self, function: FunctionType, folder: Path | None) -> None:
        self._py_func = function
        self._name = repr(function)
        self._folder = folder
        self._cache_path = str(folder)
        self.enable()

    def path(self, key: tuple[Any, ...]) -> Path:
        """Return the file for one kind of arguments, on one kind of processor, with these values from around it."""
        if self._folder is None:
            raise FileNotFoundError(0, "this user has no home")
        function = f"{self._py_func.__module__}.{self._py_func.__qualname__}".replace("<locals>.", "")
        line = self._py_func.__code__.co_firstlineno
        return self._folder / f"{function}-{line}-{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.nbc"

    def has(self, sig: Any, target_context: Any) -> bool:
        """Say whether something is kept for these arguments."""
        try:
            return self.path(self._index_key(sig, target_context.codegen())).exists()
        except OSError:
            return False

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """Return what tells one machine code of a kernel from another: the texts are told by the folder's name."""
        return sig, codegen.magic_tuple(), captured(self._py_func)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was compiled for these arguments, or None: whatever is wrong with a file, compiling helps."""
        rtsys.initialize(target_context)  # all that machine code calls: what compiling needs, Numba loads when it does
        key = self._index_key(sig, target_context.codegen())
        try:
            found, parts = pickle.loads(kept.read(self.path(key)))
            return CompileResult._rebuild(target_context, *parts) if found == key else None
        except Exception:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for these arguments, or say once why every process will compile it again."""
        if data.lifted or data.library.has_dynamic_globals:
            return
        key = self._index_key(sig, data.codegen)
        try:
            kept.write(self.path(key), dumps((key, data._reduce())))
        except OSError as problem:
            tell("" if self._folder is None else f"{self._folder}: ", problem.strerror)

    def flush(self) -> None:
        """Forget nothing: a kernel with another text has another folder."""


def captured(function: Any) -> tuple[Any, ...]:
    """Return what a kernel takes from around it: numbers, and other kernels by their names, with what they take."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return tuple(
        (cell.py_func.__module__, cell.py_func.__qualname__, captured(cell.py_func))
        if hasattr(cell, "py_func")
        else repr(cell)
        for cell in cells
    )


@cache
def tell(folder: str, reason: str) -> None:
    """Say once why nothing is kept. It costs time and changes no result: where warnings are errors, this is none."""
    with suppress(RuntimeWarning):
        warnings.warn(
            f"compiled kernels are not kept ({folder}{reason}), so every process compiles them again; "
            "let STAGEWISE_CACHE name a folder of your own",
            RuntimeWarning,
            stacklevel=3,
        )
