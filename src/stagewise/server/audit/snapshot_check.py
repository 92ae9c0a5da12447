"""Compares snapshots with the log: each is built again from the first row."""

from collections.abc import Sequence

import msgspec

from stagewise.server.event_log import StoredSnapshot
from stagewise.server.snapshots import SEAL_BYTES, encode_snapshot
from stagewise.server.state_fold import StateFold
from stagewise.server.store.base import Store
from stagewise.server.versions import ProblemVersion

BATCH_SIZE = 10_000  # rows folded at once


def find_wrong_snapshot(
    store: Store, name: str, version: ProblemVersion, stored: Sequence[StoredSnapshot]
) -> str | None:
    """Return a sentence about the first snapshot that does not match the log; None if all do."""
    folds: dict[float | None, StateFold] = {}
    for one in sorted(stored, key=lambda one: one.seq):
        message = f"the snapshot of row {one.seq} does not match the log: another release or another program wrote it"
        try:
            feedback_timeout = (
                msgspec.msgpack.decode(one.learner_state[SEAL_BYTES:])["feedback_timeout"]
                if one.learner_state
                else None
            )
        except (msgspec.DecodeError, KeyError, TypeError):
            return message
        if feedback_timeout not in folds:
            folds[feedback_timeout] = StateFold(version.problem, version.number, version.retired, feedback_timeout)
        fold = folds[feedback_timeout]
        while fold.seq < one.seq:
            fold.take(store.events(name, fold.seq, min(BATCH_SIZE, one.seq - fold.seq)))
        if one.learner_state and fold.encode() != one.learner_state[SEAL_BYTES:]:
            return message
        if encode_snapshot(fold.build_snapshot()) != one.content[SEAL_BYTES:]:
            return message
    return None
