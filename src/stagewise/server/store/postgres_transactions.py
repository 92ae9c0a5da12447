"""Transactions of a PostgreSQL store: append a batch in two round trips, seal committed rows, begin a term.

Batches do not wait for each other, except for the same id, for the same decision's outcomes, and for a change of
controls, which is alone.

Terms of a PostgreSQL store: how often another machine took over, as a standby that was promoted.

A term begins with the first connection to a new timeline of the write-ahead log. Its numbers are above all that the
machine before may have drawn.

Seals of a PostgreSQL store: committed rows that no seal has, in one statement; of several processes, one seals them.

Numbers that are missing stay open until every transaction is over that may have drawn them (a fence,
docs/theory/server.md); learning does not wait for that.
"""

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import psycopg
from psycopg.errors import UniqueViolation

from stagewise.server.event_log import (
    CONTROL,
    MAX_SEAL_ROWS,
    PROBLEM,
    TERM_BITS,
    AppendRequest,
    Event,
    Fence,
    Seal,
    SealPart,
    WriterChain,
    build_seal,
    number_rows,
)
from stagewise.server.store.append_batch import (
    BatchResult,
    RowKey,
    StoreState,
    get_offline_logs,
    get_outcome_decisions,
    get_touched_experiments,
    is_change,
)
from stagewise.server.store.base import (
    EVENT_COLUMNS,
    INSERT_PART,
    INSERT_SEAL,
    IS_RARE,
    PART_COLUMNS,
    SELECT_LAST_SEAL,
    SELECT_LATEST,
)

Connection = psycopg.Connection[tuple[Any, ...]]

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

MAX_INSERT_ROWS = 256  # up to here one INSERT in the committing round trip is faster than COPY, which needs two


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


def transpose(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the three columns of row keys; works for no rows."""
    return [[row[column] for row in rows] for column in range(3)]


def to_format(sql: str) -> bytes:
    """Return SQL with the parameters of psycopg."""
    return sql.replace("?", "%s").encode()


CREATE_TERMS = "CREATE TABLE IF NOT EXISTS terms (term bigint PRIMARY KEY, timeline bigint NOT NULL)"
LAST_TERM = "SELECT term, timeline FROM terms ORDER BY term DESC LIMIT 1"
INSERT_TERM = "INSERT INTO terms VALUES (%s, %s)"
BEGIN_TERM = "SELECT setval('numbers', greatest((SELECT last_value FROM numbers), %s::bigint, 1))"
TIMELINE = "SELECT ('x' || lpad(left(pg_walfile_name(pg_current_wal_lsn()), 8), 16, '0'))::bit(64)::bigint"
SEAL_HASH = "SELECT hash FROM seals WHERE seal = %s"
ROW_MAC = "SELECT mac FROM events WHERE number = %s"


class Terms:
    """The term of a store, and what this process knows of the machine that it was connected to.

    Attributes:
        term: 0 for the first machine.
        last_seal: The last seal that was read; its hash tells whether another machine has the same rows.
        last_row: The number and the code of the last row that was written.
    """

    def __init__(self) -> None:
        self.term = self._timeline = 0
        self.last_seal, self.last_row = Seal(), (0, b"")
        self._turn = threading.Lock()

    def follow(self, connection: Connection) -> bool:
        """Begin a new term if another machine took over; return whether rows are gone that this process knew."""
        with self._turn:
            (timeline,) = connection.execute(TIMELINE).fetchone() or (0,)
            if timeline == self._timeline:
                return False
            term, last = connection.execute(LAST_TERM).fetchone() or (-1, None)
            if last != timeline:
                with connection.transaction():
                    connection.execute(LOCK_EXCLUSIVE)
                    term, last = connection.execute(LAST_TERM).fetchone() or (-1, None)
                    if last != timeline:
                        term += 1
                        connection.execute(INSERT_TERM, (term, timeline))
                        connection.execute(BEGIN_TERM, (term << TERM_BITS,))
            seal, (number, mac) = self.last_seal, self.last_row
            is_lost = (seal.seal and connection.execute(SEAL_HASH, (seal.seal,)).fetchone() != (seal.hash,)) or (
                number and connection.execute(ROW_MAC, (number,)).fetchone() != (mac,)
            )
            if is_lost:
                self.last_seal, self.last_row = Seal(), (0, b"")
            self._timeline, self.term = timeline, term
            return bool(is_lost)

    def begin(self, connection: Connection) -> None:
        """Begin a new term on the same machine."""
        with self._turn, connection.transaction():
            connection.execute(LOCK_EXCLUSIVE)
            last, timeline = connection.execute(LAST_TERM).fetchone() or (-1, self._timeline)
            self.term = last + 1
            connection.execute(INSERT_TERM, (self.term, timeline))
            connection.execute(BEGIN_TERM, (self.term << TERM_BITS,))


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


class Sealer:
    """Seals rows."""

    def __init__(self) -> None:
        self._fence = Fence()

    def seal(self, connection: Connection, now: int, terms: Terms) -> dict[str, list[Event]]:
        """Seal committed rows that no seal has, and return those of each experiment."""
        with connection.pipeline():
            last = connection.execute(to_format(SELECT_LAST_SEAL), binary=True)
            oldest = connection.execute(OLDEST_ID)
        before, (oldest_id,) = Seal(*(last.fetchone() or ())), oldest.fetchone() or (0,)
        terms.last_seal = before
        values = before.open_numbers, before.high, MAX_SEAL_ROWS
        found = connection.execute(SELECT_UNSEALED_ROWS, values, binary=True).fetchall()
        if not found:
            return {}
        rows = [(row[-1], Event(*row[:-1])) for row in found]
        names = sorted({experiment for experiment, _ in rows})
        ends = {row[0]: SealPart(*row) for row in connection.execute(SELECT_ENDS, (names,), binary=True)}
        gaps = self._fence.find_gaps(before.open_numbers, oldest_id)
        seal, parts = build_seal(before, rows, ends, now, terms.term, gaps)
        try:
            with connection.pipeline(), connection.transaction():
                connection.execute(to_format(INSERT_SEAL), seal)
                for part in parts:
                    connection.execute(to_format(INSERT_PART), part)
        except UniqueViolation:  # another process leads
            return {}
        if seal.open and self._fence.is_over(oldest_id):
            (new_id,) = connection.execute(TAKE_ID).fetchone() or (0,)
            self._fence = Fence(new_id, seal.high)
        return number_rows(rows, parts)
