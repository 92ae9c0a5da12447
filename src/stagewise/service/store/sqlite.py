"""A log in one SQLite file: one process writes it, any number read it.

Journal in WAL mode, flushed at every commit (synchronous = FULL): what is answered is on disk.
"""

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from stagewise.files.paths import named
from stagewise.service.records import Ask, Event, Head, Settled
from stagewise.service.store.journal import Journal, identity
from stagewise.service.store.migrating import FOLDER, Step, ahead, steps_in
from stagewise.service.store.owner import Owner
from stagewise.service.store.recent import Recent
from stagewise.service.store.sqlite_rows import FEW, begin, written
from stagewise.service.store.store import Store, StoreDown
from stagewise.service.store.tables import Statement, wall_clock

log = logging.getLogger("stagewise.desk")

SETTINGS = """
PRAGMA synchronous = FULL;
PRAGMA cache_size = -65536;
PRAGMA wal_autocheckpoint = 16000;
PRAGMA journal_size_limit = 67108864;
"""
TRY_OUT = "PRAGMA user_version = 0"  # a page of the journal, each time
HURRIED = "PRAGMA busy_timeout = 0"  # whoever begins to write has patience of his own, or none

MIGRATIONS = "CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT"
MIGRATE = "BEGIN IMMEDIATE;\n{sql};\nINSERT INTO migrations VALUES ({number}, '{name}');\nCOMMIT;"
VERSION = "SELECT coalesce(max(number), 0) FROM migrations"

HASTE = 1.0  # seconds that a try waits
OLDEST = (3, 37, 0)  # strict tables


class SqliteStore(Store):
    """A store in a file.

    Attributes:
        path: The file; beside it stand its journal, and the lock of the one desk that writes.
        clock: What tells the time; rows never go back in it.
        patience: Seconds to wait while some other program has the file locked.
    """

    patience = 5.0

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        clock: Callable[[], int] = wall_clock,
        migrations: Path = FOLDER,
    ) -> None:
        if sqlite3.sqlite_version_info < OLDEST:
            raise StoreDown(f"SQLite is {sqlite3.sqlite_version}; a store needs 3.37 or newer, for strict tables")
        self.path, self.clock, self.read_only = Path(os.path.realpath(path)), clock, read_only
        self._name = str(self.path)
        self._turn = threading.Lock()  # one writes at a time
        self._heads: dict[str, Head] = {}  # where logs end that were written to: nobody else can write this file
        self._recent, self._journal = Recent(), Journal(self.path, lambda: self._open("rw"), self._renew_unasked)
        self._writer: sqlite3.Connection | None = None
        self._reading = threading.Condition()  # a journal is renewed while nobody reads
        self._lent, self._renewing = 0, False  # readers in use; whether others have to wait
        self._idle: list[sqlite3.Connection] = []  # readers that nobody uses just now
        self._closed = False
        if read_only and not self.path.exists():
            raise StoreDown(f"{named(self.path)} does not exist")
        self._owner = None if read_only else Owner(self.path)
        try:
            self._migrate(steps_in(migrations))
            if not read_only:
                with self._errors("opened"):
                    self._journal.open()
        except BaseException:
            self.close()
            raise

    def append(self, asks: Sequence[Ask]) -> list[Settled]:
        """Write all that can be written in one durable transaction; one answer for each ask. Raises StoreDown."""
        with self._appending(asks, self.patience) as settled:
            pass
        return settled

    def begin(self, asks: Sequence[Ask]) -> Callable[[], list[Settled]] | None:
        """Write all of that but for the flush of the disk, and return what flushes it; None: `append` has to wait."""
        transaction = ExitStack()
        try:
            settled = transaction.enter_context(self._appending(asks, 0.0))
        except Exception:  # append meets it too, and says what it is
            return None

        def finish() -> list[Settled]:
            transaction.close()
            return settled

        return finish

    @contextmanager
    def _appending(self, asks: Sequence[Ask], patience: float) -> Iterator[list[Settled]]:
        """Write rows in a transaction that is committed at the end."""
        with self._writing(patience) as connection:
            held, (settled, rows, *_) = written(connection, asks, self._heads, self.now())
            ends = {name: head for name, head in held.heads.items() if head.seq or not name}
            del held
            yield settled
            self._commit(connection)
            self._heads |= ends
            self._recent.add(rows)
            self._journal.count(len(rows))

    def events(self, experiment: str, after: int = 0, limit: int = 10_000) -> list[Event]:
        """Return rows in order, from the one that follows `after` on; the last few without asking the file."""
        recent = self._recent.after(experiment, after, limit)
        return super().events(experiment, after, limit) if recent is None or self._closed else recent

    def try_out(self) -> None:
        """Write a page that is as it was; a thread or a program that has the file is waited for a second."""
        with self._writing(HASTE, turn=HASTE) as connection:
            connection.execute(TRY_OUT)
            self._commit(connection)
            self._journal.count(1)

    def lead(self) -> bool:
        """Say that this is the one learner: whoever holds the file is."""
        return self._owner is not None and not self._closed

    def now(self) -> int:
        """Return the time of this machine."""
        return self.clock()

    def close(self) -> None:
        """Let go of everything; the journal is put into the file where that is possible."""
        self._journal.stop()
        with self._turn:
            self._closed = True
            self._forget_all()
            if self._owner is not None:
                self._owner.release()

    def _all(self, sql: str, *values: Any) -> list[Any]:
        journal = self._journal.number
        try:
            return self._read(sql, values)
        except StoreDown:
            if self.read_only or self._closed or (self._journal.number == journal and self._journal.is_there()):
                raise
        self._renew_unasked()  # a reader that came while the journal was gone found an empty one
        return self._read(sql, values)

    def _read(self, sql: str, values: Sequence[Any]) -> list[Any]:
        with self._errors("read"), self._lend() as connection:
            return connection.execute(sql, values).fetchall()

    @contextmanager
    def _lend(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection to read by; after an error it is not used again."""
        with self._reading:
            self._reading.wait_for(lambda: not self._renewing)
            self._lent += 1
            connection = self._idle.pop() if self._idle else None
        try:
            connection = connection or self._open("ro")
            yield connection
        except BaseException:
            if connection is not None:
                forget(connection)
            connection = None
            raise
        finally:
            with self._reading:
                self._lent -= 1
                if connection is not None and not self._closed:
                    self._idle.append(connection)
                elif connection is not None:
                    forget(connection)
                self._reading.notify_all()

    def _change(self, *statements: Statement) -> int:
        with self._writing(self.patience) as connection:
            for sql, values in statements:
                changed = connection.execute(sql, values).rowcount
            self._commit(connection)
        return changed

    @contextmanager
    def _writing(self, patience: float, turn: float = -1.0) -> Iterator[sqlite3.Connection]:
        """Be the one who writes, in a transaction, and commit it; after any error the connection is a new one.

        Who has no patience waits for nobody: neither for another thread, nor for another program. `turn` is how long
        other threads are waited for; −1: as long as they take.
        """
        if not self._turn.acquire(timeout=turn if patience else 0.0):
            raise StoreDown(f"somebody else writes to {named(self.path)} just now")
        try:
            with self._errors("written"):
                self._same_file()
                if not self._journal.is_there():
                    self._renew(patience)
                if self._writer is None and not patience:
                    raise StoreDown(f"{named(self.path)} has to be opened first")
                connection, journal = self._writer or self._open("rw"), self._journal.number
                self._writer = None
                try:
                    begin(connection, patience)
                    yield connection
                except BaseException:
                    forget(connection)
                    raise
                if self._journal.number == journal:
                    self._writer = connection
                else:  # it was closed, with all that had the journal before
                    forget(connection)
        except BaseException:
            self._heads = {}  # after an error nothing is taken for known
            raise
        finally:
            self._turn.release()

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Say every error of the file in a sentence."""
        if self._closed:
            raise StoreDown(f"{named(self.path)} is closed; nothing can be {what}")
        if what == "written" and self.read_only:
            raise StoreDown(f"{named(self.path)} is open for reading only")
        try:
            yield
        except sqlite3.Error as error:
            raise StoreDown(f"{named(self.path)} cannot be {what}: {error}") from None

    def _open(self, mode: str) -> sqlite3.Connection:
        """Return a new connection; threads take turns with it."""
        uri = f"{self.path.as_uri()}?mode={mode}"
        if mode == "ro" and finished(self.path):
            uri += "&immutable=1"
        connection = sqlite3.connect(
            uri, self.patience, isolation_level=None, check_same_thread=False, uri=True, cached_statements=4 * FEW
        )
        if mode != "ro":
            try:
                (journal,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
                if journal != "wal":
                    raise sqlite3.OperationalError(f"the journal is {journal!r}, and WAL is not to be had there")
                connection.executescript(SETTINGS)
                if mode == "rw":
                    connection.execute(HURRIED)
            except BaseException:
                forget(connection)
                raise
        return connection

    def _same_file(self) -> None:
        """Refuse to write into a file that was removed or replaced: it would take rows, and nobody would find them."""
        seen = identity(self._name)
        if seen is None:
            raise StoreDown(f"{named(self.path)} is gone; put it back")
        if seen != self._inode:
            raise StoreDown(f"{named(self.path)} was replaced by another file; start the desk again to go on with it")

    def _commit(self, connection: sqlite3.Connection) -> None:
        """Commit, and see that it is in files that will be found again: only then may it be acknowledged."""
        connection.execute("COMMIT")
        self._same_file()
        if not self._journal.is_there():
            self._renew(self.patience, connection)

    def _renew(self, patience: float, *connections: sqlite3.Connection) -> None:
        """Begin another journal where somebody removed it, once all that stands in it is in the file. Raises StoreDown.

        Whoever calls it writes, so nobody else does; `connections` are his own, and are closed. No connection that
        has the old journal may be left beside one that has the new.
        """
        if not patience:
            raise StoreDown(f"the journal of {named(self.path)} was removed, and has to be begun anew first")
        with self._reading:
            self._renewing = True
            try:
                if not self._reading.wait_for(lambda: not self._lent, patience):
                    raise StoreDown(f"the journal of {named(self.path)} was removed, and is still being read")
                self._journal.save()
                for connection in connections:
                    forget(connection)
                self._forget_all()
                self._journal.check_alone()
                self._journal.open()
            finally:
                self._renewing = False
                self._reading.notify_all()
        log.warning(
            "the journal of %s was removed while the desk ran; all of it is in the file, and another is begun",
            named(self.path),
        )

    def _renew_unasked(self) -> None:
        """Begin another journal if it was removed and nothing is written just now."""
        if self._turn.acquire(timeout=HASTE):
            try:
                with self._errors("written"):
                    self._same_file()
                    if not self._journal.is_there():
                        self._renew(self.patience)
            finally:
                self._turn.release()

    def _forget_all(self) -> None:
        """Close every connection that nobody uses."""
        for connection in [*self._idle, *filter(None, [self._writer])]:
            forget(connection)
        self._idle, self._writer = [], None
        self._journal.release()

    def _migrate(self, steps: list[Step]) -> None:
        """Take the file to the version that is known here."""
        where = named(self.path)
        with self._errors("opened"):
            connection = self._open("ro" if self.read_only else "rwc")
            try:
                if not self.read_only:
                    connection.execute(MIGRATIONS)
                (version,) = connection.execute(VERSION).fetchone()
                for step in ahead(steps, version, where, read_only=self.read_only):
                    connection.executescript(MIGRATE.format(sql=step.sql, number=step.number, name=step.name))
            finally:
                forget(connection)
            self._inode = identity(self._name)


def finished(path: Path) -> bool:
    """Say whether all of a log is in its file, where no journal can be made beside it: on a read-only disk."""
    return not path.with_name(path.name + "-wal").exists() and not os.access(path.parent, os.W_OK)


def forget(connection: sqlite3.Connection) -> None:
    """Close a connection, whatever state it is in; what was not committed is rolled back."""
    with suppress(sqlite3.Error):
        connection.close()
