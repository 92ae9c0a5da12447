"""Seals of snapshots: what was learned is only taken from a snapshot that a desk of this store made of this very log.

    seal = HMAC-SHA-256(key, [experiment, version, row, part] ‖ chain of that row ‖ content)

The key is a secret of the store. So a snapshot that somebody without it wrote, changed or moved is not used, and
neither is one of a log that goes on otherwise now; the log is folded instead. Who has the key can seal what he likes:
an audit folds the log, and compares.
"""

import hmac
import secrets
from typing import Literal

from stagewise.problem.errors import StagewiseError
from stagewise.service.records import ORIGIN, Kept, canonical
from stagewise.service.store.store import Store

SEAL = 32  # bytes, before the content
KEY = "snapshots"

Part = Literal["content", "whole"]


class UnsealedSnapshot(StagewiseError):
    """A snapshot is not one that a desk of this store made of this log."""


class Seals:
    """Seal and open snapshots of one store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._key = b""

    def begin(self) -> None:
        """Have the key made where there is none: that is told everywhere, so it is done before decisions are made."""
        self._key = self.store.secret(KEY, secrets.token_bytes(32))

    def seal(self, kept: Kept) -> Kept:
        """Return a snapshot with seals."""
        whole = self._sealed(kept, "whole") if kept.whole else b""
        return kept._replace(content=self._sealed(kept, "content"), whole=whole)

    def open(self, kept: Kept, part: Part) -> bytes:
        """Return a part of a snapshot without its seal. Raises UnsealedSnapshot."""
        plain = kept._replace(content=kept.content[SEAL:], whole=kept.whole[SEAL:])
        if not hmac.compare_digest(self._sealed(plain, part), getattr(kept, part)):
            raise UnsealedSnapshot(f"it is not one that a desk made of this log up to row {kept.seq}")
        return bytes(getattr(plain, part))

    def _sealed(self, kept: Kept, part: Part) -> bytes:
        if not self._key:
            self.begin()
        rows = self.store.events(kept.experiment, kept.seq - 1, 1) if kept.seq else []
        chain = rows[0].chain if rows and rows[0].seq == kept.seq else ORIGIN
        content: bytes = getattr(kept, part)
        head = canonical([kept.experiment, kept.problem, kept.seq, part])
        return hmac.digest(self._key, head + chain + content, "sha256") + content
