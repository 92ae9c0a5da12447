"""A store in PostgreSQL: any number of servers write, one of them learns.

A batch takes two round trips: lock the heads and read what the batch needs; write and commit.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg.errors import UniqueViolation

from stagewise.server.event_log import GLOBAL, OUTCOME, AppendRequest, AppendResult, Event, LogHead
from stagewise.server.store.append_batch import (
    BatchResult,
    LogRow,
    StoreState,
    get_touched_experiments,
    get_wanted_rows,
    has_global_request,
    resolve_batch,
)
from stagewise.server.store.base import Store
from stagewise.server.store.connection_pool import Connection, ConnectionPool, close_quietly
from stagewise.server.store.migrate import FOLDER, get_pending_migrations, read_migrations, to_postgres_sql
from stagewise.server.store.queries import SELECT_LOG_ENDS, Statement, wall_clock

# Advisory locks: a number for the purpose, and the schema, so that two stores in one database do not conflict.
_LOCK = "({number}, hashtext(current_schema()))"
TRY_LEAD = f"SELECT pg_try_advisory_lock{_LOCK.format(number=7_301)}"
CHECK_ALIVE = "SELECT true"  # the lock lasts as long as its connection
LOCK_MIGRATIONS = f"SELECT pg_advisory_xact_lock{_LOCK.format(number=7_302)}"
# A global append waits for all batches in progress, and new batches wait for it. This queue is fair;
# the queue for a row is not.
LOCK_EXCLUSIVE = f"SELECT pg_advisory_xact_lock{_LOCK.format(number=7_303)}"
LOCK_SHARED = f"SELECT pg_advisory_xact_lock_shared{_LOCK.format(number=7_303)}"

BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
SELECT_GLOBAL_HEAD = "SELECT experiment, seq, at, decision_count, control, chain FROM heads WHERE experiment = ''"
SELECT_HEADS = """
SELECT experiment, seq, at, decision_count, control, chain FROM heads WHERE experiment = ANY(%s)
ORDER BY experiment FOR UPDATE
"""
# One index lookup for each wanted row: the planner may choose worse plans before statistics are collected.
SELECT_EXISTING_ROWS = """
SELECT w.experiment, e.* FROM unnest(%s::text[], %s::text[], %s::text[]) AS w (experiment, kind, key)
CROSS JOIN LATERAL (
    SELECT seq, at, kind, key, decision_index, body, chain, request_digest FROM events
    WHERE experiment = w.experiment AND kind = w.kind AND key = w.key LIMIT 1
) AS e
"""
SELECT_EXISTING_ANSWERS = """
SELECT w.experiment, d.decision_index, a.signal, a.value FROM unnest(%s::text[], %s::text[]) AS w (experiment, key)
CROSS JOIN LATERAL (
    SELECT decision_index FROM events WHERE experiment = w.experiment AND kind = 'decision' AND key = w.key LIMIT 1
) AS d
CROSS JOIN LATERAL (
    SELECT signal, value FROM answers
    WHERE experiment = w.experiment AND decision_index = d.decision_index OFFSET 0
) AS a
"""
# An update without a change is still a durable write; of two concurrent tests one waits for the other.
TEST_WRITE = (
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET LOCAL statement_timeout = '2s'",
    "UPDATE migrations SET name = name WHERE number = 1",
)
NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

EVENTS = "events (experiment, seq, at, kind, key, decision_index, body, chain, request_digest)"
EVENT_TYPES = ("text", "int8", "int8", "text", "text", "int8", "bytea", "bytea", "bytea")
ANSWERS = "answers (experiment, decision_index, signal, value, seq)"
ANSWER_TYPES = ("text", "int8", "text", "float8", "int8")
INSERT_HEAD = "INSERT INTO heads (experiment, seq, at, decision_count, control, chain) VALUES (%s, %s, %s, %s, %s, %s)"
UPDATE_HEAD = "UPDATE heads SET seq = %s, at = %s, decision_count = %s, control = %s, chain = %s WHERE experiment = %s"

DISABLE_TIMEOUTS = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0"
MIGRATIONS = "CREATE TABLE IF NOT EXISTS migrations (number bigint PRIMARY KEY, name text NOT NULL)"
INSERT_MIGRATION = "INSERT INTO migrations VALUES (%s, %s)"
VERSION = "SELECT coalesce(max(number), 0) FROM migrations"

MAX_INSERT_ROWS = 256  # up to here one INSERT in the committing round trip is faster than COPY, which needs two
MAX_CLOCK_RATIO = 1000  # synchronized clocks drift by less than 1 in this many
MAX_ATTEMPTS = 5  # if two processes write the first row of an experiment, one must retry


class PostgresStore(Store):
    """A store on a PostgreSQL server.

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
        self.clock, self.read_only = clock, read_only
        self._sessions = ConnectionPool(address, read_only=read_only)
        self._lead_turn = threading.Lock()
        self._candidate: Connection | None = None  # the connection that has or tries to get the learner's lock
        self._is_leader = False
        self._clock_offset = 0  # the server's clock minus this machine's, in microseconds
        self._clock_checked_at = 0  # when the offset was last updated
        try:
            self._sessions.check_dedicated()
            self._migrate(migrations)
        except BaseException:
            self.close()
            raise

    def append(self, requests: Sequence[AppendRequest]) -> list[AppendResult]:
        """Append all rows that can be appended in one durable transaction. Raises StoreUnavailable.

        Returns one result for each request. If the connection is lost during the commit, the rows may still be
        written; a retry with the same ids finds out.
        """
        with self._sessions.errors("written"):
            for left in reversed(range(MAX_ATTEMPTS)):
                try:
                    with self._sessions.one() as connection:
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
            if self._sessions.closed or self._sessions.read_only:
                return False
            try:
                if self._candidate is None:
                    self._candidate = self._sessions.connect()
                (is_leader,) = self._candidate.execute(CHECK_ALIVE if self._is_leader else TRY_LEAD).fetchone() or (
                    False,
                )
                self._is_leader = bool(is_leader)
            except psycopg.Error:
                self._resign()
            return self._is_leader

    def now(self) -> int:
        """Return the server's clock: its time at the start, plus the elapsed time."""
        return self.clock() if self.clock is not None else wall_clock() + self._clock_offset

    def close(self) -> None:
        """Close all connections and release the learner's lock."""
        self._sessions.close()
        with self._lead_turn:
            self._resign()

    def _resign(self) -> None:
        if self._candidate is not None:
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

    def _all(self, sql: str, *values: Any) -> list[Any]:
        with self._sessions.errors("read"):
            try:
                return self._read(sql, values)
            except psycopg.OperationalError:  # the connection was to a server that is gone; a new one may work
                return self._read(sql, values)

    def _read(self, sql: str, values: Sequence[Any]) -> list[Any]:
        with self._sessions.one() as connection:
            return connection.execute(sql.replace("?", "%s").encode(), values).fetchall()

    def _change(self, *statements: Statement) -> int:
        with self._sessions.errors("written"), self._sessions.one() as connection, connection.transaction():
            for sql, values in statements:
                changed = connection.execute(sql.replace("?", "%s").encode(), values).rowcount
        return changed

    def _migrate(self, folder: Path) -> None:
        """Apply migrations; of several servers one does, and the others wait."""
        steps, where = read_migrations(folder), self._sessions.where.rstrip(",")
        with self._sessions.errors("opened"), self._sessions.one() as connection:
            if self._sessions.read_only:
                (version,) = connection.execute(VERSION).fetchone() or (0,)
                get_pending_migrations(steps, version, where, read_only=True)
            else:
                with connection.transaction():
                    connection.execute(DISABLE_TIMEOUTS)
                    connection.execute(LOCK_MIGRATIONS)
                    connection.execute(MIGRATIONS)
                    (version,) = connection.execute(VERSION).fetchone() or (0,)
                    for step in get_pending_migrations(steps, version, where, read_only=False):
                        connection.execute(to_postgres_sql(step.sql).encode())
                        connection.execute(INSERT_MIGRATION, (step.number, step.name))
            (server_time,) = connection.execute(NOW).fetchone() or (0,)
            self._clock_checked_at = wall_clock()
            self._clock_offset = server_time - self._clock_checked_at


def lock_and_read(connection: Connection, requests: Sequence[AppendRequest]) -> tuple[StoreState, int]:
    """Begin a transaction, lock the heads, and return the state that a batch needs and the time."""
    names = get_touched_experiments(requests)
    row_keys = sorted(get_wanted_rows(requests))
    decision_keys = sorted(
        {(request.experiment, request.decision_id) for request in requests if request.kind == OUTCOME}
        & {(e, k) for e, _, k in row_keys}
    )
    has_global = has_global_request(requests)
    with connection.pipeline():
        connection.execute(BEGIN)
        connection.execute(LOCK_EXCLUSIVE if has_global else LOCK_SHARED)
        global_head = connection.execute(SELECT_GLOBAL_HEAD)
        ends = connection.execute(SELECT_LOG_ENDS) if has_global else ()  # the exclusive lock: nobody else writes
        heads = connection.execute(SELECT_HEADS, (sorted(names - {GLOBAL}),))
        rows = connection.execute(SELECT_EXISTING_ROWS, transpose(row_keys, 3), binary=True)
        answers = connection.execute(SELECT_EXISTING_ANSWERS, transpose(decision_keys, 2), binary=True)
        now = connection.execute(NOW)
    state = StoreState({name: LogHead(*head) for name, *head in [*global_head, *heads]}, ends=dict(ends))
    for experiment, *fields in rows:
        event = Event(*fields)
        state.rows[experiment, event.kind, event.key] = LogRow(experiment, event)
    for experiment, decision_index, signal, value in answers:
        state.answers.setdefault((experiment, decision_index), {})[signal] = value
    (server_time,) = now.fetchone() or (0,)
    return state, server_time


def write_batch(connection: Connection, batch: BatchResult, existing: set[str]) -> None:
    """Write a resolved batch and commit."""
    events = [(row.experiment, *row.event) for row in batch.rows]
    small = len(events) + len(batch.answers) <= MAX_INSERT_ROWS
    if not small:
        copy_rows(connection, EVENTS, EVENT_TYPES, events)
        copy_rows(connection, ANSWERS, ANSWER_TYPES, batch.answers)
    with connection.pipeline():
        if small:
            insert_rows(connection, EVENTS, EVENT_TYPES, events)
            insert_rows(connection, ANSWERS, ANSWER_TYPES, batch.answers)
        for name, head in batch.heads.items():
            if name in existing:
                connection.execute(UPDATE_HEAD, (*head, name))
            else:
                connection.execute(INSERT_HEAD, (name, *head))
        connection.execute("COMMIT")


def insert_rows(connection: Connection, table: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows with one statement in the open round trip, each column as an array."""
    if rows:
        columns = ", ".join(f"%b::{kind}[]" for kind in types)
        connection.execute(
            f"INSERT INTO {table} SELECT * FROM unnest({columns})".encode(), list(map(list, zip(*rows, strict=True)))
        )


def copy_rows(connection: Connection, table: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Insert many rows with COPY."""
    if rows:
        with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT binary)".encode()) as into:
            into.set_types(types)
            for row in rows:
                into.write_row(row)


def transpose(rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Transpose rows to columns; works for no rows."""
    return [[row[column] for row in rows] for column in range(width)]
