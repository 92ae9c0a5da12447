"""Copies a store into another row by row, for example from SQLite to PostgreSQL, and verifies the copy.

An interrupted copy can be started again: heads are written last, so an incomplete copy has no experiments.
"""

from contextlib import closing

from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.server.audit.verify import VerificationResult, verify_store
from stagewise.server.event_log import GLOBAL
from stagewise.server.store.base import EVENT_COLUMNS, HEAD_COLUMNS, INSERT_SECRET, Store, StoreUnavailable
from stagewise.server.store.factory import open_store

BATCH_ROWS = 2_000  # rows of one transaction

INSERT_EVENT = (
    f"INSERT INTO events (experiment, {EVENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_ANSWER = "experiment, decision_index, signal, value, seq"
SELECT_ANSWERS = f"SELECT {_ANSWER} FROM answers WHERE experiment = ? AND decision_index >= ? AND decision_index < ?"
INSERT_ANSWER = f"INSERT INTO answers ({_ANSWER}) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
SELECT_HEADS = f"SELECT experiment, {HEAD_COLUMNS} FROM heads ORDER BY experiment"
DELETE_HEAD = "DELETE FROM heads WHERE experiment = ?"
INSERT_HEAD = f"INSERT INTO heads (experiment, {HEAD_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"


def copy_and_verify(address: str, to: str) -> list[VerificationResult]:
    """Copy a store; verify every log of the copy and compare its end with the original."""
    if address == to:
        raise InvalidFile(ErrorCode.CONFLICTING_OPTIONS, "{address} cannot be copied to itself", address=address)
    open_store(address, read_only=True).close()  # fails if there is no store; opening it for writing would create one
    with closing(open_store(address)) as source, closing(open_store(to)) as target:
        copy_store(source, target)
        results = list(verify_store(target))
        for one in results:
            ends_equal = target.head(one.experiment) == source.head(one.experiment)
            if one.fault is not None or not ends_equal:
                raise StoreUnavailable(
                    ErrorCode.STORE_CORRUPT,
                    "the copy of {experiment!r} is incomplete: {fault}",
                    experiment=one.experiment,
                    fault=one.fault or "it and the original end at different rows",
                )
        return results


def copy_store(source: Store, target: Store) -> None:
    """Copy every row, key and secret into an empty store. Snapshots are not copied; they are rebuilt."""
    secrets, existing = source.secrets(), target.experiments()
    has_other_secrets = any(secrets.get(name) != content for name, content in target.secrets().items())
    if existing or target.head(GLOBAL).seq or has_other_secrets:
        content = ", ".join(map(repr, existing[:5])) or "keys, controls or secrets, as after a first start"
        raise InvalidFile(
            ErrorCode.FILE_EXISTS, "the target store already has {content}; give an empty store", content=content
        )
    heads = source._all(SELECT_HEADS)
    for experiment, _, _, decision_count, *_ in heads:
        after = 0
        while rows := source.events(experiment, after, BATCH_ROWS):
            target._change(*((INSERT_EVENT, (experiment, *row)) for row in rows))
            after = rows[-1].seq
        for first in range(0, decision_count, BATCH_ROWS):
            answers = source._all(SELECT_ANSWERS, experiment, first, first + BATCH_ROWS)
            target._change(*((INSERT_ANSWER, row) for row in answers))
    if source._all(SELECT_HEADS) != heads:
        raise StoreUnavailable(
            ErrorCode.STORE_BUSY,
            "the store received rows while it was copied; stop every server that writes to it, and copy again",
        )
    target._change(
        *((INSERT_SECRET, secret) for secret in secrets.items()),
        *((DELETE_HEAD, row[:1]) for row in heads),
        *((INSERT_HEAD, row) for row in heads),
    )
