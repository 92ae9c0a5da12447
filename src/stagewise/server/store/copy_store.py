"""Copies a store into another row by row, for example from SQLite to PostgreSQL.

An interrupted copy can be started again: heads are written last, so an incomplete copy has no experiments.
"""

from collections.abc import Iterator
from typing import Any

from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.server.event_log import GLOBAL
from stagewise.server.store.base import Store, StoreUnavailable
from stagewise.server.store.queries import INSERT_SECRET, SELECT_SECRETS

BATCH_SIZE = 2_000  # rows of one transaction

_EVENT = "experiment, seq, at, kind, key, decision_index, body, chain, request_digest"
SELECT_EVENTS = f"SELECT {_EVENT} FROM events WHERE experiment = ? AND seq > ? ORDER BY seq LIMIT ?"
INSERT_EVENT = f"INSERT INTO events ({_EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"

_ANSWER = "experiment, decision_index, signal, value, seq"
SELECT_ANSWERS = f"SELECT {_ANSWER} FROM answers WHERE experiment = ? AND decision_index >= ? AND decision_index < ?"
INSERT_ANSWER = f"INSERT INTO answers ({_ANSWER}) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"

_HEAD = "experiment, seq, at, decision_count, control, chain"
SELECT_HEADS = f"SELECT {_HEAD} FROM heads ORDER BY experiment"
UPSERT_HEAD = f"""
INSERT INTO heads ({_HEAD}) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (experiment) DO UPDATE SET seq = excluded.seq, at = excluded.at, decision_count = excluded.decision_count,
    control = excluded.control, chain = excluded.chain
"""


def copy_store(source: Store, target: Store) -> dict[str, int]:
    """Copy every row, key and secret into an empty store; return the rows of each experiment.

    Snapshots are not copied; they are rebuilt.
    """
    existing = target.experiments()
    if existing or target.head(GLOBAL).seq:
        content = ", ".join(map(repr, existing[:5])) or "keys or controls"
        raise InvalidFile(
            ErrorCode.FILE_EXISTS, "the target store already has {content}; give an empty store", content=content
        )
    check_secrets_match(target.secrets(), source.secrets())
    heads = source._all(SELECT_HEADS)
    for experiment, _, _, decision_count, *_ in heads:
        for rows in iter_event_batches(source, experiment):
            target._change(*((INSERT_EVENT, row) for row in rows))
        for first in range(0, decision_count, BATCH_SIZE):
            answers = source._all(SELECT_ANSWERS, experiment, first, first + BATCH_SIZE)
            if answers:
                target._change(*((INSERT_ANSWER, row) for row in answers))
    secrets = source._all(SELECT_SECRETS)
    if source._all(SELECT_HEADS) != heads:
        raise StoreUnavailable(
            ErrorCode.STORE_BUSY,
            "the store received rows while it was copied; stop every server that writes to it, and copy again",
        )
    target._change(*((INSERT_SECRET, row) for row in secrets), *((UPSERT_HEAD, row) for row in heads))
    return {experiment: seq for experiment, seq, *_ in heads}


def check_secrets_match(target: dict[str, bytes], source: dict[str, bytes]) -> None:
    """Reject a target with other secrets: the copied secrets would be lost."""
    different = next((name for name, content in target.items() if source.get(name) != content), None)
    if different is not None:
        raise InvalidFile(
            ErrorCode.FILE_EXISTS,
            "the target store already has a secret {name!r}, which a server creates at its first "
            "start; give an empty store",
            name=different,
        )


def iter_event_batches(source: Store, experiment: str) -> Iterator[list[Any]]:
    """Yield the rows of a log in batches."""
    after = 0
    while rows := source._all(SELECT_EVENTS, experiment, after, BATCH_SIZE):
        yield rows
        after = rows[-1][1]
