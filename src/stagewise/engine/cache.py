"""Cache of compiled kernels on disk: folder name, reading, writing, and trust.

Loading machine code unpickles it, which can run arbitrary code. So a file is loaded only where no one but this user
and root can have written it.

Cache of Numba's machine code: one file per kernel and signature, in a folder that may be read-only or missing.
"""

import hashlib
import os
import pickle
import stat
import sys
import uuid
import warnings
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from numba.core.caching import FunctionCache
from numba.core.compiler import CompileResult
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

PACKAGE = Path(__file__).parents[1]
NOT_TRUSTED = "others than you and root own it or can change it"


def list_sources() -> list[Path]:
    """Return every source file of the kernels (`tests/test_border.py` checks that there are no others)."""
    return sorted(path for folder in ("engine", "models", "rules") for path in (PACKAGE / folder).rglob("*.py"))


def build_folder_path(files: Iterable[Path], makers: Iterable[str]) -> Path | None:
    """Return the cache folder for these source files and compiler versions; None for a user without a home folder.

    Its name contains a digest of all sources, because Numba only checks the file that defines a function, not the files
    of the functions that it calls.
    """
    base = os.environ.get("STAGEWISE_CACHE") or os.environ.get("XDG_CACHE_HOME")
    try:
        root = Path(base or Path.home() / ".cache").resolve()
    except (OSError, RuntimeError):  # unknown users of containers have no home folder
        return None
    text = hashlib.sha256(repr([sys.version, *makers]).encode())
    for path in files:
        text.update(f"{path.relative_to(PACKAGE).as_posix()} {path.stat().st_size}\n".encode() + path.read_bytes())
    return root / "stagewise" / f"kernels-{text.hexdigest()[:16]}"


def is_trusted(path: Path) -> bool:
    """Return whether only this user and root can have written or can replace this file or folder.

    The path and its folder must belong to one of the two, and neither the path nor any folder above it may be writable
    by others. In a sticky folder such as /tmp, others cannot replace files that are not theirs. A group whose number
    equals the user's counts as the user's own, and root's group counts as root.
    """
    if os.name == "nt":
        return True  # a profile belongs to its user, and `stat` does not say who else may write
    user = os.geteuid()
    for level, ancestor in enumerate((path, *path.parents)):
        status = ancestor.stat()
        others = stat.S_IWOTH if status.st_gid in (0, user) else stat.S_IWOTH | stat.S_IWGRP
        fixed = level > 1 and status.st_mode & stat.S_ISVTX
        if status.st_mode & others and not fixed:
            return False
        if level < 2 and status.st_uid not in (0, user):
            return False
    return True


def read(path: Path) -> bytes:
    """Return the content of a cached file; raise OSError if it does not exist or is not trusted."""
    if not is_trusted(path):
        raise PermissionError(0, NOT_TRUSTED)
    return path.read_bytes()


def write(path: Path, content: bytes) -> None:
    """Write a file atomically; raise OSError if it cannot be written or would not be trusted."""
    for ancestor in reversed(path.parents):
        if not ancestor.is_dir():
            ancestor.mkdir(mode=0o755, exist_ok=True)
    if not is_trusted(path.parent):
        raise PermissionError(0, NOT_TRUSTED)
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        with open(draft, "xb", opener=lambda name, flags: os.open(name, flags, 0o644)) as file:
            file.write(content)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def can_write(folder: Path | None) -> bool:
    """Return whether machine code can be written to a folder, by writing and removing a file."""
    if folder is None:
        return False
    trial = folder / f"trial-{uuid.uuid4().hex}"
    try:
        write(trial, b"")
        trial.unlink()
    except OSError:
        return False
    return True


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
            found, parts = pickle.loads(read(self.path(key)))
            return CompileResult._rebuild(target_context, *parts) if found == key else None
        except Exception:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write machine code for these arguments; warn once if it cannot be written."""
        if data.lifted or data.library.has_dynamic_globals:
            return
        key = self._index_key(sig, data.codegen)
        try:
            write(self.path(key), dumps((key, data._reduce())))
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
