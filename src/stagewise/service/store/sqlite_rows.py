"""The rows of a batch in a SQLite file: read and written by few statements, in a transaction that others end."""

import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from stagewise.service.records import DECISION, NEW, OUTCOME, Ask, Event, Head
from stagewise.service.store.settling import Batch, Held, Row, holds_everywhere, settle, touched, wants
from stagewise.service.store.tables import ENDS, HEAD

# One statement for many rows: each is a wait for the interpreter, which other threads have meanwhile.
HELD_ROWS = """
SELECT e.experiment, e.seq, e.at, e.kind, e.key, e.place, e.body, e.chain, e.asked
FROM (VALUES {rows}) AS w CROSS JOIN events AS e
ON e.experiment = w.column1 AND e.kind = w.column2 AND e.key = w.column3
"""
HELD_ANSWERS = """
SELECT a.experiment, a.place, a.signal, a.value
FROM (VALUES {rows}) AS w CROSS JOIN answers AS a ON a.experiment = w.column1 AND a.place = w.column2
"""
ADD_EVENTS = "INSERT INTO events (experiment, seq, at, kind, key, place, body, chain, asked) VALUES {rows}"
ADD_ANSWERS = "INSERT INTO answers (experiment, place, signal, value, seq) VALUES {rows}"
MOVE_HEAD = "INSERT OR REPLACE INTO heads (experiment, seq, at, places, control, chain) VALUES (?, ?, ?, ?, ?, ?)"

MOST = 256  # rows of one statement
FEW = 64  # rows up to which there is a statement for each number of them
AGAIN = 0.01  # seconds until a file that some other program has locked is tried again


def begin(connection: sqlite3.Connection, patience: float) -> None:
    """Begin a transaction that writes, as soon as no other program does."""
    until = time.monotonic() + patience
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
        time.sleep(AGAIN)


def written(
    connection: sqlite3.Connection, asks: Sequence[Ask], heads: Mapping[str, Head], now: int
) -> tuple[Held, Batch]:
    """Settle a batch and write it; return what is held then, and what was settled.

    Nearly always every row is new. So the keys of decisions are not looked for first: where one is there, the file
    refuses it, and only then is everything read.
    """
    held = held_by(connection, [ask for ask in asks if ask.kind != DECISION], touched(asks), heads)
    batch = settle(asks, held, now)
    if all(one.verdict == NEW for one in batch.settled):
        try:
            write(connection, batch)
        except sqlite3.IntegrityError:
            connection.execute("ROLLBACK")
            connection.execute("BEGIN IMMEDIATE")
        else:
            return held, batch
    held = held_by(connection, asks, touched(asks), heads)
    batch = settle(asks, held, now)
    write(connection, batch)
    return held, batch


def held_by(
    connection: sqlite3.Connection, asks: Sequence[Ask], logs: Iterable[str], heads: Mapping[str, Head]
) -> Held:
    """Return what the file holds of what a batch asks about, and where logs end; `heads` are known."""
    held = Held({name: heads.get(name) or head_in(connection, name) for name in logs})
    if holds_everywhere(asks):
        held.ends.update(connection.execute(ENDS).fetchall())
    for experiment, *event in for_all(connection, HELD_ROWS, sorted(wants(asks))):
        row = Row(experiment, Event(*event))
        held.rows[experiment, row.event.kind, row.event.key] = row
    told = {(ask.experiment, DECISION, ask.of) for ask in asks if ask.kind == OUTCOME}
    places = sorted((row.experiment, row.event.place) for name, row in held.rows.items() if name in told)
    for experiment, place, signal, value in for_all(connection, HELD_ANSWERS, places):
        held.answers.setdefault((experiment, place), {})[signal] = value
    return held


def head_in(connection: sqlite3.Connection, name: str) -> Head:
    """Return where a log ends."""
    return next((Head(*head) for head in connection.execute(HEAD, (name,)).fetchall()), Head())


def write(connection: sqlite3.Connection, batch: Batch) -> None:
    """Write what was settled."""
    for_all(connection, ADD_EVENTS, [(row.experiment, *row.event) for row in batch.rows])
    for_all(connection, ADD_ANSWERS, batch.answers)
    for name, head in batch.heads.items():
        connection.execute(MOVE_HEAD, (name, *head))


def for_all(connection: sqlite3.Connection, sql: str, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Run a statement for many rows of values: few at once, more in parts of 2ⁿ, so that few texts are prepared."""
    found, done = list[Any](), 0
    while done < len(rows):
        left = len(rows) - done
        size = left if left <= FEW else min(MOST, 1 << (left.bit_length() - 1))
        values = tuple(chain.from_iterable(rows[done : done + size]))
        found += connection.execute(text_of(sql, size, len(rows[0])), values).fetchall()
        done += size
    return found


@lru_cache(4 * FEW)
def text_of(sql: str, rows: int, width: int) -> str:
    """Return a statement for so many rows."""
    return sql.format(rows=", ".join([f"({', '.join('?' * width)})"] * rows))
