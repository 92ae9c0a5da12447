"""Transactions that append a batch to a PostgreSQL store, in two round trips: read and draw numbers; write and commit.

Batches do not wait for each other, except for the same id, for the same decision's outcomes, and for a change of
controls, which is alone.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import psycopg

from stagewise.server.event_log import CONTROL, PROBLEM, AppendRequest, WriterChain
from stagewise.server.store.append_batch import (
    BatchResult,
    RowKey,
    StoreState,
    get_offline_logs,
    get_outcome_decisions,
    get_touched_experiments,
    is_change,
)
from stagewise.server.store.base import EVENT_COLUMNS, IS_RARE, SELECT_LATEST

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
