"""The journal of a file is put into it beside the writer, so that no answer waits for it.

A checkpoint copies pages and flushes the file: tens of milliseconds, which a commit that meets a long journal would
take for all who wait for it. Here a thread does so early and often; what it leaves is little, and the writer's own
checkpoint (`wal_autocheckpoint`) finds that little when it begins the journal anew.
"""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress

OFTEN = 2000  # rows between two of them
CHECKPOINT = "PRAGMA wal_checkpoint(PASSIVE)"


class Checkpoints:
    """A thread with a connection of its own, from the first rows that are written until `stop`."""

    def __init__(self, opened: Callable[[], sqlite3.Connection]) -> None:
        self._opened, self._rows = opened, 0
        self._due, self._ended = threading.Event(), False
        self._thread: threading.Thread | None = None

    def count(self, rows: int) -> None:
        """Say that so many rows were written; the writer does."""
        self._rows += rows
        if self._rows >= OFTEN:
            self._rows = 0
            if self._thread is None and not self._ended:
                self._thread = threading.Thread(target=self._run, name="stagewise-checkpoints", daemon=True)
                self._thread.start()
            self._due.set()

    def stop(self) -> None:
        """End, once the checkpoint that is under way is done."""
        self._ended = True
        self._due.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        while True:
            self._due.wait()
            self._due.clear()
            if self._ended:
                break
            with suppress(sqlite3.Error):  # a file that cannot be written: the writer says so
                connection = connection or self._opened()
                connection.execute(CHECKPOINT).fetchall()
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()
