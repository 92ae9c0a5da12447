"""The journal beside a SQLite file: put into the file early, and watched while a desk runs.

A checkpoint copies pages and flushes the file: tens of milliseconds, which a commit that meets a long journal would
take for all who wait for it. Here a thread does so early and often; what it leaves is little, and the writer's own
checkpoint (`wal_autocheckpoint`) finds that little when it begins the journal anew.

What was committed last stands in the journal alone. Where somebody removes it (`rm desk.db-wal`), the connections that
are open still have it, and nobody else ever will: with the process it would be gone. One connection is therefore open
for as long as the desk runs, so that SQLite itself never removes a journal meanwhile, and its files are looked at
around every commit. What such a connection still has, it can put into the file.
"""

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from stagewise.files.paths import named
from stagewise.service.store.store import StoreDown

OFTEN = 2000  # rows between two checkpoints
WATCH = 0.5  # seconds between two looks at the journal's files while nothing is written
WAIT = "PRAGMA busy_timeout = 1000"
TOUCH = "SELECT count(*) FROM sqlite_master"  # opens the journal and its index
CHECKPOINT = "PRAGMA wal_checkpoint(PASSIVE)"
EMPTY = "PRAGMA wal_checkpoint(TRUNCATE)"

Identity = tuple[int, int]


class Journal:
    """The journal of a file that this process writes, from `open` until `close`.

    `opened` makes a connection; `renew` is called by the watching thread where files are missing.
    """

    def __init__(self, path: Path, opened: Callable[[], sqlite3.Connection], renew: Callable[[], None]) -> None:
        self._log, self._index = f"{path}-wal", f"{path}-shm"
        self._where, self._opened, self._renew = named(path), opened, renew
        self._turn = threading.Lock()  # with the connection
        self._connection: sqlite3.Connection | None = None
        self._known: tuple[Identity | None, Identity | None] = None, None
        self.number = 0
        """How many journals were begun."""
        self._rows = 0
        self._due, self._ended = threading.Event(), False
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Begin a journal, or go on with the one that is there, and remember its files. Raises sqlite3.Error."""
        with self._turn:
            connection = self._opened()
            try:
                connection.execute(WAIT)
                connection.execute(TOUCH).fetchall()
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.close()
                raise
            self._connection, self._known = connection, (identity(self._log), identity(self._index))
            self.number += 1
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="stagewise-journal", daemon=True)
            self._thread.start()

    def is_there(self) -> bool:
        """Say whether both of its files are the ones that were opened."""
        return self._connection is not None and self._known == (identity(self._log), identity(self._index))

    def count(self, rows: int) -> None:
        """Say that so many rows were written; the writer does."""
        self._rows += rows
        if self._rows >= OFTEN:
            self._rows = 0
            self._due.set()

    def save(self) -> None:
        """Put all of it into the file, from the files that are open, whatever their names lead to. Raises StoreDown."""
        with self._turn:
            if self._connection is None:
                return  # that was done before
            (busy, *_) = self._connection.execute(EMPTY).fetchone()
        if busy:
            raise StoreDown(f"the journal of {self._where} was removed, and other programs read it; they have to end")
        if self._known[0] != (seen := identity(self._log)) and seen is not None and os.path.getsize(self._log):
            raise StoreDown(
                f"{named(Path(self._log))} was replaced by another file; what was acknowledged is in {self._where}, so "
                "remove the other file to go on"
            )

    def release(self) -> None:
        """Close the connection; the store has closed all others."""
        with self._turn:
            if self._connection is not None:
                with suppress(sqlite3.Error):
                    self._connection.close()
            self._connection = None

    def check_alone(self) -> None:
        """Refuse to begin anew where another program goes on with an index of its own. Raises StoreDown."""
        if self._known[1] != identity(self._index) and os.path.exists(self._log):
            raise StoreDown(f"the index of {self._where} was removed, and other programs read it; they have to end")

    def stop(self) -> None:
        """End the thread, once the checkpoint that is under way is done."""
        self._ended = True
        self._due.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ended:
            due = self._due.wait(WATCH)
            self._due.clear()
            if self._ended:
                return
            if not self.is_there():
                with suppress(StoreDown):  # whoever writes next is told
                    self._renew()
            elif due:
                with self._turn, suppress(sqlite3.Error):  # a file that cannot be written: the writer says so
                    if self._connection is not None:
                        self._connection.execute(CHECKPOINT).fetchall()


def identity(path: str) -> Identity | None:
    """Return which file a name leads to; None: there is none."""
    try:
        seen = os.stat(path)
    except OSError:
        return None
    return seen.st_dev, seen.st_ino
