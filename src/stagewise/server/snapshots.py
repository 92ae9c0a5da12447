"""Snapshots: what deciders need, encoded, and signed so that only a server of this store can have made them.

    signature = HMAC-SHA-256(key, [experiment, version, row, field] ‖ hash of the seal with that row ‖ content)

The key is a secret of the store. A snapshot that was written, changed or moved without the key is not used, nor is
one of a log whose seals have changed since; the log is folded instead. With the key anything can be signed; the audit
therefore folds the log and compares.
"""

import hmac
import secrets
from typing import Literal

import msgspec
import numpy as np

from stagewise.agent.learned_state import LearnedState
from stagewise.agent.statistics import Statistics
from stagewise.policies.policy import PolicyState
from stagewise.policies.problem import Problem
from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.server.decide import PolicySnapshot
from stagewise.server.event_log import StoredSnapshot, encode_canonical
from stagewise.server.store.base import Store

SIGNATURE_BYTES = 32  # before the content
SECRET_NAME = "snapshots"

SnapshotField = Literal["content", "learner_state"]


def build_initial_snapshot(problem: Problem, version: int, retired: frozenset[str]) -> PolicySnapshot:
    """Return the snapshot before any row is learned."""
    return PolicySnapshot(problem, LearnedState(problem.policy()), version, retired, 0)


def encode_snapshot(snapshot: PolicySnapshot) -> bytes:
    """Encode what a decider in another process needs besides the problem."""
    learned = snapshot.learned
    return msgspec.msgpack.encode(
        {
            "seq": snapshot.seq,
            "seen": snapshot.seen,
            "memory": learned.state.memory.tobytes(),
            "statistics": learned.statistics.to_dict(),
        }
    )


def decode_snapshot(problem: Problem, version: int, retired: frozenset[str], content: bytes) -> PolicySnapshot:
    """Decode what `encode_snapshot` returned."""
    initial, decoded = build_initial_snapshot(problem, version, retired), msgspec.msgpack.decode(content)
    state = initial.policy.check_state(PolicyState(np.frombuffer(decoded["memory"]).copy()))
    learned = LearnedState(initial.policy, state, Statistics.from_dict(decoded["statistics"]))
    return initial._replace(seq=decoded["seq"], seen=decoded["seen"], learned=learned)


class InvalidSignature(StagewiseError):
    """The snapshot was not made by a server of this store from this log."""


class SnapshotSigner:
    """Sign and open snapshots of one store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._key = b""

    def begin(self) -> None:
        """Create the key if there is none; this appends to the global log, so it happens before decisions."""
        self._key = self.store.secret(SECRET_NAME, secrets.token_bytes(32))

    def sign(self, stored: StoredSnapshot) -> StoredSnapshot:
        learner_state = self._sign_field(stored, "learner_state") if stored.learner_state else b""
        return stored._replace(content=self._sign_field(stored, "content"), learner_state=learner_state)

    def open(self, stored: StoredSnapshot, field: SnapshotField) -> bytes:
        """Return a field of a snapshot without its signature. Raises InvalidSignature."""
        unsigned = stored._replace(
            content=stored.content[SIGNATURE_BYTES:], learner_state=stored.learner_state[SIGNATURE_BYTES:]
        )
        if not hmac.compare_digest(self._sign_field(unsigned, field), getattr(stored, field)):
            template = "the snapshot was not made by a server from this log up to row {seq}"
            raise InvalidSignature(ErrorCode.DIGEST_MISMATCH, template, seq=stored.seq)
        return bytes(getattr(unsigned, field))

    def _sign_field(self, stored: StoredSnapshot, field: SnapshotField) -> bytes:
        if not self._key:
            self.begin()
        seal = self.store.seal_at(stored.experiment, stored.seq)
        content: bytes = getattr(stored, field)
        head = encode_canonical([stored.experiment, stored.problem, stored.seq, field])
        return hmac.digest(self._key, head + seal.hash + content, "sha256") + content
