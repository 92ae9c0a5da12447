"""A store in PostgreSQL: any number of servers write, one of them learns.

The connections, and what they are asked for; transactions, seals and terms have files of their own.
"""

import logging
import select
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import DeadlockDetected, UniqueViolation

from stagewise.problem.errors import ErrorCode
from stagewise.problem.formatting import safe_repr
from stagewise.server.event_log import (
    GLOBAL,
    TERM_BITS,
    AppendRequest,
    AppendResult,
    Event,
    Seal,
    StoredSnapshot,
    WriterChain,
)
from stagewise.server.store.append_batch import get_wanted_rows, resolve_batch
from stagewise.server.store.base import Statement, Store, StoreUnavailable, wall_clock
from stagewise.server.store.migrate import FOLDER, get_pending_migrations, read_migrations, to_postgres_sql
from stagewise.server.store.postgres_transactions import (
    CREATE_TERMS,
    NOW,
    Connection,
    Sealer,
    Terms,
    begin_and_read,
    to_format,
    write_batch,
)

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
# Commits must be on disk before they are acknowledged (docs/decisions/0048). Stricter settings stay.
ENSURE_DURABLE = """
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local')
"""
SELECT_DURABLE = "SELECT current_setting('synchronous_commit'), current_setting('fsync')"
# A pooler may share a server session between connections: the learner's lock and the settings would then belong to any.
SET_SESSION_MARK = "SELECT set_config('stagewise.session', %s, false)"
GET_SESSION_MARK = "SELECT current_setting('stagewise.session')"

# Advisory locks: a number for the purpose, and the schema, so that two stores in one database do not conflict.
TRY_LEAD = "SELECT pg_try_advisory_lock(7301, hashtext(current_schema()))"
TRY_MAINTAIN = "SELECT pg_try_advisory_lock(7304, hashtext(current_schema()))"
CHECK_ALIVE = "SELECT true"  # the lock lasts as long as its connection
LOCK_MIGRATIONS = "SELECT pg_advisory_xact_lock(7302, hashtext(current_schema()))"
CREATE_NUMBERS = "CREATE SEQUENCE IF NOT EXISTS numbers CACHE 1"
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

VACUUM = "VACUUM user_keys, checkpoints, snapshots"
DISABLE_TIMEOUTS = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0"
MIGRATIONS = "CREATE TABLE IF NOT EXISTS migrations (number bigint PRIMARY KEY, name text NOT NULL)"
INSERT_MIGRATION = "INSERT INTO migrations VALUES (%s, %s)"
VERSION = "SELECT coalesce(max(number), 0) FROM migrations"

log = logging.getLogger("stagewise.server")

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
        self._closed = self._is_open = False
        self._lead_turn = threading.Lock()
        self._candidate: Connection | None = None  # the connection that has or tries to get the learner's lock
        self._is_leader = False
        self._sealer, self._terms = Sealer(), Terms()
        self._clock_offset = 0  # the server's clock minus this machine's, in microseconds
        self._clock_checked_at = 0  # when the offset was last updated
        try:
            with self._errors("opened"):
                self._check_dedicated()
                self._migrate(migrations)
                self._is_open = not read_only
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
        """Seal committed rows that no seal has; of several processes that try, one does."""
        with self._errors("written"), self._lend() as session:
            return self._sealer.seal(session.connection, self.now(), self._terms)

    def last_seal(self) -> Seal:
        """Return the last seal; all zero if there is none."""
        self._terms.last_seal = seal = super().last_seal()
        return seal

    def get_latest_snapshot(
        self, experiment: str, problem: int, after: int = -1, *, with_learner_state: bool = False
    ) -> StoredSnapshot | None:
        """Return the newest snapshot after row `after`; note the last seal, so that its loss is found."""
        while True:
            term, query = self._terms.term, (experiment, problem, after)
            found = super().get_latest_snapshot(*query, with_learner_state=with_learner_state)
            if found is not None:
                self.last_seal()
            if term == self._terms.term:
                return found

    def begin_term(self) -> None:
        """Numbers of the next term follow, in every process that connects from now on."""
        with self._errors("written"), self._lend() as session:
            self._terms.begin(session.connection)

    def continue_numbers(self) -> None:
        """Draw numbers above all that exist from now on."""
        self._change((CONTINUE_NUMBERS, ()))

    def compact(self) -> None:
        """Free what may hold secrets now; the space of other rows is freed by autovacuum."""
        with self._errors("written"), self._lend() as session:
            session.connection.execute(VACUUM)

    @contextmanager
    def maintaining(self) -> Iterator[Callable[..., None]]:
        """Be the only one who makes checkpoints, in all processes, for as long as a connection of its own lasts.

        Checkpoints are written with this connection: who has lost it writes none.
        """
        with self._errors("written"):
            connection = self._connect()

        def change(*statements: Statement) -> None:
            with self._errors("written"), connection.transaction():
                for sql, values in statements:
                    connection.execute(to_format(sql), values)

        try:
            with self._errors("written"):
                (is_free,) = connection.execute(TRY_MAINTAIN).fetchone() or (False,)
            self._check_maintenance(is_free=is_free)
            yield change
        finally:
            close_quietly(connection)

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
        state.chain = self._renew_chain(state.chain, state.controls.get(GLOBAL, 0))
        batch = resolve_batch(requests, state, self.now())
        write_batch(session.connection, batch)
        session.chain = state.chain
        if batch.rows:
            self._terms.last_row = batch.rows[-1][1].number, state.chain.mac
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
            template = "{where}, cannot be {what}: {error}"
            data = {"where": self._where, "what": what, "error": first_line(error)}
            raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, template, **data) from None

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
            self._ensure_durable(connection)
            if self._is_open:
                self._follow_term(connection)
        except BaseException:
            close_quietly(connection)
            raise
        return connection

    def _ensure_durable(self, connection: Connection) -> None:
        """Have commits acknowledged once they are on disk; refuse a server that does not take this setting."""
        connection.execute(ENSURE_DURABLE)
        commit, flush = connection.execute(SELECT_DURABLE).fetchone() or ("", "")
        if commit in ("off", "local"):
            template = (
                "{where}: synchronous_commit is {setting} and cannot be set to on for a session, so a commit is "
                "acknowledged before it is safe; set it to on for this database"
            )
            raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, template, where=self._where, setting=safe_repr(commit))
        if flush == "off" and not self._is_open:
            log.warning("%s, runs with fsync = off: a crash of its machine can lose acknowledged rows", self._where)

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
                template = (
                    "{where}, lets connections share a session, as PgBouncer does with pool_mode = "
                    "transaction; a server needs its own sessions, so use pool_mode = session or no pooler"
                )
                raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, template, where=self._where)

    def _check_numbers(self, connection: Connection) -> None:
        """Reject a sequence that hands out numbers in blocks: then a higher number may be drawn before a lower one."""
        (cache,) = connection.execute(SELECT_CACHE).fetchone() or (0,)
        if cache != 1:
            template = (
                "{where}: the sequence numbers has CACHE {cache}, so numbers are not in the order in which they are "
                "drawn; run ALTER SEQUENCE numbers CACHE 1"
            )
            raise StoreUnavailable(ErrorCode.STORE_CORRUPT, template, where=self._where, cache=cache)

    def _follow_term(self, connection: Connection) -> None:
        """Begin a new term if another machine took over; what was learned of rows that are gone does not count."""
        if self._terms.follow(connection):
            self.floor = self._terms.term << TERM_BITS
            self.losses += 1

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
                self._follow_term(connection)
            (server_time,) = connection.execute(NOW).fetchone() or (0,)
            self._clock_checked_at = wall_clock()
            self._clock_offset = server_time - self._clock_checked_at


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
    return str(error).strip().partition("\n")[0] or type(error).__name__
