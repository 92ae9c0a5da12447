"""The log: rows of every request, outcome and change, and the seals that order them and make any change evident.

A row's number is drawn from one sequence, after everything in the row was chosen. Writers do not wait for each other:
each has a chain of its own, of message authentication codes under its own key (`WriterChain`). The order of rows
is that of the seals (event_log.py).

    macₖ = HMAC-SHA-256(key of the writer, macₖ₋₁ ‖ row),    mac₀ = 32 zero bytes
    row = [experiment, number, seen, at, kind, key, decision, digest of the request, writer, k] ‖ body

All other tables can be rebuilt from rows and seals, except secrets, whose digests are rows.

Seals: the order of the rows, and what makes a change of it evident.

A seal takes committed rows that no seal has, sorted by number. Rows follow each other by seal, then by number: state,
statistics and replay read them in this order. It is valid for learning because a row that was committed before another
was chosen has a lower number and is in the same seal or an earlier one (docs/theory/server.md).

    H₀ = 32 zero bytes
    H_b = SHA-256(H_{b−1} ‖ [b, at, term, size, highest number, open numbers, Merkle root])

A leaf of the Merkle tree (RFC 6962) is SHA-256(0 ‖ mac ‖ row). Open numbers are those below the highest that no seal
has and that a transaction may still commit; the others are gaps for good.
"""

import hashlib
import hmac
import os
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
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


MAX_SEAL_ROWS = 5_000
TERM_BITS = 40
"""A number is the term in its upper bits, and a count in these: rows of a later term have higher numbers."""


class Seal(NamedTuple):
    """A seal; its rows are in its parts."""

    seal: int = 0
    """1, 2, 3, …"""
    at: int = 0
    term: int = 0
    """How many times another machine took over as the store (0 for the first)."""
    size: int = 0
    """Number of rows."""
    high: int = 0
    """The highest number that this seal or an earlier one has."""
    open: bytes = b""
    """The numbers below it that may still be committed."""
    root: bytes = b""
    hash: bytes = GENESIS_HASH

    @property
    def open_numbers(self) -> list[int]:
        """The numbers below the highest that may still be committed, ascending."""
        return decode_numbers(self.open)


class SealPart(NamedTuple):
    """The rows of one experiment in a seal."""

    experiment: str
    last: int
    """The place of its last row among all rows of the experiment."""
    first: int
    seal: int
    decisions: int
    """Number of decisions of the experiment up to its last row."""
    at: int
    """The latest time of a row up to its last row."""
    highest: int
    """The highest number of the experiment so far."""
    numbers: bytes
    """The numbers of its rows, ascending."""


def encode_numbers(numbers: Iterable[int]) -> bytes:
    """Encode numbers as 64-bit integers."""
    return array("q", numbers).tobytes()


def decode_numbers(content: bytes) -> list[int]:
    """Decode what `encode_numbers` returned."""
    numbers = array("q")
    numbers.frombytes(content)
    return numbers.tolist()


def compute_seal_hash(before: bytes, seal: Seal) -> bytes:
    head = [seal.seal, seal.at, seal.term, seal.size, seal.high, seal.open_numbers, seal.root.hex()]
    return hashlib.sha256(before + encode_canonical(head)).digest()


def build_seal(
    before: Seal,
    rows: Sequence[tuple[str, Event]],
    ends: Mapping[str, SealPart],
    at: int,
    term: int = 0,
    gaps: Collection[int] | None = None,
    encoded: Sequence[bytes] = (),
) -> tuple[Seal, list[SealPart]]:
    """Return the next seal and its parts.

    Args:
        before: The last seal.
        rows: Committed rows that no seal has, sorted by number, with their experiments.
        ends: The last part of each experiment that has one.
        at: The time.
        term: The term of the store.
        gaps: Open numbers that are gaps for good; None: all numbers that the rows leave out.
        encoded: The rows as `Event.encode` returns them, if they are known.
    """
    by_experiment: dict[str, list[Event]] = {}
    for experiment, event in rows:
        by_experiment.setdefault(experiment, []).append(event)
    parts = []
    for experiment, events in by_experiment.items():
        end = ends.get(experiment) or SealPart(experiment, 0, 0, 0, 0, 0, 0, b"")
        parts.append(
            SealPart(
                experiment, end.last + len(events), end.last + 1, before.seal + 1,
                end.decisions + sum(event.kind == DECISION for event in events),
                max(end.at, *(event.at for event in events)), max(end.highest, events[-1].number),
                encode_numbers(event.number for event in events),
            )
        )  # fmt: skip
    numbers = [event.number for _, event in rows]
    high = max(before.high, numbers[-1])
    left = list[int]()
    if gaps is not None:
        start = max(before.high, high >> TERM_BITS << TERM_BITS)  # of an earlier term nothing can come any more
        left = sorted({*before.open_numbers, *range(start + 1, high)}.difference(numbers, gaps))
        left = [number for number in left if number >> TERM_BITS == high >> TERM_BITS]
    encoded = encoded or [event.encode(experiment) for experiment, event in rows]
    root = compute_root([compute_leaf(event.mac, row) for (_, event), row in zip(rows, encoded, strict=True)])
    seal = Seal(before.seal + 1, at, term, len(rows), high, encode_numbers(left), root)
    return seal._replace(hash=compute_seal_hash(before.hash, seal)), parts


class Fence(NamedTuple):
    """Numbers up to one are known to be drawn by transactions that are older than another transaction."""

    id: int = 0
    """A transaction's id, which was taken after `number` was visible."""
    number: int = 0

    def find_gaps(self, open_numbers: Iterable[int], oldest_id: int) -> set[int]:
        """Return the open numbers that are gaps for good once a transaction is the oldest that is not over."""
        return {number for number in open_numbers if number <= self.number} if self.is_over(oldest_id) else set()

    def is_over(self, oldest_id: int) -> bool:
        """Return whether all transactions before the fence are over."""
        return oldest_id > self.id


def number_rows(rows: Iterable[tuple[str, Event]], parts: Iterable[SealPart]) -> dict[str, list[Event]]:
    """Return the rows of a seal by experiment, with their places in its order."""
    sealed, starts = dict[str, list[Event]](), {part.experiment: part.first for part in parts}
    for experiment, event in rows:
        of_experiment = sealed.setdefault(experiment, [])
        of_experiment.append(event._replace(seq=starts[experiment] + len(of_experiment)))
    return sealed


def compute_leaf(mac: bytes, row: bytes) -> bytes:
    return hashlib.sha256(b"\0" + mac + row).digest()


def hash_pair(left: bytes, right: bytes) -> bytes:
    """Return the digest of an inner node."""
    return hashlib.sha256(b"\1" + left + right).digest()


def compute_levels(leaves: Sequence[bytes]) -> list[list[bytes]]:
    """Return all levels of the tree, the leaves first; the last node of an odd level moves up as it is."""
    levels = [list(leaves)]
    while len(levels[-1]) > 1:
        level = levels[-1]
        pairs = [hash_pair(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        levels.append(pairs + level[len(level) - len(level) % 2 :])
    return levels


def compute_root(leaves: Sequence[bytes]) -> bytes:
    """Return the root of the tree over leaves.

    >>> a, b, c = (bytes([i]) * 32 for i in range(3))
    >>> compute_root([a, b, c]) == hash_pair(hash_pair(a, b), c)
    True
    """
    return compute_levels(leaves)[-1][0]


def compute_path(leaves: Sequence[bytes], index: int) -> list[tuple[str, bytes]]:
    """Return the neighbours on the way from a leaf to the root, each with its side.

    >>> a, b, c = (bytes([i]) * 32 for i in range(3))
    >>> follow_path(b, compute_path([a, b, c], 1)) == compute_root([a, b, c])
    True
    """
    path = []
    for level in compute_levels(leaves)[:-1]:
        neighbour = index ^ 1
        if neighbour < len(level):
            path.append(("left" if neighbour < index else "right", level[neighbour]))
        index //= 2
    return path


def follow_path(leaf: bytes, path: Iterable[tuple[str, bytes]]) -> bytes:
    """Return the root that a path leads to."""
    for side, neighbour in path:
        leaf = hash_pair(neighbour, leaf) if side == "left" else hash_pair(leaf, neighbour)
    return leaf
