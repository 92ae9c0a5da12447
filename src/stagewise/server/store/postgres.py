"""A store in PostgreSQL: any number of servers write, one of them learns.

A batch takes two round trips: read what it needs and draw its numbers; write and commit. Batches do not wait for each
other, except for the same id, for the same decision's outcomes, and for a change of controls, which is alone.
"""

import select
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import DeadlockDetected, UniqueViolation

from stagewise.problem.errors import ErrorCode
from stagewise.problem.formatting import safe_repr
from stagewise.server.event_log import CONTROL, GLOBAL, PROBLEM, AppendRequest, AppendResult, Event, WriterChain
from stagewise.server.seals import MAX_SEAL_ROWS, TERM_BITS, Seal, SealPart, build_seal
from stagewise.server.store.append_batch import (
    BatchResult,
    RowKey,
    StoreState,
    get_offline_logs,
    get_outcome_decisions,
    get_touched_experiments,
    get_wanted_rows,
    is_change,
    resolve_batch,
)
from stagewise.server.store.base import (
    EVENT_COLUMNS,
    INSERT_PART,
    INSERT_SEAL,
    IS_RARE,
    PART_COLUMNS,
    SELECT_LAST_SEAL,
    SELECT_LATEST,
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
# A change of controls waits for all batches in progress, and new batches wait for it. This queue is fair.
LOCK_EXCLUSIVE = "SELECT pg_advisory_xact_lock(7303, hashtext(current_schema()))"
LOCK_SHARED = "SELECT pg_advisory_xact_lock_shared(7303, hashtext(current_schema()))"

BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
# A transaction takes its id before its numbers: once all older transactions are over, a missing number is a gap.
TAKE_ID = "SELECT pg_current_xact_id()::text::bigint"
SELECT_CONTROLS = f"""
SELECT w.experiment, (SELECT max(number) FROM events WHERE experiment = w.experiment AND kind = w.kind AND {IS_RARE})
FROM unnest(%s::text[], %s::text[]) AS w (experiment, kind)
"""
SELECT_DECIDED = """
SELECT w.experiment FROM unnest(%s::text[]) AS w (experiment)
WHERE EXISTS (SELECT FROM events WHERE experiment = w.experiment AND kind = 'decision')
OR EXISTS (SELECT FROM checkpoints WHERE experiment = w.experiment)
"""
# One index lookup for each wanted row: the planner may choose worse plans before statistics are collected.
_KEYS = "unnest(%s::text[], %s::text[], %s::text[]) AS w (experiment, kind, key) CROSS JOIN LATERAL"
_BY_KEY = "FROM events WHERE experiment = w.experiment AND kind = w.kind AND key = w.key LIMIT 1"
SELECT_EXISTING_ROWS = f"SELECT e.* FROM {_KEYS} (SELECT {EVENT_COLUMNS}, experiment {_BY_KEY}) AS e"
# Outcomes of one decision follow each other, so that each sees the answers of those before it.
LOCK_DECISIONS = f"""
SELECT number FROM events WHERE number = ANY(ARRAY(SELECT d.number FROM {_KEYS} (SELECT number {_BY_KEY}) AS d))
FOR NO KEY UPDATE
"""
SELECT_EXISTING_ANSWERS = f"""
SELECT d.number, a.signal, a.value FROM {_KEYS} (SELECT number {_BY_KEY}) AS d
CROSS JOIN LATERAL (SELECT signal, value FROM answers WHERE decision = d.number OFFSET 0) AS a
"""
DRAW_NUMBERS = "SELECT nextval('numbers') FROM generate_series(1, %s)"
NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
EVENTS = f"events ({EVENT_COLUMNS}, experiment)"
EVENT_TYPES = ("int8", "int8", "text", "text", "int8", "bytea", "bytea", "bytea", "int8", "text", "int8", "text")
ANSWERS = "answers (decision, signal, value, number)"
ANSWER_TYPES = ("int8", "text", "float8", "int8")

SELECT_UNSEALED_ROWS = f"""
SELECT * FROM (
    (SELECT {EVENT_COLUMNS}, experiment FROM events WHERE number = ANY(%s))
    UNION ALL (SELECT {EVENT_COLUMNS}, experiment FROM events WHERE number > %s ORDER BY number LIMIT %s)
) AS e ORDER BY number
"""
SELECT_ENDS = f"""
SELECT p.* FROM unnest(%s::text[]) AS w (experiment) CROSS JOIN LATERAL (
    SELECT {PART_COLUMNS} FROM seal_parts WHERE experiment = w.experiment ORDER BY last DESC LIMIT 1
) AS p
"""
OLDEST_ID = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
CREATE_NUMBERS = "CREATE SEQUENCE IF NOT EXISTS numbers CACHE 1"
CREATE_TERMS = "CREATE TABLE IF NOT EXISTS terms (term bigint PRIMARY KEY, timeline bigint NOT NULL)"
LAST_TERM = "SELECT term, timeline FROM terms ORDER BY term DESC LIMIT 1"
INSERT_TERM = "INSERT INTO terms VALUES (%s, %s)"
BEGIN_TERM = "SELECT setval('numbers', greatest((SELECT last_value FROM numbers), %s::bigint, 1))"
TIMELINE = "SELECT ('x' || lpad(left(pg_walfile_name(pg_current_wal_lsn()), 8), 16, '0'))::bit(64)::bigint"
SEAL_HASH = "SELECT hash FROM seals WHERE seal = %s"
ROW_MAC = "SELECT mac FROM events WHERE number = %s"
SELECT_CACHE = "SELECT cache_size FROM pg_sequences WHERE schemaname = current_schema() AND sequencename = 'numbers'"
CONTINUE_NUMBERS = """
SELECT setval('numbers', greatest((SELECT last_value FROM numbers), (SELECT coalesce(max(number), 1) FROM events)))
"""
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
MAX_ATTEMPTS = 5  # if two processes write the same id, one must retry
MAX_TRANSACTIONS = 4  # of one process in flight; most of their time is the commit


class Session:
    """A connection, and the chain of what was written with it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.chain: WriterChain | None = None


class PostgresStore(Store):
    """A store on a PostgreSQL server, with a pool of connections for any number of threads.

    Attributes:
        clock: Replaces the server's clock, if it is given.
    """

    max_transactions = MAX_TRANSACTIONS

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
        self._idle: list[Session] = []
        self._closed = False
        self._lead_turn = threading.Lock()
        self._candidate: Connection | None = None  # the connection that has or tries to get the learner's lock
        self._is_leader = False
        self._fence = 0, 0  # a transaction's id, and a number that was visible before it was taken
        self._term = self._timeline = 0
        self._timeline_turn = threading.Lock()
        self._last_seen_seal, self._last_written = Seal(), (0, b"")
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
            secret = self._read_writers_secret()
            for left in reversed(range(MAX_ATTEMPTS)):
                try:
                    with self._lend() as session:
                        return self._append(session, requests, secret, is_again=left < MAX_ATTEMPTS - 1)
                except (UniqueViolation, DeadlockDetected):  # nothing was written
                    if not left:
                        raise
        raise AssertionError  # unreachable: the last attempt returns or raises

    def seal(self) -> dict[str, list[Event]]:
        """Seal committed rows that no seal has; of several processes that try, one does.

        One statement reads them, so they are what was committed at one moment. Numbers that are missing stay open until
        every transaction is over that may have drawn them; learning does not wait for that.
        """
        with self._errors("written"), self._lend() as session:
            connection, (last_id, known) = session.connection, self._fence
            with connection.pipeline():
                last = connection.execute(to_format(SELECT_LAST_SEAL), binary=True)
                oldest = connection.execute(OLDEST_ID)
            before, (oldest_id,) = Seal(*(last.fetchone() or ())), oldest.fetchone() or (0,)
            self._last_seen_seal = before
            values = before.open_numbers, before.high, MAX_SEAL_ROWS
            found = connection.execute(SELECT_UNSEALED_ROWS, values, binary=True).fetchall()
            if not found:
                return {}
            rows = [(row[-1], Event(*row[:-1])) for row in found]
            names = sorted({experiment for experiment, _ in rows})
            ends = {row[0]: SealPart(*row) for row in connection.execute(SELECT_ENDS, (names,), binary=True)}
            gaps = {number for number in before.open_numbers if number <= known} if oldest_id > last_id else set()
            seal, parts = build_seal(before, rows, ends, self.now(), self._term, gaps)
            try:
                with connection.pipeline(), connection.transaction():
                    connection.execute(to_format(INSERT_SEAL), seal)
                    for part in parts:
                        connection.execute(to_format(INSERT_PART), part)
            except UniqueViolation:  # another process leads
                return {}
            if seal.open and oldest_id > last_id:
                (new_id,) = connection.execute(TAKE_ID).fetchone() or (0,)
                self._fence = new_id, seal.high
        starts = {part.experiment: part.first for part in parts}
        sealed: dict[str, list[Event]] = {name: [] for name in names}
        for experiment, event in rows:
            sealed[experiment].append(event._replace(seq=starts[experiment] + len(sealed[experiment])))
        return sealed

    def begin_term(self) -> None:
        """Numbers of the next term follow, in every process that connects from now on."""
        with self._errors("written"), self._lend() as session, session.connection.transaction():
            session.connection.execute(LOCK_EXCLUSIVE)
            (term, timeline) = session.connection.execute(LAST_TERM).fetchone() or (-1, self._timeline)
            session.connection.execute(INSERT_TERM, (term + 1, timeline))
            session.connection.execute(BEGIN_TERM, ((term + 1) << TERM_BITS,))
            self._term = term + 1

    def continue_numbers(self) -> None:
        """Draw numbers above all that exist from now on."""
        self._change((CONTINUE_NUMBERS, ()))

    def compact(self) -> None:
        """PostgreSQL frees the space by itself (autovacuum)."""

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

    def _append(
        self, session: Session, requests: Sequence[AppendRequest], secret: bytes, *, is_again: bool
    ) -> list[AppendResult]:
        chain, wanted = session.chain or WriterChain.begin(secret), get_wanted_rows(requests, generated=is_again)
        state, server_time = begin_and_read(session.connection, requests, wanted, chain)
        self._follow_clock(server_time)
        state.floor = self.floor
        state.chain = self._renew_chain(state.chain, state.controls[GLOBAL])
        batch = resolve_batch(requests, state, self.now())
        write_batch(session.connection, batch)
        session.chain = state.chain
        if batch.rows:
            self._last_written = batch.rows[-1][1].number, state.chain.mac
        self._see(max([state.seen, *(event.number for _, event in batch.rows)]))
        return batch.results

    def _follow_clock(self, server_time: int) -> None:
        """Follow the server's clock by at most 1/1000 of the elapsed time, so that a jump closes no window early."""
        local_time = wall_clock()
        passed, self._clock_checked_at = local_time - self._clock_checked_at, local_time
        max_step = passed // MAX_CLOCK_RATIO + 1
        self._clock_offset += min(max(server_time - local_time - self._clock_offset, -max_step), max_step)

    def _all(self, query: str, *values: Any) -> list[Any]:
        def read() -> list[Any]:
            with self._lend() as session:
                return session.connection.execute(to_format(query), values).fetchall()

        with self._errors("read"):
            try:
                return read()
            except psycopg.OperationalError:  # the connection was to a server that is gone; a new one may work
                return read()

    def _change(self, *statements: Statement) -> None:
        with self._errors("written"), self._lend() as session, session.connection.transaction():
            for sql, values in statements:
                session.connection.execute(to_format(sql), values)

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
    def _lend(self) -> Iterator[Session]:
        """Lend a session; after an error it is closed, and so are the idle ones."""
        session: Session | None = None
        while session is None and self._idle:
            with suppress(IndexError):
                session = self._idle.pop()
            if session is not None and not is_alive(session.connection):
                close_quietly(session.connection)
                session = None
        session = session or Session(self._connect())
        try:
            yield session
        except BaseException:
            close_quietly(session.connection)
            self._close_idle()
            raise
        self._idle.append(session)
        if self._closed:
            self._close_idle()

    def _connect(self) -> Connection:
        """Return a new connection in autocommit mode."""
        connection = psycopg.connect(self._address, autocommit=True)
        try:
            connection.execute((SETTINGS + (READ_ONLY if self.read_only else "")).encode())
            connection.execute(ENSURE_DURABLE)
            if self._timeline:
                self._follow_timeline(connection)
        except BaseException:
            close_quietly(connection)
            raise
        return connection

    def _close_idle(self) -> None:
        with suppress(IndexError):
            while True:
                close_quietly(self._idle.pop().connection)

    def _check_dedicated(self) -> None:
        """Reject a server that shares a session between connections."""
        with self._lend() as first, self._lend() as second:
            for session, mark in ((first, "first"), (second, "second")):
                session.connection.execute(SET_SESSION_MARK, (mark,))
            if first.connection.execute(GET_SESSION_MARK).fetchone() != ("first",):
                raise StoreUnavailable(
                    ErrorCode.STORE_UNAVAILABLE,
                    "{where}, lets connections share a session, as PgBouncer does with pool_mode = "
                    "transaction; a server needs its own sessions, so use pool_mode = session or no pooler",
                    where=self._where,
                )

    def _check_numbers(self, connection: Connection) -> None:
        """Reject a sequence that hands out numbers in blocks: then a higher number may be drawn before a lower one."""
        (cache,) = connection.execute(SELECT_CACHE).fetchone() or (0,)
        if cache != 1:
            raise StoreUnavailable(
                ErrorCode.STORE_CORRUPT,
                "{where}: the sequence numbers has CACHE {cache}, so numbers are not in the order in which they are "
                "drawn; run ALTER SEQUENCE numbers CACHE 1",
                where=self._where,
                cache=cache,
            )

    def _follow_timeline(self, connection: Connection) -> None:
        """Begin a new term if another machine took over: its numbers are above all that the one before may have drawn.

        If rows are gone that this process has read or written, what was learned of them is nothing that counts.
        """
        with self._timeline_turn:
            (timeline,) = connection.execute(TIMELINE).fetchone() or (0,)
            if timeline == self._timeline:
                return
            term, last = connection.execute(LAST_TERM).fetchone() or (-1, None)
            if last != timeline:
                with connection.transaction():
                    connection.execute(LOCK_EXCLUSIVE)
                    term, last = connection.execute(LAST_TERM).fetchone() or (-1, None)
                    if last != timeline:
                        term += 1
                        connection.execute(INSERT_TERM, (term, timeline))
                        connection.execute(BEGIN_TERM, (term << TERM_BITS,))
            seal, (number, mac) = self._last_seen_seal, self._last_written
            if self._timeline and (
                (seal.seal and connection.execute(SEAL_HASH, (seal.seal,)).fetchone() != (seal.hash,))
                or (number and connection.execute(ROW_MAC, (number,)).fetchone() != (mac,))
            ):
                self.floor = term << TERM_BITS
                self.losses += 1
            self._timeline, self._term = timeline, term

    def _migrate(self, folder: Path) -> None:
        """Apply migrations; of several servers one does, and the others wait."""
        steps = read_migrations(folder)
        with self._lend() as session:
            connection = session.connection
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
                    connection.execute(CREATE_NUMBERS)
                    connection.execute(CREATE_TERMS)
                self._check_numbers(connection)
                self._follow_timeline(connection)
            (server_time,) = connection.execute(NOW).fetchone() or (0,)
            self._clock_checked_at = wall_clock()
            self._clock_offset = server_time - self._clock_checked_at


def begin_and_read(
    connection: Connection, requests: Sequence[AppendRequest], wanted: Sequence[RowKey], chain: WriterChain
) -> tuple[StoreState, int]:
    """Begin a transaction, read the state that a batch needs, then draw its numbers; return the state and the time."""
    names = [(name, kind) for name in get_touched_experiments(requests) for kind in (CONTROL, PROBLEM)]
    logs = get_offline_logs(requests)
    decisions = transpose(sorted(get_outcome_decisions(requests)))
    rows: Iterable[Any] = ()
    answers: Iterable[Any] = ()
    decided: Iterable[Any] = ()
    with connection.pipeline():
        connection.execute(BEGIN)
        connection.execute(TAKE_ID)
        connection.execute(LOCK_EXCLUSIVE if is_change(requests) else LOCK_SHARED)
        controls = connection.execute(SELECT_CONTROLS, [list(column) for column in zip(*names, strict=True)])
        if logs:
            decided = connection.execute(SELECT_DECIDED, (sorted(logs),))
        if wanted:
            rows = connection.execute(SELECT_EXISTING_ROWS, transpose(wanted), binary=True)
        if decisions[0]:
            connection.execute(LOCK_DECISIONS, decisions)
            answers = connection.execute(SELECT_EXISTING_ANSWERS, decisions, binary=True)
        latest = connection.execute(SELECT_LATEST)
        numbers = connection.execute(DRAW_NUMBERS, (len(requests),))
        now = connection.execute(NOW)
    seen, _ = latest.fetchone() or (0, 0)
    state = StoreState(chain, (number for (number,) in numbers), seen)
    for name, number in controls:
        state.controls[name] = max(state.controls.get(name, 0), number or 0)
    state.decided = {name for (name,) in decided}
    state.add(rows, answers)
    (server_time,) = now.fetchone() or (0,)
    return state, server_time


def write_batch(connection: Connection, batch: BatchResult) -> None:
    """Write a resolved batch, in the order of ids so that batches do not deadlock, and commit."""
    rows, answers = sorted(batch.records, key=lambda row: (row[-1], row[2], row[3])), sorted(batch.answers)
    tables = ((EVENTS, EVENT_TYPES, rows), (ANSWERS, ANSWER_TYPES, answers))
    is_small = len(rows) + len(answers) <= MAX_INSERT_ROWS
    for table, types, records in () if is_small else tables:
        with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT binary)".encode()) as into:
            into.set_types(types)
            for record in records:
                into.write_row(record)
    with connection.pipeline():
        for table, types, records in tables if is_small else ():
            if records:  # each column is an array
                columns = ", ".join(f"%b::{kind}[]" for kind in types)
                values = list(map(list, zip(*records, strict=True)))
                connection.execute(f"INSERT INTO {table} SELECT * FROM unnest({columns})".encode(), values)
        connection.execute("COMMIT")


def to_format(sql: str) -> bytes:
    """Return SQL with the parameters of psycopg."""
    return sql.replace("?", "%s").encode()


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
