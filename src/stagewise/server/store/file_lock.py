"""A lock that lets one process write to a SQLite file."""

import os
import threading
from contextlib import suppress
from pathlib import Path

from stagewise.files.paths import get_os_reason
from stagewise.problem.errors import ErrorCode
from stagewise.problem.formatting import format_path
from stagewise.server.store.base import StoreUnavailable

try:
    import fcntl
except ImportError:  # Windows: a second process fails at its first write
    fcntl = None  # type: ignore[assignment]

SINGLE_WRITER = "only one server can write to a SQLite file; several servers need a PostgreSQL store"

_locked_files: set[tuple[int, int]] = set()  # files locked by this process
_lock = threading.Lock()


class FileLock:
    """Two locks that the system releases when the process ends.

    One is the file `server.db.lock` next to `server.db`, which has the process id of its owner. The other is on the
    file itself, for processes that open it under another name: a hard link or a mount. It uses `flock`, which on a
    local disk is independent of SQLite's locks.
    """

    def __init__(self, path: Path) -> None:
        self._beside: int | None = None
        self._itself: int | None = None
        self._identity: tuple[int, int] | None = None
        try:
            self._beside = open_descriptor(path.with_name(path.name + ".lock"), path, 0o644)
            if not try_lock(self._beside, path):
                process = os.pread(self._beside, 20, 0).decode(errors="replace").strip()
                raise StoreUnavailable(
                    ErrorCode.STORE_LOCKED,
                    "another server has {path} open{owner}; {single_writer}",
                    path=format_path(path),
                    owner=f" (process {process})" if process else "",
                    single_writer=SINGLE_WRITER,
                )
            with suppress(OSError):  # on a full disk the message has no process id
                os.ftruncate(self._beside, 0)
                os.pwrite(self._beside, f"{os.getpid()}\n".encode(), 0)
            self._lock_file(path)
        except BaseException:
            self.release()
            raise

    def _lock_file(self, path: Path) -> None:
        """Lock the file itself; a new file is readable only by its owner, because it has secrets."""
        message = (
            f"another server has {format_path(path)} open under another name, a hard link or a mount; {SINGLE_WRITER}"
        )
        with _lock:
            # Closing any descriptor of a file that SQLite has open would release SQLite's locks.
            with suppress(FileNotFoundError):
                status = os.stat(path)
                if (status.st_dev, status.st_ino) in _locked_files:
                    raise StoreUnavailable(ErrorCode.STORE_LOCKED, "{problem}", problem=message)
            self._itself = open_descriptor(path, path, 0o600)
            if not try_lock(self._itself, path):
                raise StoreUnavailable(ErrorCode.STORE_LOCKED, "{problem}", problem=message)
            status = os.fstat(self._itself)
            self._identity = status.st_dev, status.st_ino
            _locked_files.add(self._identity)

    def release(self) -> None:
        """Release both locks after all connections are closed; the lock file stays, so that no owner loses it."""
        with _lock:
            if self._identity is not None:
                _locked_files.discard(self._identity)
            for descriptor in (self._itself, self._beside):
                if descriptor is not None:
                    os.close(descriptor)
            self._itself = self._beside = self._identity = None


def open_descriptor(file: Path, store: Path, mode: int) -> int:
    """Open or create a file and return its descriptor."""
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
    except OSError as error:
        raise StoreUnavailable(
            ErrorCode.STORE_UNAVAILABLE,
            "{store} cannot be opened for writing: {error}",
            store=format_path(store),
            error=get_os_reason(error),
        ) from None


def try_lock(descriptor: int, store: Path) -> bool:
    """Lock a file without waiting; return False if another process has it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise StoreUnavailable(
            ErrorCode.STORE_UNAVAILABLE,
            "{store} cannot be locked: {error}; use a local disk",
            store=format_path(store),
            error=get_os_reason(error),
        ) from None
    return True
