"""A file that one process has to itself, for as long as it lives."""

import os
from contextlib import suppress
from pathlib import Path

from stagewise.files.paths import named, reason
from stagewise.service.store.store import StoreDown

try:
    import fcntl
except ImportError:  # Windows: there the second process fails when it first writes
    fcntl = None  # type: ignore[assignment]


class Owner:
    """The lock `desk.db.lock` beside `desk.db`; the system lets go of it when the process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(path.name + ".lock")
        try:
            self.descriptor: int | None = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreDown(f"{named(path)} cannot be opened for writing: {reason(error)}") from None
        try:
            if fcntl is not None:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            other = os.pread(self.descriptor, 20, 0).decode(errors="replace").strip()
            self.release()
            raise StoreDown(
                f"another desk has {named(path)} open{f' (process {other})' if other else ''}; one desk writes a "
                "SQLite file at a time, and several take a PostgreSQL store"
            ) from None
        with suppress(OSError):  # a full disk: the next one is told less
            os.ftruncate(self.descriptor, 0)
            os.pwrite(self.descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let go of it; the file stays, since removing it would race with the next owner."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
