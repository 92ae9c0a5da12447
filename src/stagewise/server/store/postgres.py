"""A store in PostgreSQL: any number of servers write, one of them learns.

A batch takes two round trips: lock the heads and read what the batch needs; write and commit.
"""

import select
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import UniqueViolation

from stagewise.problem.errors import ErrorCode
from stagewise.problem.formatting import safe_repr
from stagewise.server.event_log import GLOBAL, AppendRequest, AppendResult, LogHead
from stagewise.server.store.append_batch import (
    BatchResult,
    StoreState,
    get_outcome_decisions,
    get_touched_experiments,
    get_wanted_rows,
    has_global_request,
    resolve_batch,
)
from stagewise.server.store.base import (
    EVENT_COLUMNS,
    HEAD_COLUMNS,
    SELECT_LOG_ENDS,
    Statement,
    Store,
    StoreUnavailable,
    wall_clock,
)
from stagewise.server.store.migrate import FOLDER, get_pending_migrations, read_migrations, to_postgres_sql

Connection = psycopg.Connection[tuple[Any, ...]]

DEFAULTS: dict[str, str | int | None] = {  # unless the address says otherwise
    "application_name": "stagewise",
    "connect_timeout": 5,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 2,
    "tcp_user_timeout": 5000,
}
# Timeouts: no transaction holds a log for longer, and a lost machine is noticed within seconds.
# Plans: every query reads few rows by an index; a plan cached for an empty table may be slow.
SETTINGS = """
SET client_min_messages = warning; SET timezone = 'UTC';
SET lock_timeout = '10s'; SET statement_timeout = '60s'; SET idle_in_transaction_session_timeout = '10s';
SET tcp_keepalives_idle = 2; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 2;
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET plan_cache_mode = force_custom_plan;
"""
READ_ONLY = "SET default_transaction_read_only = on"
# Commits must be on disk before they are acknowledged. Stricter settings stay.
ENSURE_DURABLE = """
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local')
"""
# A pooler may share a server session between connections: the learner's lock and the settings would then belong to any.
SET_SESSION_MARK = "SELECT set_config('stagewise.session', %s, false)"
GET_SESSION_MARK = "SELECT current_setting('stagewise.session')"

# Advisory locks: a number for the purpose, and the schema, so that two stores in one database do not conflict.
TRY_LEAD = "SELECT pg_try_advisory_lock(7301, hashtext(current_schema()))"
CHECK_ALIVE = "SELECT true"  # the lock lasts as long as its connection
LOCK_MIGRATIONS = "SELECT pg_advisory_xact_lock(7302, hashtext(current_schema()))"
# A global append waits for all batches in progress, and new batches wait for it. This queue is fair.
LOCK_EXCLUSIVE = "SELECT pg_advisory_xact_lock(7303, hashtext(current_schema()))"
LOCK_SHARED = "SELECT pg_advisory_xact_lock_shared(7303, hashtext(current_schema()))"

BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
SELECT_GLOBAL_HEAD = f"SELECT experiment, {HEAD_COLUMNS} FROM heads WHERE experiment = ''"
SELECT_HEADS = f"SELECT experiment, {HEAD_COLUMNS} FROM heads WHERE experiment = ANY(%s) ORDER BY experiment FOR UPDATE"
# One index lookup for each wanted row: the planner may choose worse plans before statistics are collected.
_KEYS = "unnest(%s::text[], %s::text[], %s::text[]) AS w (experiment, kind, key) CROSS JOIN LATERAL"
_BY_KEY = "FROM events WHERE experiment = w.experiment AND kind = w.kind AND key = w.key LIMIT 1"
SELECT_EXISTING_ROWS = f"SELECT w.experiment, e.* FROM {_KEYS} (SELECT {EVENT_COLUMNS} {_BY_KEY}) AS e"
SELECT_EXISTING_ANSWERS = f"""
SELECT w.experiment, d.decision_index, a.signal, a.value FROM {_KEYS} (SELECT decision_index {_BY_KEY}) AS d
CROSS JOIN LATERAL (
    SELECT signal, value FROM answers
    WHERE experiment = w.experiment AND decision_index = d.decision_index OFFSET 0
) AS a
"""
NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
EVENTS = f"events (experiment, {EVENT_COLUMNS})"
EVENT_TYPES = ("text", "int8", "int8", "text", "text", "int8", "bytea", "bytea", "bytea")
ANSWERS = "answers (experiment, decision_index, signal, value, seq)"
ANSWER_TYPES = ("text", "int8", "text", "float8", "int8")
INSERT_HEAD = f"INSERT INTO heads (experiment, {HEAD_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s)"
UPDATE_HEAD = f"UPDATE heads SET ({HEAD_COLUMNS}) = (%s, %s, %s, %s, %s) WHERE experiment = %s"
# An update without a change is still a durable write; of two concurrent tests one waits for the other.
TEST_WRITE = (
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET LOCAL statement_timeout = '2s'",
    "UPDATE migrations SET name = name WHERE number = 1",
)

DISABLE_TIMEOUTS = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0"
MIGRATIONS = "CREATE TABLE IF NOT EXISTS migrations (number bigint PRIMARY KEY, name text NOT NULL)"
INSERT_MIGRATION = "INSERT INTO migrations VALUES (%s, %s)"
VERSION = "SELECT coalesce(max(number), 0) FROM migrations"

MAX_INSERT_ROWS = 256  # up to here one INSERT in the committing round trip is faster than COPY, which needs two
MAX_CLOCK_RATIO = 1000  # synchronized clocks drift by less than 1 in this many
MAX_ATTEMPTS = 5  # if two processes write the first row of an experiment, one must retry


class PostgresStore(Store):
    """A store on a PostgreSQL server, with a pool of connections for any number of threads.

    Attributes:
        clock: Replaces the server's clock, if it is given.
    """

    def __init__(
        self,
        address: str,
        *,
        read_only: bool = False,
        clock: Callable[[], int] | None = None,
        migrations: Path = FOLDER,
    ) -> None:
        try:
            settings = conninfo_to_dict(address)
        except psycopg.Error as error:
            raise StoreUnavailable(
                ErrorCode.INVALID_ADDRESS, "the store's address is invalid: {error}", error=first_line(error)
            ) from None
        database = safe_repr(settings.get("dbname", ""))
        self._where = f"PostgreSQL at {settings.get('host', 'localhost')}, database {database}"  # without the password
        self._address = make_conninfo("", **{**DEFAULTS, **settings})
        self.clock, self.read_only = clock, read_only
        self._idle: list[Connection] = []
        self._closed = False
        self._lead_turn = threading.Lock()
        self._candidate: Connection | None = None  # the connection that has or tries to get the learner's lock
        self._is_leader = False
        self._clock_offset = 0  # the server's clock minus this machine's, in microseconds
        self._clock_checked_at = 0  # when the offset was last updated
        try:
            with self._errors("opened"):
                self._check_dedicated()
                self._migrate(migrations)
        except BaseException:
            self.close()
            raise

    def append(self, requests: Sequence[AppendRequest]) -> list[AppendResult]:
        """Append all rows that can be appended in one durable transaction; return one result for each request."""
        with self._errors("written"):
            for left in reversed(range(MAX_ATTEMPTS)):
                try:
                    with self._lend() as connection:
                        return self._append(connection, requests)
                except UniqueViolation:
                    if not left:
                        raise
        raise AssertionError  # unreachable: the last attempt returns or raises

    def test_write(self) -> None:
        """Test a durable write with an update that changes nothing."""
        self._change(*((sql, ()) for sql in TEST_WRITE))

    def try_lead(self) -> bool:
        """Become or stay the leading learner; False also if the server cannot be reached.

        The lock belongs to a connection of its own: when that ends for any reason, another server can get it.
        """
        with self._lead_turn:
            if self._closed or self.read_only:
                return False
            try:
                self._candidate = self._candidate or self._connect()
                (self._is_leader,) = self._candidate.execute(
                    CHECK_ALIVE if self._is_leader else TRY_LEAD
                ).fetchone() or (False,)
            except psycopg.Error:
                self._resign()
            return self._is_leader

    def now(self) -> int:
        """Return the server's clock: its time at the start, plus the elapsed time."""
        return self.clock() if self.clock is not None else wall_clock() + self._clock_offset

    def close(self) -> None:
        """Close idle connections, and those in use when they return; release the learner's lock."""
        self._closed = True
        self._close_idle()
        with self._lead_turn:
            self._resign()

    def _resign(self) -> None:
        close_quietly(self._candidate)
        self._candidate, self._is_leader = None, False

    def _append(self, connection: Connection, requests: Sequence[AppendRequest]) -> list[AppendResult]:
        state, server_time = lock_and_read(connection, requests)
        self._follow_clock(server_time)
        existing = set(state.heads)
        state.heads.update({name: LogHead() for name in get_touched_experiments(requests) - existing})
        batch = resolve_batch(requests, state, self.now())
        write_batch(connection, batch, existing)
        return batch.results

    def _follow_clock(self, server_time: int) -> None:
        """Follow the server's clock by at most 1/1000 of the elapsed time, so that a jump closes no window early."""
        local_time = wall_clock()
        passed, self._clock_checked_at = local_time - self._clock_checked_at, local_time
        max_step = passed // MAX_CLOCK_RATIO + 1
        self._clock_offset += min(max(server_time - local_time - self._clock_offset, -max_step), max_step)

    def _all(self, query: str, *values: Any) -> list[Any]:
        def read() -> list[Any]:
            with self._lend() as connection:
                return connection.execute(query.replace("?", "%s").encode(), values).fetchall()

        with self._errors("read"):
            try:
                return read()
            except psycopg.OperationalError:  # the connection was to a server that is gone; a new one may work
                return read()

    def _change(self, *statements: Statement) -> None:
        with self._errors("written"), self._lend() as connection, connection.transaction():
            for sql, values in statements:
                connection.execute(sql.replace("?", "%s").encode(), values)

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Raise every error of PostgreSQL as StoreUnavailable."""
        problem = "is closed" if self._closed else "is open for reading only"
        if self._closed or (what == "written" and self.read_only):
            raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, "{where} {problem}", where=self._where, problem=problem)
        try:
            yield
        except psycopg.Error as error:
            raise StoreUnavailable(
                ErrorCode.STORE_UNAVAILABLE,
                "{where}, cannot be {what}: {error}",
                where=self._where,
                what=what,
                error=first_line(error),
            ) from None

    @contextmanager
    def _lend(self) -> Iterator[Connection]:
        """Lend a connection; after an error it is closed, and so are the idle ones."""
        connection: Connection | None = None
        while connection is None and self._idle:
            with suppress(IndexError):
                connection = self._idle.pop()
            if connection is not None and not is_alive(connection):
                close_quietly(connection)
                connection = None
        connection = connection or self._connect()
        try:
            yield connection
        except BaseException:
            close_quietly(connection)
            self._close_idle()
            raise
        self._idle.append(connection)
        if self._closed:
            self._close_idle()

    def _connect(self) -> Connection:
        """Return a new connection in autocommit mode."""
        connection = psycopg.connect(self._address, autocommit=True)
        try:
            connection.execute((SETTINGS + (READ_ONLY if self.read_only else "")).encode())
            connection.execute(ENSURE_DURABLE)
        except BaseException:
            close_quietly(connection)
            raise
        return connection

    def _close_idle(self) -> None:
        with suppress(IndexError):
            while True:
                close_quietly(self._idle.pop())

    def _check_dedicated(self) -> None:
        """Reject a server that shares a session between connections."""
        with self._lend() as first, self._lend() as second:
            for connection, mark in ((first, "first"), (second, "second")):
                connection.execute(SET_SESSION_MARK, (mark,))
            if first.execute(GET_SESSION_MARK).fetchone() != ("first",):
                raise StoreUnavailable(
                    ErrorCode.STORE_UNAVAILABLE,
                    "{where}, lets connections share a session, as PgBouncer does with pool_mode = "
                    "transaction; a server needs its own sessions, so use pool_mode = session or no pooler",
                    where=self._where,
                )

    def _migrate(self, folder: Path) -> None:
        """Apply migrations; of several servers one does, and the others wait."""
        steps = read_migrations(folder)
        with self._lend() as connection:
            if self.read_only:
                (version,) = connection.execute(VERSION).fetchone() or (0,)
                get_pending_migrations(steps, version, self._where, read_only=True)
            else:
                with connection.transaction():
                    connection.execute(DISABLE_TIMEOUTS)
                    connection.execute(LOCK_MIGRATIONS)
                    connection.execute(MIGRATIONS)
                    (version,) = connection.execute(VERSION).fetchone() or (0,)
                    for step in get_pending_migrations(steps, version, self._where, read_only=False):
                        connection.execute(to_postgres_sql(step.sql).encode())
                        connection.execute(INSERT_MIGRATION, (step.number, step.name))
            (server_time,) = connection.execute(NOW).fetchone() or (0,)
            self._clock_checked_at = wall_clock()
            self._clock_offset = server_time - self._clock_checked_at


def lock_and_read(connection: Connection, requests: Sequence[AppendRequest]) -> tuple[StoreState, int]:
    """Begin a transaction, lock the heads, and return the state that a batch needs and the time."""
    has_global, names = has_global_request(requests), sorted(get_touched_experiments(requests) - {GLOBAL})
    wanted, decisions = transpose(get_wanted_rows(requests)), transpose(sorted(get_outcome_decisions(requests)))
    with connection.pipeline():
        connection.execute(BEGIN)
        connection.execute(LOCK_EXCLUSIVE if has_global else LOCK_SHARED)
        global_head = connection.execute(SELECT_GLOBAL_HEAD)
        ends = connection.execute(SELECT_LOG_ENDS) if has_global else ()  # the exclusive lock: nobody else writes
        heads = connection.execute(SELECT_HEADS, (names,))
        rows = connection.execute(SELECT_EXISTING_ROWS, wanted, binary=True)
        answers = connection.execute(SELECT_EXISTING_ANSWERS, decisions, binary=True)
        now = connection.execute(NOW)
    state = StoreState({name: LogHead(*head) for name, *head in [*global_head, *heads]}, ends=dict(ends))
    state.add(rows, answers)
    (server_time,) = now.fetchone() or (0,)
    return state, server_time


def write_batch(connection: Connection, batch: BatchResult, existing: set[str]) -> None:
    """Write a resolved batch and commit."""
    tables = ((EVENTS, EVENT_TYPES, batch.rows), (ANSWERS, ANSWER_TYPES, batch.answers))
    is_small = len(batch.rows) + len(batch.answers) <= MAX_INSERT_ROWS
    for table, types, rows in () if is_small else tables:
        with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT binary)".encode()) as into:
            into.set_types(types)
            for row in rows:
                into.write_row(row)
    with connection.pipeline():
        for table, types, rows in tables if is_small else ():
            if rows:  # each column is an array
                columns = ", ".join(f"%b::{kind}[]" for kind in types)
                values = list(map(list, zip(*rows, strict=True)))
                connection.execute(f"INSERT INTO {table} SELECT * FROM unnest({columns})".encode(), values)
        for name, head in batch.heads.items():
            if name in existing:
                connection.execute(UPDATE_HEAD, (*head, name))
            else:
                connection.execute(INSERT_HEAD, (name, *head))
        connection.execute("COMMIT")


def transpose(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the three columns of row keys; works for no rows."""
    return [[row[column] for row in rows] for column in range(3)]


def is_alive(connection: Connection) -> bool:
    """Return whether an idle connection is alive; a server sends something only when it closes it."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


def close_quietly(connection: Connection | None) -> None:
    """Close a connection in any state; the server rolls back what was not committed."""
    if connection is not None:
        with suppress(psycopg.Error):
            connection.close()


def first_line(error: BaseException) -> str:
    """Return the first line of an error."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
