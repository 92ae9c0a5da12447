"""A file that one process has to itself, for as long as it lives."""

import os
import threading
from contextlib import suppress
from pathlib import Path

from stagewise.files.paths import named, reason
from stagewise.service.store.store import StoreDown

try:
    import fcntl
except ImportError:  # Windows: there the second process fails when it first writes
    fcntl = None  # type: ignore[assignment]

ALONE = "one desk writes a SQLite file at a time, and several take a PostgreSQL store"

_ours: set[tuple[int, int]] = set()  # files that this process has to itself
_turn = threading.Lock()


class Owner:
    """Two locks, of which the system lets go when the process ends, however it ends.

    One is `desk.db.lock` beside `desk.db`, which tells the next one who has it. The other is on the file itself, for
    whoever comes by another name: a hard link, or a mount of the file or of its folder elsewhere. It is `flock`'s,
    which on a local disk has nothing to do with the locks that SQLite takes.
    """

    def __init__(self, path: Path) -> None:
        self._beside: int | None = None
        self._itself: int | None = None
        self._identity: tuple[int, int] | None = None
        try:
            self._beside = opened(path.with_name(path.name + ".lock"), path, 0o644)
            if not locked(self._beside, path):
                other = os.pread(self._beside, 20, 0).decode(errors="replace").strip()
                raise StoreDown(f"another desk has {named(path)} open{f' (process {other})' if other else ''}; {ALONE}")
            with suppress(OSError):  # a full disk: the next one is told less
                os.ftruncate(self._beside, 0)
                os.pwrite(self._beside, f"{os.getpid()}\n".encode(), 0)
            self._have(path)
        except BaseException:
            self.release()
            raise

    def _have(self, path: Path) -> None:
        """Have the file itself; it is made where there is none, readable by its owner alone: secrets stand in it."""
        taken = f"another desk has {named(path)} open by another name, a hard link or a mount; {ALONE}"
        with _turn:
            # A descriptor of a file that this process has open may not be closed: SQLite's locks would go with it.
            with suppress(FileNotFoundError):
                seen = os.stat(path)
                if (seen.st_dev, seen.st_ino) in _ours:
                    raise StoreDown(taken)
            self._itself = opened(path, path, 0o600)
            if not locked(self._itself, path):
                raise StoreDown(taken)
            seen = os.fstat(self._itself)
            self._identity = seen.st_dev, seen.st_ino
            _ours.add(self._identity)

    def release(self) -> None:
        """Let go of both, once every connection is closed; files stay: removing one would race with the next owner."""
        with _turn:
            if self._identity is not None:
                _ours.discard(self._identity)
            for descriptor in (self._itself, self._beside):
                if descriptor is not None:
                    os.close(descriptor)
            self._itself = self._beside = self._identity = None


def opened(file: Path, store: Path, mode: int) -> int:
    """Return a descriptor of a file, which is made where there is none."""
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
    except OSError as error:
        raise StoreDown(f"{named(store)} cannot be opened for writing: {reason(error)}") from None


def locked(descriptor: int, store: Path) -> bool:
    """Lock a file without waiting; False: another process has it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise StoreDown(f"{named(store)} cannot be locked: {reason(error)}; a store needs a local disk") from None
    return True
