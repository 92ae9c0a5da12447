"""A log in PostgreSQL: any number of desks write it, one of them learns.

A batch is two exchanges with the server: lock the ends of its logs and read what it touches; write, and commit.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg.errors import UniqueViolation

from stagewise.service.records import EVERYWHERE, OUTCOME, Ask, Event, Head, Settled
from stagewise.service.store.migrating import FOLDER, ahead, for_postgres, steps_in
from stagewise.service.store.sessions import Connection, Sessions, forget
from stagewise.service.store.settling import Batch, Held, Row, holds_everywhere, settle, touched, wants
from stagewise.service.store.store import Store
from stagewise.service.store.tables import ENDS, Statement, wall_clock

# Advisory locks: a number for what they are about, and the schema, so that two stores in one database do not meet.
_LOCK = "({number}, hashtext(current_schema()))"
LEAD = f"SELECT pg_try_advisory_lock{_LOCK.format(number=7_301)}"
STILL = "SELECT true"  # the lock ends with its connection, and not before
MIGRATING = f"SELECT pg_advisory_xact_lock{_LOCK.format(number=7_302)}"
# Who writes what holds everywhere waits for all batches under way, and new ones wait for it: that queue is fair,
# which the queue for a row is not.
CONTROLLING = f"SELECT pg_advisory_xact_lock{_LOCK.format(number=7_303)}"
CONTROLLED = f"SELECT pg_advisory_xact_lock_shared{_LOCK.format(number=7_303)}"

BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
HEAD_EVERYWHERE = "SELECT experiment, seq, at, places, control, chain FROM heads WHERE experiment = ''"
HEADS = """
SELECT experiment, seq, at, places, control, chain FROM heads WHERE experiment = ANY(%s) ORDER BY experiment FOR UPDATE
"""
# For each that is wanted, a look into one index: a planner that has not seen these tables grow knows better ways.
HELD_ROWS = """
SELECT w.experiment, e.* FROM unnest(%s::text[], %s::text[], %s::text[]) AS w (experiment, kind, key)
CROSS JOIN LATERAL (
    SELECT seq, at, kind, key, place, body, chain, asked FROM events
    WHERE experiment = w.experiment AND kind = w.kind AND key = w.key LIMIT 1
) AS e
"""
HELD_ANSWERS = """
SELECT w.experiment, d.place, a.signal, a.value FROM unnest(%s::text[], %s::text[]) AS w (experiment, key)
CROSS JOIN LATERAL (
    SELECT place FROM events WHERE experiment = w.experiment AND kind = 'decision' AND key = w.key LIMIT 1
) AS d
CROSS JOIN LATERAL (SELECT signal, value FROM answers WHERE experiment = w.experiment AND place = d.place OFFSET 0) AS a
"""
# A row that is as it was is written all the same; of two desks that try at once one waits for the other.
TRY_OUT = (
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET LOCAL statement_timeout = '2s'",
    "UPDATE migrations SET name = name WHERE number = 1",
)
NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

EVENTS = "events (experiment, seq, at, kind, key, place, body, chain, asked)"
EVENT_TYPES = ("text", "int8", "int8", "text", "text", "int8", "bytea", "bytea", "bytea")
ANSWERS = "answers (experiment, place, signal, value, seq)"
ANSWER_TYPES = ("text", "int8", "text", "float8", "int8")
NEW_HEAD = "INSERT INTO heads (experiment, seq, at, places, control, chain) VALUES (%s, %s, %s, %s, %s, %s)"
MOVE_HEAD = "UPDATE heads SET seq = %s, at = %s, places = %s, control = %s, chain = %s WHERE experiment = %s"

UNHURRIED = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0"
MIGRATIONS = "CREATE TABLE IF NOT EXISTS migrations (number bigint PRIMARY KEY, name text NOT NULL)"
MIGRATED = "INSERT INTO migrations VALUES (%s, %s)"
VERSION = "SELECT coalesce(max(number), 0) FROM migrations"

FEW = 256  # rows that go faster in one statement, in the exchange that commits, than by COPY, which takes two
PACE = 1000  # clocks that are disciplined differ by less than one in so many
TRIES = 5  # of two who write the first row of an experiment at once, one has to look again


class PostgresStore(Store):
    """A store on a server.

    Attributes:
        clock: What tells the time, where it is not the server's clock.
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
        self._sessions = Sessions(address, read_only=read_only)
        self._lead_turn = threading.Lock()
        self._candidate: Connection | None = None  # the connection that has the learner's lock, or tries
        self._leads = False
        self._ahead = 0  # of this machine's clock is the server's, in microseconds
        self._followed = 0  # when that was last looked at
        try:
            self._sessions.check_own()
            self._migrate(migrations)
        except BaseException:
            self.close()
            raise

    def append(self, asks: Sequence[Ask]) -> list[Settled]:
        """Write all that can be written in one durable transaction; one answer for each ask. Raises StoreDown.

        Where the connection is lost during the commit nobody knows here whether it is written: that is a StoreDown
        too, and whoever asks again with the same ids finds what was.
        """
        with self._sessions.errors("written"):
            for left in reversed(range(TRIES)):
                try:
                    with self._sessions.one() as connection:
                        return self._appended(connection, asks)
                except UniqueViolation:
                    if not left:
                        raise
        raise AssertionError  # never here: the last try returns or raises

    def try_out(self) -> None:
        """Write a row that is as it was."""
        self._change(*((sql, ()) for sql in TRY_OUT))

    def lead(self) -> bool:
        """Be the one learner, or stay it; False too where the server cannot be asked.

        The lock belongs to a connection of its own: when that dies, by whatever cause, another desk can have it.
        """
        with self._lead_turn:
            if self._sessions.closed or self._sessions.read_only:
                return False
            try:
                if self._candidate is None:
                    self._candidate = self._sessions.connect()
                (leads,) = self._candidate.execute(STILL if self._leads else LEAD).fetchone() or (False,)
                self._leads = bool(leads)
            except psycopg.Error:
                self._resign()
            return self._leads

    def now(self) -> int:
        """Return the server's clock as it was when this process began, and what has passed since."""
        return self.clock() if self.clock is not None else wall_clock() + self._ahead

    def close(self) -> None:
        """Let go of everything."""
        self._sessions.close()
        with self._lead_turn:
            self._resign()

    def _resign(self) -> None:
        if self._candidate is not None:
            forget(self._candidate)
        self._candidate, self._leads = None, False

    def _appended(self, connection: Connection, asks: Sequence[Ask]) -> list[Settled]:
        held, time = lock(connection, asks)
        self._follow(time)
        there = set(held.heads)
        held.heads.update({name: Head() for name in touched(asks) - there})
        batch = settle(asks, held, self.now())
        write(connection, batch, there)
        return batch.settled

    def _follow(self, time: int) -> None:
        """Follow the server's clock, by a thousandth of what has passed at most: no jump of it closes a window."""
        here = wall_clock()
        passed, self._followed = here - self._followed, here
        most = passed // PACE + 1
        self._ahead += min(max(time - here - self._ahead, -most), most)

    def _all(self, sql: str, *values: Any) -> list[Any]:
        with self._sessions.errors("read"):
            try:
                return self._read(sql, values)
            except psycopg.OperationalError:  # it was one of a server that is gone: a new one may be there
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
        """Take the database to the version that is known here; of several desks one does it, and the others wait."""
        steps, where = steps_in(folder), self._sessions.where.rstrip(",")
        with self._sessions.errors("opened"), self._sessions.one() as connection:
            if self._sessions.read_only:
                (version,) = connection.execute(VERSION).fetchone() or (0,)
                ahead(steps, version, where, read_only=True)
            else:
                with connection.transaction():
                    connection.execute(UNHURRIED)
                    connection.execute(MIGRATING)
                    connection.execute(MIGRATIONS)
                    (version,) = connection.execute(VERSION).fetchone() or (0,)
                    for step in ahead(steps, version, where, read_only=False):
                        connection.execute(for_postgres(step.sql).encode())
                        connection.execute(MIGRATED, (step.number, step.name))
            (time,) = connection.execute(NOW).fetchone() or (0,)
            self._followed = wall_clock()
            self._ahead = time - self._followed


def lock(connection: Connection, asks: Sequence[Ask]) -> tuple[Held, int]:
    """Begin, have the ends of the logs to oneself, and return what is held of what a batch touches, and the time."""
    names = touched(asks)
    named = sorted(wants(asks))
    of = sorted({(ask.experiment, ask.of) for ask in asks if ask.kind == OUTCOME} & {(e, k) for e, _, k in named})
    everywhere = holds_everywhere(asks)
    with connection.pipeline():
        connection.execute(BEGIN)
        connection.execute(CONTROLLING if everywhere else CONTROLLED)
        every = connection.execute(HEAD_EVERYWHERE)
        ends = connection.execute(ENDS) if everywhere else ()  # nobody else writes: that lock is not shared
        heads = connection.execute(HEADS, (sorted(names - {EVERYWHERE}),))
        rows = connection.execute(HELD_ROWS, columns(named, 3), binary=True)
        answers = connection.execute(HELD_ANSWERS, columns(of, 2), binary=True)
        now = connection.execute(NOW)
    held = Held({name: Head(*head) for name, *head in [*every, *heads]}, ends=dict(ends))
    for experiment, *told in rows:
        event = Event(*told)
        held.rows[experiment, event.kind, event.key] = Row(experiment, event)
    for experiment, place, signal, value in answers:
        held.answers.setdefault((experiment, place), {})[signal] = value
    (time,) = now.fetchone() or (0,)
    return held, time


def write(connection: Connection, batch: Batch, there: set[str]) -> None:
    """Write what was settled, and commit."""
    events = [(row.experiment, *row.event) for row in batch.rows]
    small = len(events) + len(batch.answers) <= FEW
    if not small:
        copy(connection, EVENTS, EVENT_TYPES, events)
        copy(connection, ANSWERS, ANSWER_TYPES, batch.answers)
    with connection.pipeline():
        if small:
            add(connection, EVENTS, EVENT_TYPES, events)
            add(connection, ANSWERS, ANSWER_TYPES, batch.answers)
        for name, head in batch.heads.items():
            if name in there:
                connection.execute(MOVE_HEAD, (*head, name))
            else:
                connection.execute(NEW_HEAD, (name, *head))
        connection.execute("COMMIT")


def add(connection: Connection, table: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows by one statement, in the exchange that is open: planned once, each column an array."""
    if rows:
        columns = ", ".join(f"%b::{kind}[]" for kind in types)
        connection.execute(
            f"INSERT INTO {table} SELECT * FROM unnest({columns})".encode(), list(map(list, zip(*rows, strict=True)))
        )


def copy(connection: Connection, table: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Insert many rows."""
    if rows:
        with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT binary)".encode()) as into:
            into.set_types(types)
            for row in rows:
                into.write_row(row)


def columns(rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Return rows as columns, also where there are none."""
    return [[row[column] for row in rows] for column in range(width)]
