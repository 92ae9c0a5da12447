"""Connections to PostgreSQL: opened on demand, reused, and dropped after errors."""

import select
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from stagewise.problem.errors import ErrorCode
from stagewise.problem.formatting import safe_repr
from stagewise.server.store.base import StoreUnavailable

Connection = psycopg.Connection[tuple[Any, ...]]

# Timeouts: no transaction holds a log for longer, and a lost machine is noticed within seconds.
SETTINGS = """
SET client_min_messages = warning; SET timezone = 'UTC';
SET lock_timeout = '10s'; SET statement_timeout = '60s'; SET idle_in_transaction_session_timeout = '10s';
SET tcp_keepalives_idle = 2; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 2;
"""
# Every query reads few rows by an index; a plan cached for an empty table may be slow.
PLANNER_SETTINGS = """
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET plan_cache_mode = force_custom_plan;
"""
# Commits must be on disk before they are acknowledged. Stricter settings stay.
ENSURE_DURABLE = """
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local')
"""
# A pooler may share a server session between connections: the learner's lock and these settings
# would then belong to any of them.
SET_SESSION_MARK = "SELECT set_config('stagewise.session', %s, false)"
GET_SESSION_MARK = "SELECT current_setting('stagewise.session')"
READ_ONLY = "SET default_transaction_read_only = on"
DEFAULTS: dict[str, str | int | None] = {  # unless the address says otherwise
    "application_name": "stagewise",
    "connect_timeout": 5,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 2,
    "tcp_user_timeout": 5000,
}


class ConnectionPool:
    """The connections of one process, for any number of threads.

    Attributes:
        where: Server and database for messages, without the password.
    """

    def __init__(self, address: str, *, read_only: bool) -> None:
        try:
            settings = conninfo_to_dict(address)
        except psycopg.Error as error:
            raise StoreUnavailable(
                ErrorCode.INVALID_ADDRESS, "the store's address is invalid: {error}", error=first_line(error)
            ) from None
        self.where = (
            f"PostgreSQL at {settings.get('host', 'localhost')}, database {safe_repr(settings.get('dbname', ''))},"
        )
        self.address, self.read_only = make_conninfo("", **{**DEFAULTS, **settings}), read_only
        self._idle: list[Connection] = []
        self.closed = False

    @contextmanager
    def errors(self, what: str) -> Iterator[None]:
        """Raise every error of PostgreSQL as StoreUnavailable."""
        if self.closed:
            raise StoreUnavailable(
                ErrorCode.STORE_UNAVAILABLE, "{where} is closed; nothing can be {what}", where=self.where, what=what
            )
        if what == "written" and self.read_only:
            raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, "{where} is open for reading only", where=self.where)
        try:
            yield
        except psycopg.Error as error:
            raise StoreUnavailable(
                ErrorCode.STORE_UNAVAILABLE,
                "{where} cannot be {what}: {error}",
                where=self.where,
                what=what,
                error=first_line(error),
            ) from None

    @contextmanager
    def one(self) -> Iterator[Connection]:
        """Lend a connection; after an error it is closed, and so are the idle ones."""
        connection = self._take()
        try:
            yield connection
        except BaseException:
            close_quietly(connection)
            self._forget_idle()
            raise
        if self.closed:
            close_quietly(connection)
        else:
            self._idle.append(connection)

    def check_dedicated(self) -> None:
        """Reject a server that shares a session between connections."""
        with self.errors("opened"), self.one() as first, self.one() as second:
            for connection, mark in ((first, "first"), (second, "second")):
                connection.execute(SET_SESSION_MARK, (mark,))
            if first.execute(GET_SESSION_MARK).fetchone() != ("first",):
                raise StoreUnavailable(
                    ErrorCode.STORE_UNAVAILABLE,
                    "{where} lets connections share a session, as PgBouncer does with pool_mode = "
                    "transaction; a server needs its own sessions, so use pool_mode = session or no pooler",
                    where=self.where,
                )

    def connect(self) -> Connection:
        """Return a new connection in autocommit mode."""
        connection = psycopg.connect(self.address, autocommit=True)
        try:
            connection.execute((SETTINGS + PLANNER_SETTINGS + (READ_ONLY if self.read_only else "")).encode())
            connection.execute(ENSURE_DURABLE)
        except BaseException:
            close_quietly(connection)
            raise
        return connection

    def close(self) -> None:
        """Close idle connections; those in use are closed when they return."""
        self.closed = True
        self._forget_idle()

    def _take(self) -> Connection:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return self.connect()
            if is_alive(connection):
                return connection
            close_quietly(connection)

    def _forget_idle(self) -> None:
        with suppress(IndexError):
            while True:
                close_quietly(self._idle.pop())


def is_alive(connection: Connection) -> bool:
    """Return whether an idle connection is alive; a server sends something only when it closes it."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


def close_quietly(connection: Connection) -> None:
    """Close a connection in any state; the server rolls back what was not committed."""
    with suppress(psycopg.Error):
        connection.close()


def first_line(error: BaseException) -> str:
    """Return the first line of an error."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
