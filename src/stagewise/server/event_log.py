"""Rows of the log: every request, outcome and change, in a hash chain.

    chain₀ = 32 zero bytes
    chainₙ = SHA-256(chainₙ₋₁ ‖ [experiment, seq, at, kind, key, decision_index, request_digest] ‖ body)

All other tables can be rebuilt from these rows, except secrets, whose digests are rows.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

Kind = Literal["problem", "decision", "outcome", "control", "tick", "log"]
AppendStatus = Literal["new", "duplicate", "conflict", "unknown", "stale"]

PROBLEM: Final = "problem"
DECISION: Final = "decision"
OUTCOME: Final = "outcome"
CONTROL: Final = "control"
TICK: Final = "tick"
LOG: Final = "log"

NEW: Final = "new"
DUPLICATE: Final = "duplicate"
CONFLICT: Final = "conflict"
UNKNOWN: Final = "unknown"
STALE: Final = "stale"

GENESIS_HASH = bytes(32)
KEY, REVOKED_KEY, SECRET = "key", "revoked key", "secret"  # controls of the global log that are about keys and secrets
SHOWN = "shown"  # reported with the signals: false if the decision was not carried out
GLOBAL = ""  # the name of the global log, which has only controls, for all experiments

_encoder = msgspec.json.Encoder(order="sorted")


def encode_canonical(value: Any) -> bytes:
    """Return the canonical JSON of a value: sorted names, no spaces, shortest exact floats.

    >>> encode_canonical({"b": 0.1, "a": [1, None]})
    b'{"a":[1,null],"b":0.1}'
    """
    return _encoder.encode(value)


def compute_digest(content: bytes) -> bytes:
    """Return the SHA-256 digest of content."""
    return hashlib.sha256(content).digest()


class Event(NamedTuple):
    """A row of an experiment's log."""

    seq: int
    """1, 2, 3, … without gaps."""
    at: int
    """Microseconds since 1970 by the store's clock; never decreases from row to row."""
    kind: Kind
    key: str
    """Unique among the rows of a kind: the id of a decision or outcome, the row number otherwise."""
    decision_index: int
    """The number of a decision, from 0; an outcome has its decision's number, other rows −1."""
    body: bytes
    """Canonical JSON."""
    chain: bytes
    """The digest of this row and all rows before it."""
    request_digest: bytes = b""
    """The digest of the client's request; tells a retry from another request with the same id."""


def compute_chain(before: bytes, experiment: str, event: Event) -> bytes:
    """Return the chain digest of a row."""
    request_digest = event.request_digest.hex()
    return compute_link(
        before,
        [experiment, event.seq, event.at, event.kind, event.key, event.decision_index, request_digest],
        event.body,
    )


def compute_link(before: bytes, head: list[str | int], body: bytes) -> bytes:
    """Return the chain digest of a row that is not built yet."""
    return hashlib.sha256(before + encode_canonical(head) + body).digest()


class LogHead(NamedTuple):
    """The end of an experiment's log."""

    seq: int = 0
    at: int = 0
    decision_count: int = 0
    """Number of decisions."""
    control: int = 0
    """The last control or problem row; a decision made with older controls is stale."""
    chain: bytes = GENESIS_HASH


class AppendRequest(NamedTuple):
    """A row to append; the transaction that writes it decides whether it can be."""

    experiment: str
    kind: Kind
    key: str
    """Empty: the store assigns one (the row's number; with the prefix "#" for decisions and outcomes)."""
    body: bytes
    request_digest: bytes = b""
    """The digest of the client's request: the same id with another digest is a conflict.

    For parts of an offline log: the digest of the complete log.
    """
    control: tuple[int, int] = (-1, -1)
    """For a decision: the control rows it was made with, of the experiment and of the global log; −1: any."""
    decision_id: str = ""
    """For an outcome: the id of its decision."""
    values: Mapping[str, float] = {}
    """For an outcome: its signals; SHOWN is 0.0 if the decision was not carried out."""
    at: int = 0
    """The earliest time of the row; 0: the store's clock."""


class AppendResult(NamedTuple):
    """The result of an append request.

    "new": written. "duplicate": exists with the same content. "conflict": exists with other content; see `message`.
    "unknown": the outcome of an unknown decision. "stale": the controls changed, decide again.
    """

    status: AppendStatus
    event: Event | None = None
    """The new or existing row; None if an outcome without an id adds nothing."""
    message: str = ""
    accepted: tuple[str, ...] = ()
    """For an outcome: the signals that this request added."""
    duplicate: tuple[str, ...] = ()
    """For an outcome: the signals that already had this value."""
    decided_at: int = 0
    """For an outcome: the time of its decision."""


class StoredSnapshot(NamedTuple):
    """A snapshot in the store."""

    experiment: str
    problem: int
    """The version of the problem."""
    seq: int
    """The last row it includes."""
    content: bytes
    """The encoded `PolicySnapshot`."""
    learner_state: bytes = b""
    """The encoded `StateFold`, from which a learner continues; larger and saved less often."""


class KeyRow(NamedTuple):
    """An access key; its secret is not stored."""

    name: str
    """Public: the first part of the key."""
    digest: bytes
    role: str
    note: str
    made: int
    revoked: int | None = None
