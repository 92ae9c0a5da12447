"""Snapshots held against the log: each is made once more, from the first row on."""

from collections.abc import Sequence

import msgspec

from stagewise.service.fold import Fold, encoded_known
from stagewise.service.records import Kept
from stagewise.service.snapshots import SEAL
from stagewise.service.store.store import Store
from stagewise.service.versions import Version

AT_ONCE = 10_000  # rows that are folded together


def wrong_snapshot(store: Store, name: str, version: Version, kept: Sequence[Kept]) -> str | None:
    """Return which of the snapshots of a version is not what the log comes to, in words; None: all are."""
    folds: dict[float | None, Fold] = {}
    for one in sorted(kept, key=lambda one: one.seq):
        wrong = f"the snapshot of row {one.seq} is not what the log comes to: another release made it, or somebody else"
        try:
            dry_after = msgspec.msgpack.decode(one.whole[SEAL:])["dry_after"] if one.whole else None
        except (msgspec.DecodeError, KeyError, TypeError):
            return wrong
        if dry_after not in folds:
            folds[dry_after] = Fold(version.problem, version.number, version.retired, dry_after)
        fold = folds[dry_after]
        while fold.seq < one.seq:
            fold.take(store.events(name, fold.seq, min(AT_ONCE, one.seq - fold.seq)))
        if one.whole and fold.whole() != one.whole[SEAL:]:
            return wrong
        if encoded_known(fold.known()) != one.content[SEAL:]:
            return wrong
    return None
