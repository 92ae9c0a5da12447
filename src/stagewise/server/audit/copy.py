"""Copies a store into another row by row, for example from SQLite to PostgreSQL, and verifies the copy.

An interrupted copy can be started again: seals are written last, and the target has no row that the source has not.
"""

from contextlib import closing

from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.server.audit.verify import StoreVerification, verify_store
from stagewise.server.store.base import (
    EVENT_COLUMNS,
    INSERT_PART,
    INSERT_SEAL,
    INSERT_SECRET,
    PAGE_SEALS,
    SELECT_CHECKPOINTS,
    UPSERT_CHECKPOINT,
    Store,
    StoreUnavailable,
)
from stagewise.server.store.factory import open_store

BATCH_ROWS = 2_000  # rows of one transaction

INSERT_EVENT = f"INSERT INTO events ({EVENT_COLUMNS}, experiment) VALUES ({', '.join('?' * 12)}) ON CONFLICT DO NOTHING"
SELECT_USER_KEYS = "SELECT id, user_digest, content, is_retired FROM user_keys"
INSERT_USER_KEY = "INSERT INTO user_keys (id, user_digest, content, is_retired) VALUES (?, ?, ?, ?)"
_ANSWER = "decision, signal, value, number"
SELECT_ANSWERS = f"SELECT {_ANSWER} FROM answers WHERE decision > ? AND decision <= ?"
INSERT_ANSWER = f"INSERT INTO answers ({_ANSWER}) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"


def copy_and_verify(address: str, to: str) -> StoreVerification:
    """Copy a store; verify the copy and compare its end with the original."""
    if address == to:
        raise InvalidFile(ErrorCode.CONFLICTING_OPTIONS, "{address} cannot be copied to itself", address=address)
    open_store(address, read_only=True).close()  # fails if there is no store; opening it for writing would create one
    with closing(open_store(address)) as source, closing(open_store(to)) as target:
        copy_store(source, target)
        result = verify_store(target)
        logs = [one.experiment for one in result.logs]
        differs = [name for name in logs if target.head(name) != source.head(name)]
        if result.faults or differs:
            raise StoreUnavailable(
                ErrorCode.STORE_CORRUPT,
                "the copy is incomplete: {fault}",
                fault=result.faults[0] if result.faults else f"{differs[0]!r} and the original end at different rows",
            )
        return result


def copy_store(source: Store, target: Store) -> None:
    """Copy every row, seal, key and secret into an empty store. Snapshots are not copied; they are rebuilt."""
    secrets = source.secrets()
    has_other_secrets = any(secrets.get(name) != content for name, content in target.secrets().items())
    if target.last_seal().seal or has_other_secrets or has_other_rows(source, target):
        content = ", ".join(map(repr, target.experiments()[:5])) or "keys, controls or secrets, as after a first start"
        raise InvalidFile(
            ErrorCode.FILE_EXISTS, "the target store already has {content}; give an empty store", content=content
        )
    seal, after = source.last_seal(), 0
    while rows := source.rows(after, BATCH_ROWS):
        last = rows[-1][1].number
        answers = source._all(SELECT_ANSWERS, after, last)
        target._change(*((INSERT_EVENT, (*row[:-1], name)) for name, row in rows))
        target._change(*((INSERT_ANSWER, row) for row in answers))
        after = last
    if source.last_seal() != seal or source.rows(after, 1):
        text = "the store received rows while it was copied; stop every server that writes to it, and copy again"
        raise StoreUnavailable(ErrorCode.STORE_BUSY, text)
    target._change(*((INSERT_SECRET, secret) for secret in secrets.items()))
    target._change(*((INSERT_USER_KEY, row) for row in source._all(SELECT_USER_KEYS)))
    target._change(*((UPSERT_CHECKPOINT, row) for row in source._all(SELECT_CHECKPOINTS)))
    for first in range(0, seal.seal, PAGE_SEALS):
        seals = source.seals(first, PAGE_SEALS)
        parts = source.parts_of_seals(first, seals[-1].seal)
        target._change(*((INSERT_SEAL, one) for one in seals), *((INSERT_PART, part) for part in parts))
    target.continue_numbers()


def has_other_rows(source: Store, target: Store) -> bool:
    """Return whether the target has a row that the source has not."""
    after = 0
    while rows := target.rows(after, BATCH_ROWS):
        last = rows[-1][1].number
        own = {row for row in source.rows(after, BATCH_ROWS) if row[1].number <= last}
        if not own.issuperset(rows):
            return True
        after = last
    return False
