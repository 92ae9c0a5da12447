"""Rows of the log: every request, outcome and change.

A row's number is drawn from one sequence, after everything in the row was chosen. Writers do not wait for each other:
each has a chain of its own, of message authentication codes under its own key (`WriterChain`). The order of rows
is that of the seals (seals.py).

    macₖ = HMAC-SHA-256(key of the writer, macₖ₋₁ ‖ row),    mac₀ = 32 zero bytes
    row = [experiment, number, seen, at, kind, key, decision, digest of the request, writer, k] ‖ body

All other tables can be rebuilt from rows and seals, except secrets, whose digests are rows.
"""

import hashlib
import hmac
import os
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

GENESIS_MAC = GENESIS_HASH = bytes(32)  # before the first row of a writer; before the first seal
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
    """A row of the log."""

    number: int
    """Drawn from one sequence of the store, after the row was chosen; numbers have gaps."""
    at: int
    """Microseconds since 1970 by the clock of its writer."""
    kind: Kind
    key: str
    """Unique among the rows of a kind: the id of a decision or outcome, the row's number otherwise."""
    decision: int
    """For an outcome: the number of its decision; −1 otherwise."""
    body: bytes
    """Canonical JSON."""
    mac: bytes = b""
    """The code of this row and of all rows that its writer wrote before."""
    request_digest: bytes = b""
    """The digest of the client's request; tells a retry from another request with the same id."""
    seen: int = 0
    """The highest number that was visible when the row was chosen; always below `number`."""
    writer: str = ""
    link: int = 0
    """1, 2, 3, … among the rows of its writer."""
    seq: int = 0
    """1, 2, 3, … in the order of the seals, in its experiment; 0: not sealed yet."""

    def encode(self, experiment: str) -> bytes:
        """Return what a code and a seal cover: everything but the code and the place in the order."""
        number, at, kind, key, decision, body, _, request_digest, seen, writer, link, _ = self
        return encode_row(experiment, number, at, kind, key, decision, body, request_digest, seen, writer, link)

    @property
    def receipt(self) -> str:
        """The number and the code, as a client gets them."""
        return f"{self.number}:{self.mac.hex()}"


def encode_row(
    experiment: str, number: int, at: int, kind: str, key: str, decision: int, body: bytes, request_digest: bytes,
    seen: int, writer: str, link: int,
) -> bytes:  # fmt: skip
    head = [experiment, number, seen, at, kind, key, decision, request_digest.hex(), writer, link]
    return _encoder.encode(head) + body


class WriterChain(NamedTuple):
    """The end of the chain of one writer; a connection is a writer, and a failed commit ends its chain."""

    writer: str
    key: bytes
    link: int = 0
    mac: bytes = GENESIS_MAC

    @classmethod
    def begin(cls, secret: bytes) -> "WriterChain":
        """Begin the chain of a new writer with a random name."""
        writer = os.urandom(8).hex()
        return cls(writer, derive_writer_key(secret, writer))

    def compute_mac(self, row: bytes) -> bytes:
        """Return the code of the encoded row that follows."""
        return hmac.digest(self.key, self.mac + row, "sha256")

    def sign(self, experiment: str, event: Event) -> "tuple[WriterChain, Event, bytes]":
        """Return the chain with one more row, that row, and its encoded form."""
        number, at, kind, key, decision, body, _, request_digest, seen, *_ = event
        writer, link = self.writer, self.link + 1
        row = encode_row(experiment, number, at, kind, key, decision, body, request_digest, seen, writer, link)
        mac = self.compute_mac(row)
        signed = Event(number, at, kind, key, decision, body, mac, request_digest, seen, writer, link)
        return WriterChain(writer, self.key, link, mac), signed, row


def derive_writer_key(secret: bytes, writer: str) -> bytes:
    return hmac.digest(secret, writer.encode(), "sha256")


class LogHead(NamedTuple):
    """The end of an experiment's log, sealed or not."""

    seq: int = 0
    """Number of rows."""
    at: int = 0
    """The time of the last row."""
    decision_count: int = 0
    control: int = 0
    """The number of the last control or problem row; a decision made with older controls is stale."""
    sealed: int = 0
    """Number of sealed rows."""


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
    """For a decision: the numbers of the control rows it was made with, of the experiment and of all; −1: any."""
    decision_id: str = ""
    """For an outcome: the id of its decision."""
    values: Mapping[str, float] = {}
    """For an outcome: its signals; SHOWN is 0.0 if the decision was not carried out."""
    seen: int = -1
    """The highest number that was visible when the row was chosen; −1: when its transaction began."""


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
    """Number of rows that it includes, in the order of the seals."""
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
