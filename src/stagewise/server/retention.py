"""Retention: rows up to a seal are removed; states at that seal stand for them (checkpoints.py).

What stays: every seal, and the changes of controls, problems, keys and secrets. What was removed is a row of the log
itself. If a removal is interrupted, the next one finishes it.
"""

import hashlib
from collections.abc import Iterator, Mapping
from itertools import pairwise

import msgspec

from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.formatting import safe_repr
from stagewise.server.checkpoints import (
    LogEnd,
    Removal,
    append_digests,
    build_checkpoint,
    read_all_versions,
    read_changes,
    read_removal,
)
from stagewise.server.event_log import GLOBAL, PROBLEM, Event
from stagewise.server.seals import Seal, compute_leaf
from stagewise.server.store.base import UPSERT_CHECKPOINT, Store
from stagewise.server.versions import ProblemVersion

RETENTION = "retention"  # the control of the global log
DELETE_NUMBERS = 10_000  # of one transaction

DELETE_ANSWERS = "DELETE FROM answers WHERE decision > ? AND decision < ?"
DELETE_EVENTS = "DELETE FROM events WHERE number > ? AND number < ? AND kind IN ('decision', 'outcome', 'log', 'tick')"
DELETE_PARTS = """
DELETE FROM seal_parts WHERE experiment = ? AND last <= ?
AND last < (SELECT max(last) FROM seal_parts WHERE experiment = ?)
"""
DELETE_SNAPSHOTS = "DELETE FROM snapshots WHERE experiment = ? AND seq < ?"
SELECT_FIRST = "SELECT coalesce(min(number), 0) FROM events WHERE kind IN ('decision', 'outcome', 'log', 'tick')"


def remove_old_rows(store: Store, before: int, actor: str, reason: str) -> Removal | None:
    """Remove the rows of all seals that were made before a time in microseconds; None: there is nothing to remove."""
    versions = {name: read_all_versions(store, name) for name in store.experiments()}
    check_windows(versions, store.now() - before)
    seal, last = store.last_seal_before(before), read_removal(store)
    if last is not None and seal.seal <= last.seal:
        delete_rows(store, last)
        return None
    if not seal.seal:
        return None
    removal = describe_removal(store, seal, last)
    contents = {GLOBAL: msgspec.msgpack.encode(removal)}
    for name, known in versions.items():
        if name in removal.ends:
            before_end = sum(row.kind == PROBLEM for row in read_changes(store, name, removal))
            checkpoint = build_checkpoint(store, name, known[max(before_end, 1) - 1 :], removal.ends[name].seq)
            contents[name] = msgspec.msgpack.encode(checkpoint)
    number = append_digests(store, RETENTION, contents, actor, reason, seal=seal.seal, before=before)
    store._change(*((UPSERT_CHECKPOINT, (name, number, content)) for name, content in contents.items()))
    delete_rows(store, removal)
    return removal


def check_windows(versions: Mapping[str, list[ProblemVersion]], age: int) -> None:
    """Reject an age within which outcomes may still come and be learned."""
    for name, known in versions.items():
        for signal, window in known[-1].problem.windows.items():
            if age <= window.seconds * 1e6:
                raise InvalidOutcome(
                    ErrorCode.OUT_OF_RANGE,
                    "rows of {days:.6g} days would be removed, and the window of {signal} in {name} is "
                    "{duration}: outcomes may still come; keep rows for longer than every window",
                    days=age / 86_400e6,
                    signal=safe_repr(signal),
                    name=safe_repr(name),
                    duration=window.duration,
                )


def describe_removal(store: Store, seal: Seal, last: Removal | None) -> Removal:
    """Return what the removal of all rows up to a seal leaves behind."""
    writers = {} if last is None else dict(last.writers)
    ends, open_numbers = dict[str, LogEnd](), set(seal.open_numbers)
    for name in store.logs():
        part = store.last_part(name, seal.seal)
        if part is not None:
            ends[name] = LogEnd(part.last, part.decisions, part.at, part.highest)
    removal = Removal(seal.seal, seal.hash, seal.high, seal.open_numbers, b"", writers, ends)
    after = 0
    while page := store.rows(after):
        after = page[-1][1].number
        for _, row in page:
            is_removed = row.number <= seal.high and row.number not in open_numbers
            if is_removed and row.link > writers.get(row.writer, (0, b""))[0]:
                writers[row.writer] = row.link, row.mac
        if after > seal.high:
            break
    removal.kept = compute_kept_digest(iter_kept(store, removal))
    return removal


def iter_kept(store: Store, removal: Removal) -> Iterator[tuple[str, Event]]:
    """Yield the rows that stay, log by log, by number."""
    for name in sorted(removal.ends):
        for row in read_changes(store, name, removal):
            yield name, row


def compute_kept_digest(rows: Iterator[tuple[str, Event]]) -> bytes:
    """Return the digest of the leaves of rows that stay."""
    digest = hashlib.sha256()
    for name, row in rows:
        digest.update(compute_leaf(row.mac, row.encode(name)))
    return digest.digest()


def delete_rows(store: Store, removal: Removal) -> None:
    """Delete what the checkpoints stand for, some numbers at a time."""
    ((first,),) = store._all(SELECT_FIRST)
    for low, high in pairwise([first - 1, *(n for n in removal.open if n >= first), removal.high + 1]):
        for start in range(low, high - 1, DELETE_NUMBERS):
            numbers = start, min(start + DELETE_NUMBERS + 1, high)
            store._change((DELETE_ANSWERS, numbers), (DELETE_EVENTS, numbers))
    for name, end in removal.ends.items():
        store._change((DELETE_PARTS, (name, end.seq, name)), (DELETE_SNAPSHOTS, (name, end.seq)))
    store.compact()
