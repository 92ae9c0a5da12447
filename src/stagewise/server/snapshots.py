"""Snapshots and checkpoints: what deciders need, encoded and signed, and states at a seal that stand for missing rows.

    signature = HMAC-SHA-256(key, [experiment, version, row, field] ‖ hash of the seal with that row ‖ content)

The key is a secret of the store. A snapshot that was written, changed or moved without the key is not used, nor is
one of a log whose seals have changed since; the log is folded instead. With the key anything can be signed; the audit
therefore folds the log and compares.

The state of an experiment is the fold of its rows from its checkpoint on. A row of the global log has the digest of
each checkpoint, so it is sealed like every row; a checkpoint with another digest is not used.
"""

import hmac
import secrets
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import msgspec
import numpy as np

from stagewise.agent.agent_statistics import Statistics
from stagewise.agent.learned_state import LearnedState
from stagewise.policies.policy import PolicyState
from stagewise.policies.problem import Problem
from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.server.controls import ProblemVersion, build_version
from stagewise.server.decide import PolicySnapshot
from stagewise.server.event_log import (
    CONTROL,
    GLOBAL,
    PROBLEM,
    AppendRequest,
    Event,
    StoredSnapshot,
    compute_digest,
    encode_canonical,
)
from stagewise.server.state_fold import StateFold
from stagewise.server.store.base import Store, StoreUnavailable
from stagewise.server.user_keys import open_rows

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


Content = TypeVar("Content", bound=msgspec.Struct)


class VersionState(msgspec.Struct):
    """The state of one version of a problem."""

    version: int
    problem: dict[str, Any]
    retired: list[str]
    state: bytes


class Checkpoint(msgspec.Struct):
    """The states of an experiment after its first `seq` rows."""

    seq: int
    states: list[VersionState]
    """Of the version in effect at that row, and of each later one, in order."""


class LogEnd(msgspec.Struct):
    """The end of what was removed from one log, as in a part of a seal."""

    seq: int
    decisions: int
    at: int
    highest: int


class Removal(msgspec.Struct):
    """What the removal of all rows up to a seal left behind; changes of controls and problems stay in the log."""

    seal: int
    hash: bytes
    high: int
    """The highest number that this seal or an earlier one has."""
    open: list[int]
    """Numbers below it that it has not."""
    kept: bytes
    """The digest of the leaves of the rows that stay."""
    writers: dict[str, tuple[int, bytes]]
    """The last row of each writer: its place in the writer's chain, and its code."""
    ends: dict[str, LogEnd]


def read_checkpoint(store: Store, experiment: str) -> Checkpoint | None:
    """Return the checkpoint of an experiment; None if it has none. Raises StoreUnavailable."""
    return read_content(store, experiment, Checkpoint)


def read_removal(store: Store) -> Removal | None:
    """Return what was removed from a store; None if nothing was. Raises StoreUnavailable."""
    return read_content(store, GLOBAL, Removal)


def read_content(store: Store, name: str, kind: type[Content]) -> Content | None:
    """Return the content of a checkpoint whose digest is in the log."""
    found = store.checkpoint(name)
    if found is None:
        return None
    number, content = found
    row = store.row(GLOBAL, number)
    digests = {} if row is None else msgspec.json.decode(row.body).get("digests", {})
    if digests.get(name) != compute_digest(content).hex():
        template = (
            "the checkpoint of {name} is not the one whose digest is in row {number} of the log; restore the store "
            "from a backup"
        )
        raise StoreUnavailable(ErrorCode.DIGEST_MISMATCH, template, name=safe_repr(name or "all logs"), number=number)
    return msgspec.msgpack.decode(content, type=kind)


def begin_fold(store: Store, name: str, version: ProblemVersion, feedback_timeout: float | None = None) -> StateFold:
    """Return the fold of a version from which rows are read: at the checkpoint, or before the first row."""
    settings = version.problem, version.number, version.retired, feedback_timeout
    checkpoint = read_checkpoint(store, name)
    if checkpoint is None:
        return StateFold(*settings)
    before = [one for one in checkpoint.states if one.version <= version.number]
    if not before:
        template = "version {version} of {name} ended before row {seq}, and earlier rows are gone"
        data = {"version": version.number, "name": safe_repr(name), "seq": checkpoint.seq}
        raise StoreUnavailable(ErrorCode.UNSUPPORTED, template, **data)
    last = before[-1]
    if last.version == version.number:
        fold = StateFold(*settings)
        fold.restore(last.state, is_checkpoint=True)
    else:
        fold = StateFold(Problem.from_dict(last.problem), last.version, frozenset(last.retired), feedback_timeout)
        fold.restore(last.state, is_checkpoint=True)
        fold.change_version(version.problem, version.number, version.retired)
    return fold


def build_checkpoint(store: Store, name: str, versions: list[ProblemVersion], seq: int) -> Checkpoint:
    """Return the checkpoint after the first `seq` rows, with the states of these versions."""
    states, before = [], read_checkpoint(store, name)
    for version in versions:
        if before is not None and version.number < before.states[0].version:
            continue  # it ended before an earlier checkpoint, which may be later than this one
        fold = begin_fold(store, name, version)
        for event_page in iter_pages(store, name, fold.seq, seq):
            fold.take(open_rows(store, event_page))
        seq = max(seq, fold.seq)
        problem = version.problem.to_dict()
        states.append(VersionState(version.number, problem, sorted(version.retired), fold.encode()))
    return Checkpoint(seq, states)


def iter_pages(store: Store, name: str, after: int, last: int) -> Any:
    """Yield the rows after a place up to another, some at once."""
    while after < last:
        page = store.events(name, after, min(last - after, 10_000))
        if not page or page[0].seq != after + 1:
            template = "row {seq} of {name} is missing; run `stagewise audit verify`"
            raise StoreUnavailable(ErrorCode.STORE_CORRUPT, template, seq=after + 1, name=safe_repr(name))
        yield page
        after = page[-1].seq


def read_changes(store: Store, name: str, removal: Removal) -> list[Event]:
    """Return the changes of controls and problems that a removal left in a log, with the place of its end."""
    end = removal.ends[name].seq if name in removal.ends else 0
    rows = [row for kind in (CONTROL, PROBLEM) for row in store.iter_events_of_kind(name, kind)]
    kept = [row for row in rows if row.number <= removal.high and row.number not in removal.open]
    return [row._replace(seq=end) for row in sorted(kept)]


def append_digests(
    store: Store, what: str, contents: Mapping[str, bytes], actor: str, reason: str, **details: int
) -> int:
    """Append a control to the global log with the digests of new checkpoints; return its number."""
    digests = {name: compute_digest(content).hex() for name, content in contents.items()}
    body = {"what": what, "digests": digests, "actor": actor, "reason": reason, **details}
    (result,) = store.append([AppendRequest(GLOBAL, CONTROL, "", encode_canonical(body))])
    assert result.event is not None
    return result.event.number


def read_all_versions(store: Store, name: str) -> list[ProblemVersion]:
    """Return all versions of a problem, in order."""
    versions = list[ProblemVersion]()
    for event in store.iter_events_of_kind(name, PROBLEM):
        versions.append(build_version(versions[-1] if versions else None, event))
    return versions
