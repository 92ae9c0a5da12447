"""A store in one SQLite file: one process writes, any number read.

The journal is in WAL mode and flushed at every commit (synchronous = FULL): an acknowledged row is on disk.
"""

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from stagewise.problem.errors import ErrorCode
from stagewise.problem.formatting import format_path
from stagewise.server.event_log import AppendRequest, AppendResult, Event, LogHead
from stagewise.server.store.base import Store, StoreUnavailable
from stagewise.server.store.file_lock import FileLock
from stagewise.server.store.journal import Journal, get_file_identity
from stagewise.server.store.migrate import FOLDER, Migration, get_pending_migrations, read_migrations
from stagewise.server.store.queries import Statement, wall_clock
from stagewise.server.store.recent_events import RecentEvents
from stagewise.server.store.sqlite_batch import MAX_CACHED_SIZES, begin_immediate, resolve_and_write

log = logging.getLogger("stagewise.server")

SETTINGS = """
PRAGMA synchronous = FULL;
PRAGMA cache_size = -65536;
PRAGMA wal_autocheckpoint = 16000;
PRAGMA journal_size_limit = 67108864;
"""
TEST_WRITE = "PRAGMA user_version = 0"  # writes a page of the journal each time
DISABLE_BUSY_TIMEOUT = "PRAGMA busy_timeout = 0"  # writers have timeouts of their own

MIGRATIONS = "CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT"
APPLY_MIGRATION = "BEGIN IMMEDIATE;\n{sql};\nINSERT INTO migrations VALUES ({number}, '{name}');\nCOMMIT;"
VERSION = "SELECT coalesce(max(number), 0) FROM migrations"

TEST_TIMEOUT = 1.0  # seconds that a write test waits
MIN_SQLITE_VERSION = (3, 37, 0)  # strict tables


class SqliteStore(Store):
    """A store in a file.

    Attributes:
        path: The file; its journal and the lock of its writer are next to it.
        clock: Returns the time; the times of rows never decrease.
        timeout: Seconds to wait while another program locks the file.
    """

    timeout = 5.0

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        clock: Callable[[], int] = wall_clock,
        migrations: Path = FOLDER,
    ) -> None:
        if sqlite3.sqlite_version_info < MIN_SQLITE_VERSION:
            raise StoreUnavailable(
                ErrorCode.MISSING_DEPENDENCY,
                "SQLite is {sqlite_version}; a store needs SQLite 3.37 or newer",
                sqlite_version=sqlite3.sqlite_version,
            )
        self.path, self.clock, self.read_only = Path(os.path.realpath(path)), clock, read_only
        self._name = str(self.path)
        self._write_lock = threading.Lock()  # one thread writes at a time
        self._heads: dict[str, LogHead] = {}  # ends of logs that were written: no other process writes this file
        self._recent, self._journal = (
            RecentEvents(),
            Journal(self.path, lambda: self._open("rw"), self._renew_if_removed),
        )
        self._writer: sqlite3.Connection | None = None
        self._reading = threading.Condition()  # the journal is renewed while nobody reads
        self._lent, self._renewing = 0, False  # readers in use; whether new readers must wait
        self._idle: list[sqlite3.Connection] = []  # idle readers
        self._closed = False
        if read_only and not self.path.exists():
            raise StoreUnavailable(ErrorCode.FILE_NOT_FOUND, "{path} does not exist", path=format_path(self.path))
        self._owner = None if read_only else FileLock(self.path)
        try:
            self._migrate(read_migrations(migrations))
            if not read_only:
                with self._errors("opened"):
                    self._journal.open()
        except BaseException:
            self.close()
            raise

    def append(self, requests: Sequence[AppendRequest]) -> list[AppendResult]:
        """Append all rows that can be appended in one durable transaction. Raises StoreUnavailable."""
        with self._appending(requests, self.timeout) as results:
            pass
        return results

    def begin(self, requests: Sequence[AppendRequest]) -> Callable[[], list[AppendResult]] | None:
        """Append without the flush; return a function that flushes, or None if `append` must be used."""
        transaction = ExitStack()
        try:
            results = transaction.enter_context(self._appending(requests, 0.0))
        except Exception:  # append raises it again
            return None

        def finish() -> list[AppendResult]:
            transaction.close()
            return results

        return finish

    @contextmanager
    def _appending(self, requests: Sequence[AppendRequest], timeout: float) -> Iterator[list[AppendResult]]:
        """Write rows in a transaction that is committed at the end."""
        with self._writing(timeout) as connection:
            state, (results, rows, *_) = resolve_and_write(connection, requests, self._heads, self.now())
            ends = {name: head for name, head in state.heads.items() if head.seq or not name}
            del state
            yield results
            self._commit(connection)
            self._heads |= ends
            self._recent.add(rows)
            self._journal.count(len(rows))

    def events(self, experiment: str, after: int = 0, limit: int = 10_000) -> list[Event]:
        """Return rows after row `after`, in order; the last ones come from memory."""
        recent = self._recent.after(experiment, after, limit)
        return super().events(experiment, after, limit) if recent is None or self._closed else recent

    def test_write(self) -> None:
        """Test a durable write that changes nothing; waits at most a second for other writers."""
        with self._writing(TEST_TIMEOUT, turn=TEST_TIMEOUT) as connection:
            connection.execute(TEST_WRITE)
            self._commit(connection)
            self._journal.count(1)

    def try_lead(self) -> bool:
        """Return whether this process leads: the one that holds the file does."""
        return self._owner is not None and not self._closed

    def now(self) -> int:
        """Return the time of this machine."""
        return self.clock()

    def close(self) -> None:
        """Close all connections and release the file; checkpoint the journal if possible."""
        self._journal.stop()
        with self._write_lock:
            self._closed = True
            self._forget_all()
            if self._owner is not None:
                self._owner.release()

    def _all(self, sql: str, *values: Any) -> list[Any]:
        journal = self._journal.number
        try:
            return self._read(sql, values)
        except StoreUnavailable:
            if self.read_only or self._closed or (self._journal.number == journal and self._journal.is_intact()):
                raise
        self._renew_if_removed()  # a reader that came while the journal was missing found an empty one
        return self._read(sql, values)

    def _read(self, sql: str, values: Sequence[Any]) -> list[Any]:
        with self._errors("read"), self._lend() as connection:
            return connection.execute(sql, values).fetchall()

    @contextmanager
    def _lend(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection for reading; after an error it is closed."""
        with self._reading:
            self._reading.wait_for(lambda: not self._renewing)
            self._lent += 1
            connection = self._idle.pop() if self._idle else None
        try:
            connection = connection or self._open("ro")
            yield connection
        except BaseException:
            if connection is not None:
                close_quietly(connection)
            connection = None
            raise
        finally:
            with self._reading:
                self._lent -= 1
                if connection is not None and not self._closed:
                    self._idle.append(connection)
                elif connection is not None:
                    close_quietly(connection)
                self._reading.notify_all()

    def _change(self, *statements: Statement) -> int:
        with self._writing(self.timeout) as connection:
            for sql, values in statements:
                changed = connection.execute(sql, values).rowcount
            self._commit(connection)
        return changed

    @contextmanager
    def _writing(self, timeout: float, turn: float = -1.0) -> Iterator[sqlite3.Connection]:
        """Lend the writing connection in a transaction and commit it; after an error a new connection is opened.

        With `timeout` 0 nothing waits, neither for other threads nor for other programs. `turn` is how long to wait
        for other threads; −1: without limit.
        """
        if not self._write_lock.acquire(timeout=turn if timeout else 0.0):
            raise StoreUnavailable(
                ErrorCode.STORE_BUSY,
                "another program is writing to {path}; try again later",
                path=format_path(self.path),
            )
        try:
            with self._errors("written"):
                self._check_same_file()
                if not self._journal.is_intact():
                    self._renew(timeout)
                if self._writer is None and not timeout:
                    raise StoreUnavailable(
                        ErrorCode.STORE_UNAVAILABLE,
                        "{path} is not open; open the store first",
                        path=format_path(self.path),
                    )
                connection, journal = self._writer or self._open("rw"), self._journal.number
                self._writer = None
                try:
                    begin_immediate(connection, timeout)
                    yield connection
                except BaseException:
                    close_quietly(connection)
                    raise
                if self._journal.number == journal:
                    self._writer = connection
                else:  # it was closed with all connections to the old journal
                    close_quietly(connection)
        except BaseException:
            self._heads = {}  # after an error no head is certain
            raise
        finally:
            self._write_lock.release()

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Raise every error of SQLite as StoreUnavailable."""
        if self._closed:
            raise StoreUnavailable(
                ErrorCode.STORE_UNAVAILABLE,
                "{path} is closed; nothing can be {what}",
                path=format_path(self.path),
                what=what,
            )
        if what == "written" and self.read_only:
            raise StoreUnavailable(
                ErrorCode.STORE_UNAVAILABLE, "{path} is open for reading only", path=format_path(self.path)
            )
        try:
            yield
        except sqlite3.Error as error:
            raise StoreUnavailable(
                ErrorCode.STORE_UNAVAILABLE,
                "{path} cannot be {what}: {error}",
                path=format_path(self.path),
                what=what,
                error=error,
            ) from None

    def _open(self, mode: str) -> sqlite3.Connection:
        """Open a connection; threads take turns with it."""
        uri = f"{self.path.as_uri()}?mode={mode}"
        if mode == "ro" and is_checkpointed(self.path):
            uri += "&immutable=1"
        connection = sqlite3.connect(
            uri,
            self.timeout,
            isolation_level=None,
            check_same_thread=False,
            uri=True,
            cached_statements=4 * MAX_CACHED_SIZES,
        )
        if mode != "ro":
            try:
                (journal,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
                if journal != "wal":
                    raise sqlite3.OperationalError(f"the journal is {journal!r}, and WAL is not to be had there")
                connection.executescript(SETTINGS)
                if mode == "rw":
                    connection.execute(DISABLE_BUSY_TIMEOUT)
            except BaseException:
                close_quietly(connection)
                raise
        return connection

    def _check_same_file(self) -> None:
        """Reject a file that was removed or replaced: its rows would not be found again."""
        identity = get_file_identity(self._name)
        if identity is None:
            raise StoreUnavailable(
                ErrorCode.FILE_CHANGED, "{path} was removed; put the file back", path=format_path(self.path)
            )
        if identity != self._inode:
            raise StoreUnavailable(
                ErrorCode.FILE_CHANGED,
                "{path} was replaced by another file; restart the server to use the new file",
                path=format_path(self.path),
            )

    def _commit(self, connection: sqlite3.Connection) -> None:
        """Commit, then check that the files are still the ones that were opened; only then acknowledge."""
        connection.execute("COMMIT")
        self._check_same_file()
        if not self._journal.is_intact():
            self._renew(self.timeout, connection)

    def _renew(self, timeout: float, *connections: sqlite3.Connection) -> None:
        """Create a new journal after the old one was removed and its content saved. Raises StoreUnavailable.

        The caller is the writer; its `connections` are closed. No connection to the old journal may remain beside one
        to the new.
        """
        if not timeout:
            raise StoreUnavailable(
                ErrorCode.FILE_CHANGED,
                "the journal of {path} was removed; the store must create it again first",
                path=format_path(self.path),
            )
        with self._reading:
            self._renewing = True
            try:
                if not self._reading.wait_for(lambda: not self._lent, timeout):
                    raise StoreUnavailable(
                        ErrorCode.FILE_CHANGED,
                        "the journal of {path} was removed, and other programs still read it",
                        path=format_path(self.path),
                    )
                self._journal.save()
                for connection in connections:
                    close_quietly(connection)
                self._forget_all()
                self._journal.check_alone()
                self._journal.open()
            finally:
                self._renewing = False
                self._reading.notify_all()
        log.warning(
            "the journal of %s was removed while the server ran; its rows are in the file, a new one is created",
            format_path(self.path),
        )

    def _renew_if_removed(self) -> None:
        """Create a new journal if it was removed and nothing is being written."""
        if self._write_lock.acquire(timeout=TEST_TIMEOUT):
            try:
                with self._errors("written"):
                    self._check_same_file()
                    if not self._journal.is_intact():
                        self._renew(self.timeout)
            finally:
                self._write_lock.release()

    def _forget_all(self) -> None:
        """Close every idle connection."""
        for connection in [*self._idle, *filter(None, [self._writer])]:
            close_quietly(connection)
        self._idle, self._writer = [], None
        self._journal.release()

    def _migrate(self, steps: list[Migration]) -> None:
        """Apply migrations to the file."""
        where = format_path(self.path)
        with self._errors("opened"):
            connection = self._open("ro" if self.read_only else "rwc")
            try:
                if not self.read_only:
                    connection.execute(MIGRATIONS)
                (version,) = connection.execute(VERSION).fetchone()
                for step in get_pending_migrations(steps, version, where, read_only=self.read_only):
                    connection.executescript(APPLY_MIGRATION.format(sql=step.sql, number=step.number, name=step.name))
            finally:
                close_quietly(connection)
            self._inode = get_file_identity(self._name)


def is_checkpointed(path: Path) -> bool:
    """Return whether all rows are in the file, and no journal can be created next to it (a read-only disk)."""
    return not path.with_name(path.name + "-wal").exists() and not os.access(path.parent, os.W_OK)


def close_quietly(connection: sqlite3.Connection) -> None:
    """Close a connection in any state; what was not committed is rolled back."""
    with suppress(sqlite3.Error):
        connection.close()
