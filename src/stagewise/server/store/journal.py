"""The write-ahead log (journal) of a SQLite file: checkpointed early, and watched for removal.

A checkpoint copies pages and flushes the file, which takes tens of milliseconds and would delay a commit. A thread
does this early and often, so little is left for the writer's own checkpoint (`wal_autocheckpoint`).

The last commits are only in the journal. If it is removed (`rm server.db-wal`), open connections still have it,
and it would be lost with the process. One connection therefore stays open while the server runs, so that SQLite never
removes the journal, and its files are checked at every commit. If they were removed, this connection writes its
content to the file.
"""

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from stagewise.problem.errors import ErrorCode
from stagewise.problem.formatting import format_path
from stagewise.server.store.base import StoreUnavailable

CHECKPOINT_ROWS = 2000  # rows between two checkpoints
WATCH_INTERVAL = 0.5  # seconds between two checks of the files while nothing is written
SET_BUSY_TIMEOUT = "PRAGMA busy_timeout = 1000"
OPEN_JOURNAL = "SELECT count(*) FROM sqlite_master"  # opens the journal and its index
CHECKPOINT = "PRAGMA wal_checkpoint(PASSIVE)"
TRUNCATE = "PRAGMA wal_checkpoint(TRUNCATE)"

FileIdentity = tuple[int, int]


class Journal:
    """The journal of a file that this process writes, from `open` until `stop`.

    `opened` opens a connection; `renew` is called by the thread if files are missing.
    """

    def __init__(self, path: Path, opened: Callable[[], sqlite3.Connection], renew: Callable[[], None]) -> None:
        self._log, self._index = f"{path}-wal", f"{path}-shm"
        self._where, self._opened, self._renew = format_path(path), opened, renew
        self._turn = threading.Lock()  # guards the connection
        self._connection: sqlite3.Connection | None = None
        self._identities: tuple[FileIdentity | None, FileIdentity | None] = None, None
        self.number = 0
        """Number of journals created."""
        self._rows = 0
        self._due, self._ended = threading.Event(), False
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Open or create the journal and remember its files. Raises sqlite3.Error."""
        with self._turn:
            connection = self._opened()
            try:
                connection.execute(SET_BUSY_TIMEOUT)
                connection.execute(OPEN_JOURNAL).fetchall()
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.close()
                raise
            self._connection, self._identities = (
                connection,
                (get_file_identity(self._log), get_file_identity(self._index)),
            )
            self.number += 1
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="stagewise-journal", daemon=True)
            self._thread.start()

    def is_intact(self) -> bool:
        """Return whether both files are the ones that were opened."""
        return self._connection is not None and self._identities == (
            get_file_identity(self._log),
            get_file_identity(self._index),
        )

    def count(self, rows: int) -> None:
        """Count written rows; the writer calls this."""
        self._rows += rows
        if self._rows >= CHECKPOINT_ROWS:
            self._rows = 0
            self._due.set()

    def save(self) -> None:
        """Checkpoint the complete journal from the open files, even if removed. Raises StoreUnavailable."""
        with self._turn:
            if self._connection is None:
                return  # saved before
            (busy, *_) = self._connection.execute(TRUNCATE).fetchone()
        if busy:
            raise StoreUnavailable(
                ErrorCode.FILE_CHANGED,
                "the journal of {where} was removed while other programs read it; stop these programs",
                where=self._where,
            )
        if (
            self._identities[0] != (identity := get_file_identity(self._log))
            and identity is not None
            and os.path.getsize(self._log)
        ):
            raise StoreUnavailable(
                ErrorCode.FILE_CHANGED,
                "{log} was replaced by another file, and acknowledged rows are in {where}; remove the "
                "other file to continue",
                log=format_path(Path(self._log)),
                where=self._where,
            )

    def release(self) -> None:
        """Close the connection, after the store has closed all others."""
        with self._turn:
            if self._connection is not None:
                with suppress(sqlite3.Error):
                    self._connection.close()
            self._connection = None

    def check_alone(self) -> None:
        """Reject a new journal while another program uses its own index. Raises StoreUnavailable."""
        if self._identities[1] != get_file_identity(self._index) and os.path.exists(self._log):
            raise StoreUnavailable(
                ErrorCode.FILE_CHANGED,
                "the index of {where} was removed while other programs read it; stop these programs",
                where=self._where,
            )

    def stop(self) -> None:
        """End the thread after the current checkpoint."""
        self._ended = True
        self._due.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ended:
            due = self._due.wait(WATCH_INTERVAL)
            self._due.clear()
            if self._ended:
                return
            if not self.is_intact():
                with suppress(StoreUnavailable):  # the next write raises it
                    self._renew()
            elif due:
                with self._turn, suppress(sqlite3.Error):  # the writer reports a file that cannot be written
                    if self._connection is not None:
                        self._connection.execute(CHECKPOINT).fetchall()


def get_file_identity(path: str) -> FileIdentity | None:
    """Return the device and inode of a path; None if there is no file."""
    try:
        identity = os.stat(path)
    except OSError:
        return None
    return identity.st_dev, identity.st_ino
