"""Connections to a PostgreSQL server: made when one is needed, kept while they work, forgotten when they do not."""

import select
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from stagewise.problem.words import shown
from stagewise.service.store.store import StoreDown

Connection = psycopg.Connection[tuple[Any, ...]]

# Nobody holds a log for longer than this, and a machine that vanished is noticed in seconds.
SETTINGS = """
SET client_min_messages = warning; SET timezone = 'UTC';
SET lock_timeout = '10s'; SET statement_timeout = '60s'; SET idle_in_transaction_session_timeout = '10s';
SET tcp_keepalives_idle = 2; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 2;
"""
# Every query is for few rows by an index; a plan that was kept from when a table was empty may not say otherwise.
PLANS = """
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET plan_cache_mode = force_custom_plan;
"""
# A server may be told to answer before the disk has it; a desk may not. Stricter settings stay.
DURABLE = """
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local')
"""
# A pooler may give a session of the server to several connections by turns: the learner's lock, and what is set above,
# would then be anybody's.
MARK = "SELECT set_config('stagewise.session', %s, false)"
MARKED = "SELECT current_setting('stagewise.session')"
READ_ONLY = "SET default_transaction_read_only = on"
DEFAULTS: dict[str, str | int | None] = {  # where the address does not say otherwise
    "application_name": "stagewise",
    "connect_timeout": 5,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 2,
    "tcp_user_timeout": 5000,
}


class Sessions:
    """The connections of one process, for any number of threads.

    Attributes:
        where: The server and the database, as a sentence names them: without a password.
    """

    def __init__(self, address: str, *, read_only: bool) -> None:
        try:
            told = conninfo_to_dict(address)
        except psycopg.Error as error:
            raise StoreDown(f"the address of the store cannot be read: {first_line(error)}") from None
        self.where = f"PostgreSQL at {told.get('host', 'localhost')}, database {shown(told.get('dbname', ''))},"
        self.address, self.read_only = make_conninfo("", **{**DEFAULTS, **told}), read_only
        self._idle: list[Connection] = []
        self.closed = False

    @contextmanager
    def errors(self, what: str) -> Iterator[None]:
        """Say every error of the server in a sentence."""
        if self.closed:
            raise StoreDown(f"{self.where} is closed; nothing can be {what}")
        if what == "written" and self.read_only:
            raise StoreDown(f"{self.where} is open for reading only")
        try:
            yield
        except psycopg.Error as error:
            raise StoreDown(f"{self.where} cannot be {what}: {first_line(error)}") from None

    @contextmanager
    def one(self) -> Iterator[Connection]:
        """Lend a connection; after any error it is not used again, and idle ones are not trusted either."""
        connection = self._take()
        try:
            yield connection
        except BaseException:
            forget(connection)
            self._forget_idle()
            raise
        if self.closed:
            forget(connection)
        else:
            self._idle.append(connection)

    def check_own(self) -> None:
        """Refuse a server that does not give every connection a session of its own."""
        with self.errors("opened"), self.one() as first, self.one() as second:
            for connection, mark in ((first, "first"), (second, "second")):
                connection.execute(MARK, (mark,))
            if first.execute(MARKED).fetchone() != ("first",):
                raise StoreDown(
                    f"{self.where} lets connections share a session, as PgBouncer does with pool_mode = transaction; a "
                    "desk needs sessions of its own, for its settings and its lock: pool_mode = session, or no pooler"
                )

    def connect(self) -> Connection:
        """Return a new connection, in which every statement is a transaction of its own."""
        connection = psycopg.connect(self.address, autocommit=True)
        try:
            connection.execute((SETTINGS + PLANS + (READ_ONLY if self.read_only else "")).encode())
            connection.execute(DURABLE)
        except BaseException:
            forget(connection)
            raise
        return connection

    def close(self) -> None:
        """Let go of all that nobody uses; those in use go when they come back."""
        self.closed = True
        self._forget_idle()

    def _take(self) -> Connection:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return self.connect()
            if quiet(connection):
                return connection
            forget(connection)

    def _forget_idle(self) -> None:
        with suppress(IndexError):
            while True:
                forget(self._idle.pop())


def quiet(connection: Connection) -> bool:
    """Say whether an idle connection still stands; a server says something only when it takes its leave."""
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return not waiting.poll(0)


def forget(connection: Connection) -> None:
    """Close a connection, whatever state it is in; what was not committed is rolled back by the server."""
    with suppress(psycopg.Error):
        connection.close()


def first_line(error: BaseException) -> str:
    """Return what the server said, in one line."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
