"""Reads and writes the rows of a batch in SQLite with few statements, in a transaction of the caller."""

import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from stagewise.server.event_log import DECISION, NEW, OUTCOME, AppendRequest, Event, LogHead
from stagewise.server.store.append_batch import (
    BatchResult,
    LogRow,
    StoreState,
    get_touched_experiments,
    get_wanted_rows,
    has_global_request,
    resolve_batch,
)
from stagewise.server.store.queries import SELECT_HEAD, SELECT_LOG_ENDS

# One statement for many rows: each statement releases the GIL.
SELECT_EXISTING_ROWS = """
SELECT e.experiment, e.seq, e.at, e.kind, e.key, e.decision_index, e.body, e.chain, e.request_digest
FROM (VALUES {rows}) AS w CROSS JOIN events AS e
ON e.experiment = w.column1 AND e.kind = w.column2 AND e.key = w.column3
"""
SELECT_EXISTING_ANSWERS = """
SELECT a.experiment, a.decision_index, a.signal, a.value
FROM (VALUES {rows}) AS w CROSS JOIN answers AS a ON a.experiment = w.column1 AND a.decision_index = w.column2
"""
INSERT_EVENTS = (
    "INSERT INTO events (experiment, seq, at, kind, key, decision_index, body, chain, request_digest) VALUES {rows}"
)
INSERT_ANSWERS = "INSERT INTO answers (experiment, decision_index, signal, value, seq) VALUES {rows}"
REPLACE_HEAD = (
    "INSERT OR REPLACE INTO heads (experiment, seq, at, decision_count, control, chain) VALUES (?, ?, ?, ?, ?, ?)"
)

MAX_STATEMENT_ROWS = 256  # maximum rows of one statement
MAX_CACHED_SIZES = 64  # up to here there is a cached statement for each number of rows
RETRY_DELAY = 0.01  # seconds between two attempts while another program locks the file


def begin_immediate(connection: sqlite3.Connection, timeout: float) -> None:
    """Begin a write transaction as soon as no other program writes."""
    until = time.monotonic() + timeout
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
        time.sleep(RETRY_DELAY)


def resolve_and_write(
    connection: sqlite3.Connection, requests: Sequence[AppendRequest], heads: Mapping[str, LogHead], now: int
) -> tuple[StoreState, BatchResult]:
    """Resolve a batch and write it; return the state and the result.

    Nearly always every row is new. So ids of decisions are not looked up first; if one exists, the insert fails, and
    only then is everything read.
    """
    state = read_store_state(
        connection,
        [request for request in requests if request.kind != DECISION],
        get_touched_experiments(requests),
        heads,
    )
    batch = resolve_batch(requests, state, now)
    if all(one.status == NEW for one in batch.results):
        try:
            write_batch(connection, batch)
        except sqlite3.IntegrityError:
            connection.execute("ROLLBACK")
            connection.execute("BEGIN IMMEDIATE")
        else:
            return state, batch
    state = read_store_state(connection, requests, get_touched_experiments(requests), heads)
    batch = resolve_batch(requests, state, now)
    write_batch(connection, batch)
    return state, batch


def read_store_state(
    connection: sqlite3.Connection, requests: Sequence[AppendRequest], logs: Iterable[str], heads: Mapping[str, LogHead]
) -> StoreState:
    """Return the state that a batch needs; `heads` are already known."""
    state = StoreState({name: heads.get(name) or read_head(connection, name) for name in logs})
    if has_global_request(requests):
        state.ends.update(connection.execute(SELECT_LOG_ENDS).fetchall())
    for experiment, *event in execute_many(connection, SELECT_EXISTING_ROWS, sorted(get_wanted_rows(requests))):
        row = LogRow(experiment, Event(*event))
        state.rows[experiment, row.event.kind, row.event.key] = row
    decision_keys = {
        (request.experiment, DECISION, request.decision_id) for request in requests if request.kind == OUTCOME
    }
    indices = sorted(
        (row.experiment, row.event.decision_index) for name, row in state.rows.items() if name in decision_keys
    )
    for experiment, decision_index, signal, value in execute_many(connection, SELECT_EXISTING_ANSWERS, indices):
        state.answers.setdefault((experiment, decision_index), {})[signal] = value
    return state


def read_head(connection: sqlite3.Connection, name: str) -> LogHead:
    """Return the end of a log."""
    return next((LogHead(*head) for head in connection.execute(SELECT_HEAD, (name,)).fetchall()), LogHead())


def write_batch(connection: sqlite3.Connection, batch: BatchResult) -> None:
    """Write a resolved batch."""
    execute_many(connection, INSERT_EVENTS, [(row.experiment, *row.event) for row in batch.rows])
    execute_many(connection, INSERT_ANSWERS, batch.answers)
    for name, head in batch.heads.items():
        connection.execute(REPLACE_HEAD, (name, *head))


def execute_many(connection: sqlite3.Connection, sql: str, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Run a statement for many rows, in chunks of few different sizes, so that few statements are prepared."""
    rows_read, done = list[Any](), 0
    while done < len(rows):
        left = len(rows) - done
        size = left if left <= MAX_CACHED_SIZES else min(MAX_STATEMENT_ROWS, 1 << (left.bit_length() - 1))
        values = tuple(chain.from_iterable(rows[done : done + size]))
        rows_read += connection.execute(build_statement(sql, size, len(rows[0])), values).fetchall()
        done += size
    return rows_read


@lru_cache(4 * MAX_CACHED_SIZES)
def build_statement(sql: str, rows: int, width: int) -> str:
    """Return a statement for this many rows."""
    return sql.format(rows=", ".join([f"({', '.join('?' * width)})"] * rows))
