"""A store in one SQLite file: one process writes, any number read.

The journal is in WAL mode and flushed at every commit (synchronous = FULL): an acknowledged row is on disk.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import Any

import msgspec

from stagewise.files.paths import get_os_reason
from stagewise.problem.errors import ErrorCode
from stagewise.problem.formatting import format_path
from stagewise.server.event_log import (
    CONTROL,
    GLOBAL,
    PROBLEM,
    TERM_BITS,
    AppendRequest,
    AppendResult,
    Event,
    Seal,
    SealPart,
    WriterChain,
    build_seal,
)
from stagewise.server.store.append_batch import (
    BatchResult,
    StoreState,
    get_offline_logs,
    get_outcome_decisions,
    get_touched_experiments,
    get_wanted_rows,
    resolve_batch,
)
from stagewise.server.store.base import (
    EVENT_COLUMNS,
    INSERT_PART,
    INSERT_SEAL,
    SELECT_CONTROL,
    SELECT_LAST_PART,
    SELECT_LAST_SEAL,
    SELECT_LATEST,
    Statement,
    Store,
    StoreUnavailable,
    wall_clock,
)
from stagewise.server.store.migrate import FOLDER, get_pending_migrations, read_migrations

try:
    import fcntl
except ImportError:  # Windows: a second process fails at its first write
    fcntl = None  # type: ignore[assignment]

SETTINGS = """
PRAGMA synchronous = FULL;
PRAGMA cache_size = -65536;
PRAGMA wal_autocheckpoint = 4000;
PRAGMA journal_size_limit = 67108864;
"""
# One statement for many rows: each statement releases the GIL, which takes long while the event loop is busy.
_WANTED_EVENTS = """
FROM (SELECT value AS wanted FROM json_each(?)) CROSS JOIN events AS e ON e.experiment = json_extract(wanted, '$[0]')
AND e.kind = json_extract(wanted, '$[1]') AND e.key = json_extract(wanted, '$[2]')
"""
SELECT_EXISTING_ROWS = f"SELECT {EVENT_COLUMNS}, experiment {_WANTED_EVENTS}"
SELECT_EXISTING_ANSWERS = f"""
SELECT a.decision, a.signal, a.value {_WANTED_EVENTS} CROSS JOIN answers AS a ON a.decision = e.number
"""
SELECT_DECIDED = """
SELECT 1 FROM events WHERE experiment = ?1 AND kind = 'decision'
UNION ALL SELECT 1 FROM checkpoints WHERE experiment = ?1 LIMIT 1
"""
INSERT_EVENTS = f"INSERT INTO events ({EVENT_COLUMNS}, experiment) VALUES "
INSERT_ANSWERS = "INSERT INTO answers (decision, signal, value, number) VALUES "
MAX_STATEMENT_ROWS = 256

TEST_WRITE = "PRAGMA user_version = 0"  # writes a page of the journal each time
TEST_TIMEOUT = 1.0  # seconds that a write test waits
OPEN_JOURNAL = "SELECT count(*) FROM sqlite_master"
SAVE_JOURNAL = "PRAGMA wal_checkpoint(TRUNCATE)"

MIGRATIONS = "CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT"
APPLY_MIGRATION = "BEGIN IMMEDIATE;\n{sql};\nINSERT INTO migrations VALUES ({number}, '{name}');\nCOMMIT;"
VERSION = "SELECT coalesce(max(number), 0) FROM migrations"
MIN_SQLITE_VERSION = (3, 37, 0)  # strict tables

FileIdentity = tuple[int, int]
_locked_files: set[FileIdentity] = set()  # files locked by this process
_lock = threading.Lock()


class SqliteStore(Store):
    """A store in a file.

    Attributes:
        path: The file; its journal is next to it.
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
            template = "SQLite is {sqlite_version}; a store needs SQLite 3.37 or newer"
            raise StoreUnavailable(ErrorCode.MISSING_DEPENDENCY, template, sqlite_version=sqlite3.sqlite_version)
        self.path, self.clock, self.read_only = Path(os.path.realpath(path)), clock, read_only
        self._where, self._journal = format_path(self.path), f"{self.path}-wal"
        self._turn = threading.Lock()  # one thread writes at a time
        self._writer: sqlite3.Connection | None = None
        self._chain: WriterChain | None = None
        self._first_number = 0  # at least, of the next row
        self._anchor: sqlite3.Connection | None = None  # keeps the journal open, so that its file stays the same
        self._idle: list[sqlite3.Connection] = []  # readers
        self._closed = False
        self._descriptor: int | None = None
        if read_only and not self.path.exists():
            raise StoreUnavailable(ErrorCode.FILE_NOT_FOUND, "{path} does not exist", path=self._where)
        try:
            if not read_only:
                self._descriptor = lock_file(self.path)
            self._migrate(migrations)
        except BaseException:
            self.close()
            raise

    def append(self, requests: Sequence[AppendRequest]) -> list[AppendResult]:
        """Append and seal all rows that can be appended in one durable transaction; return one result for each."""
        secret = self._read_writers_secret()
        with self._writing(self.timeout) as connection:
            chain, self._chain = self._chain or WriterChain.begin(secret), None
            state, now = read_state(connection, requests, chain, self._first_number), self.now()
            state.chain = self._renew_chain(state.chain, state.controls.get(GLOBAL, 0))
            batch = resolve_batch(requests, state, now)
            if batch.rows:
                insert_rows(connection, INSERT_EVENTS, batch.records)
                insert_rows(connection, INSERT_ANSWERS, batch.answers)
                seal_batch(connection, batch, now)
        self._chain = state.chain  # it ends if the commit failed
        self._see(batch.rows[-1][1].number if batch.rows else state.seen)
        return batch.results

    def begin_term(self) -> None:
        """Numbers of the next term follow."""
        ((number, _),) = self._all(SELECT_LATEST) or [(0, 0)]
        self._first_number = ((number >> TERM_BITS) + 1) << TERM_BITS

    def continue_numbers(self) -> None:
        """The next number follows the last row."""

    def seal(self) -> dict[str, list[Event]]:
        """Rows are sealed as they are written."""
        return {}

    def compact(self) -> None:
        """Write the file anew without the pages of deleted rows; nobody writes meanwhile."""
        with self._turn, self._errors("written"), closing(self._open("rw")) as connection:
            connection.execute("VACUUM")
            connection.execute(SAVE_JOURNAL).fetchone()

    def test_write(self) -> None:
        """Test a durable write that changes nothing; waits at most a second for other writers."""
        with self._writing(TEST_TIMEOUT, TEST_TIMEOUT) as connection:
            connection.execute(TEST_WRITE)

    def try_lead(self) -> bool:
        """Return whether this process leads: the one that holds the file does."""
        return self._descriptor is not None and not self._closed

    def now(self) -> int:
        """Return the time of this machine."""
        return self.clock()

    def close(self) -> None:
        """Close all connections and release the file; SQLite saves the journal with the last connection."""
        with self._turn:
            self._closed = True
            for connection in (*self._idle, self._writer, self._anchor):
                close_quietly(connection)
            self._idle, self._writer, self._anchor = [], None, None
            if self._descriptor is not None:  # after all connections: SQLite's own locks end with any descriptor
                unlock_file(self._descriptor)
                self._descriptor = None

    def _all(self, query: str, *values: Any) -> list[Any]:
        with self._errors("read"):
            connection = self._idle.pop() if self._idle else self._open("ro")
            try:
                rows = connection.execute(query, values).fetchall()
            except BaseException:
                close_quietly(connection)
                raise
            if self._closed:
                close_quietly(connection)
            else:
                self._idle.append(connection)
            return rows

    def _change(self, *statements: Statement) -> None:
        with self._writing(self.timeout) as connection:
            for sql, values in statements:
                connection.execute(sql, values)

    @contextmanager
    def _writing(self, timeout: float, turn: float = -1.0) -> Iterator[sqlite3.Connection]:
        """Lend the writing connection in a transaction and commit it; after an error a new connection is opened.

        Waits for `timeout` seconds for other programs, and for `turn` seconds for other threads (−1: without limit).
        """
        if not self._turn.acquire(timeout=turn):
            raise StoreUnavailable(
                ErrorCode.STORE_BUSY, "another program is writing to {path}; try again later", path=self._where
            )
        try:
            with self._errors("written"):
                self._check_files()
                connection, self._writer = self._writer or self._open("rw"), None
                try:
                    connection.execute(f"PRAGMA busy_timeout = {round(1000 * timeout)}")
                    connection.execute("BEGIN IMMEDIATE")
                    yield connection
                    connection.execute("COMMIT")
                    self._check_files()  # only then is a row acknowledged
                except BaseException:
                    close_quietly(connection)
                    raise
                self._writer = connection
        finally:
            self._turn.release()

    def _check_files(self) -> None:
        """Reject a file or a journal that was removed or replaced: its rows would not be found again.

        What is in a removed journal is saved to the file by the connection that still has it.
        """
        identity = get_identity(self.path)
        if identity != self._identity:
            problem = (
                "was removed; put the file back"
                if identity is None
                else "was replaced by another file; restart the server to use the new file"
            )
            raise StoreUnavailable(ErrorCode.FILE_CHANGED, "{path} {problem}", path=self._where, problem=problem)
        if self._anchor is not None and get_identity(self._journal) != self._journal_identity:
            self._anchor.execute(SAVE_JOURNAL).fetchone()
            template = (
                "the journal of {path} was removed or replaced; its rows are saved in the file: remove the journal if "
                "there is another one, and restart the server"
            )
            raise StoreUnavailable(ErrorCode.FILE_CHANGED, template, path=self._where)

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        problem = "is closed" if self._closed else "is open for reading only"
        if self._closed or (what == "written" and self.read_only):
            raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, "{path} {problem}", path=self._where, problem=problem)
        try:
            yield
        except sqlite3.Error as error:
            template = "{path} cannot be {what}: {error}"
            data = {"path": self._where, "what": what, "error": error}
            raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, template, **data) from None

    def _open(self, mode: str) -> sqlite3.Connection:
        """Open a connection; threads take turns with it."""
        uri = f"{self.path.as_uri()}?mode={mode}"
        if mode == "ro" and not os.path.exists(self._journal) and not os.access(self.path.parent, os.W_OK):
            uri += "&immutable=1"  # all rows are in the file, and on a read-only disk there can be no journal
        connection = sqlite3.connect(uri, self.timeout, isolation_level=None, check_same_thread=False, uri=True)
        try:
            if mode != "ro":
                (journal,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
                if journal != "wal":
                    raise sqlite3.OperationalError(f"the journal is {journal!r}, and WAL is not to be had there")
                connection.executescript(SETTINGS)
        except BaseException:
            close_quietly(connection)
            raise
        return connection

    def _migrate(self, folder: Path) -> None:
        """Apply migrations to the file, and keep its journal open from then on."""
        steps = read_migrations(folder)
        with self._errors("opened"):
            connection = self._open("ro" if self.read_only else "rw")
            try:
                if not self.read_only:
                    connection.execute(MIGRATIONS)
                (version,) = connection.execute(VERSION).fetchone()
                for step in get_pending_migrations(steps, version, self._where, read_only=self.read_only):
                    connection.executescript(APPLY_MIGRATION.format(sql=step.sql, number=step.number, name=step.name))
                connection.execute(OPEN_JOURNAL).fetchall()
            except BaseException:
                close_quietly(connection)
                raise
            self._identity, self._journal_identity = get_identity(self.path), get_identity(self._journal)
            if self.read_only:
                self._idle.append(connection)
            else:
                self._anchor = connection


def read_state(
    connection: sqlite3.Connection, requests: Sequence[AppendRequest], chain: WriterChain, first: int = 0
) -> StoreState:
    """Return the state that a batch needs; numbers follow the last one, since nobody else writes."""
    seen, _ = connection.execute(SELECT_LATEST).fetchone() or (0, 0)
    state = StoreState(chain, count(max(seen + 1, first)), seen)
    for name in get_touched_experiments(requests):
        rows = [connection.execute(SELECT_CONTROL, (name, kind)).fetchone() for kind in (CONTROL, PROBLEM)]
        state.controls[name] = max(number or 0 for (number,) in rows)
    state.decided = {
        name for name in get_offline_logs(requests) if connection.execute(SELECT_DECIDED, (name,)).fetchone()
    }
    wanted, decisions = get_wanted_rows(requests), sorted(get_outcome_decisions(requests))
    if wanted:
        state.add(connection.execute(SELECT_EXISTING_ROWS, (msgspec.json.encode(wanted).decode(),)).fetchall(), ())
    if decisions:
        query = msgspec.json.encode(decisions).decode()
        state.add((), connection.execute(SELECT_EXISTING_ANSWERS, (query,)).fetchall())
    return state


def seal_batch(connection: sqlite3.Connection, batch: BatchResult, now: int) -> None:
    """Write the seal of new rows."""
    before = Seal(*(connection.execute(SELECT_LAST_SEAL).fetchone() or ()))
    ends = dict[str, SealPart]()
    for name in {experiment for experiment, _ in batch.rows}:
        for end in connection.execute(SELECT_LAST_PART, (name, before.seal)):
            ends[name] = SealPart(*end)
    seal, parts = build_seal(
        before, batch.rows, ends, now, batch.rows[-1][1].number >> TERM_BITS, encoded=batch.encoded
    )
    connection.execute(INSERT_SEAL, seal)
    for part in parts:
        connection.execute(INSERT_PART, part)


def insert_rows(connection: sqlite3.Connection, insert: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows in chunks whose sizes are powers of two, so that few statements are prepared."""
    done = 0
    while done < len(rows):
        size = min(MAX_STATEMENT_ROWS, 1 << ((len(rows) - done).bit_length() - 1))
        row = f"({', '.join('?' * len(rows[0]))})"
        values = tuple(chain.from_iterable(rows[done : done + size]))
        connection.execute(f"{insert}{', '.join([row] * size)}", values)
        done += size


def close_quietly(connection: sqlite3.Connection | None) -> None:
    """Close a connection in any state; what was not committed is rolled back."""
    if connection is not None:
        with suppress(sqlite3.Error):
            connection.close()


def get_identity(path: str | Path) -> FileIdentity | None:
    """Return the device and inode of a path; None if there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def lock_file(path: Path) -> int:
    """Lock a file for one writing process, under all of its names; return the descriptor that holds the lock.

    The system releases the lock when the process ends. It is a `flock`, which on a local disk is independent of
    SQLite's locks. A new file is readable only by its owner, because it has secrets.
    """
    with _lock:
        is_locked = get_identity(path) in _locked_files  # opening and closing it again would release SQLite's locks
        try:
            descriptor = -1 if is_locked else os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if fcntl is not None and not is_locked:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            is_locked = True
        except OSError as error:
            template = "{store} cannot be opened for writing: {error}"
            data = {"store": format_path(path), "error": get_os_reason(error)}
            raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, template, **data) from None
        if is_locked:
            template = (
                "another server has {path} open; only one server can write to a SQLite file, several need a "
                "PostgreSQL store"
            )
            raise StoreUnavailable(ErrorCode.STORE_LOCKED, template, path=format_path(path))
        found = os.fstat(descriptor)
        _locked_files.add((found.st_dev, found.st_ino))
    return descriptor


def unlock_file(descriptor: int) -> None:
    """Release the lock of `lock_file`, after all connections to the file are closed."""
    with _lock:
        found = os.fstat(descriptor)
        _locked_files.discard((found.st_dev, found.st_ino))
        os.close(descriptor)
