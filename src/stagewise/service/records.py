"""What stands in the log: one row for everything that was asked, answered or changed, chained by digests.

    chain₀ = 32 zero bytes,   chainₙ = SHA-256(chainₙ₋₁ ‖ [experiment, seq, at, kind, key, place, asked] ‖ body)

Everything else in a store can be made again from these rows, but secrets: of each, a row has the digest.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

Kind = Literal["problem", "decision", "outcome", "control", "tick", "log"]
Verdict = Literal["new", "same", "conflict", "unknown", "stale"]

PROBLEM: Final = "problem"
DECISION: Final = "decision"
OUTCOME: Final = "outcome"
CONTROL: Final = "control"
TICK: Final = "tick"
LOG: Final = "log"

NEW: Final = "new"
SAME: Final = "same"
CONFLICT: Final = "conflict"
UNKNOWN: Final = "unknown"
STALE: Final = "stale"

ORIGIN = bytes(32)
KEY, REVOKED, SECRET = "key", "revoked key", "secret"  # what controls everywhere tell besides: who may ask at all
SHOWN = "shown"  # beside the signals: false where a decision was not carried out
EVERYWHERE = ""  # the experiment of what holds for all of them: its log holds controls alone

_encoder = msgspec.json.Encoder(order="sorted")


def canonical(value: Any) -> bytes:
    """Return the one JSON text of a value: names sorted, no spaces, floats in their shortest exact form.

    >>> canonical({"b": 0.1, "a": [1, None]})
    b'{"a":[1,null],"b":0.1}'
    """
    return _encoder.encode(value)


def digest(content: bytes) -> bytes:
    """Return what tells one content from another."""
    return hashlib.sha256(content).digest()


class Event(NamedTuple):
    """A row of an experiment's log."""

    seq: int
    """1, 2, 3, … without a gap."""
    at: int
    """When, in microseconds since 1970 by the store's clock; it never decreases from row to row."""
    kind: Kind
    key: str
    """What is unique among the rows of a kind: the id of a decision or an outcome, the number of any other."""
    place: int
    """A decision's number, 0, 1, … in the order of the log; an outcome has its decision's; −1: neither."""
    body: bytes
    """What was said, as canonical JSON."""
    chain: bytes
    """The digest of this row and all before it."""
    asked: bytes = b""
    """The digest of what a client sent, which tells a retry from another question under the same id."""


def chained(before: bytes, experiment: str, event: Event) -> bytes:
    """Return the digest of a row that follows a digest."""
    told = event.asked.hex()
    return linked(before, [experiment, event.seq, event.at, event.kind, event.key, event.place, told], event.body)


def linked(before: bytes, head: list[str | int], body: bytes) -> bytes:
    """Return the digest of a row that is not made yet."""
    return hashlib.sha256(before + canonical(head) + body).digest()


class Head(NamedTuple):
    """Where the log of an experiment ends."""

    seq: int = 0
    at: int = 0
    places: int = 0
    """How many decisions there are."""
    control: int = 0
    """The row of the last control or problem: who decided by older ones decides again."""
    chain: bytes = ORIGIN


class Ask(NamedTuple):
    """A row that somebody wants to have written; whether it can be is settled in the transaction that writes it."""

    experiment: str
    kind: Kind
    key: str
    """Empty: the store gives one (the row's number; with a "#" before it for decisions and outcomes)."""
    body: bytes
    asked: bytes = b""
    """The digest of what a client sent: the same id with another is a conflict (decisions and outcomes with an id).

    Of an offline log's parts: the digest of the whole log.
    """
    control: tuple[int, int] = (-1, -1)
    """A decision: by which rows of controls it was made, the experiment's and everywhere's; −1: by any."""
    of: str = ""
    """An outcome: the id of its decision."""
    values: Mapping[str, float] = {}
    """An outcome: its signals; SHOWN: 0.0 where it was not carried out."""
    at: int = 0
    """The earliest time it may have; 0: the store's clock tells."""


class Settled(NamedTuple):
    """What became of an ask.

    "new": written. "same": it was there, with the same content. "conflict": it was there, with other content; `words`
    say what. "unknown": an outcome of no decision. "stale": controls changed meanwhile, decide again.
    """

    verdict: Verdict
    event: Event | None = None
    """The row: the new one, or the one that was there; None too where an outcome without an id adds nothing."""
    words: str = ""
    taken: tuple[str, ...] = ()
    """An outcome: its signals that are in the log by this ask."""
    known: tuple[str, ...] = ()
    """An outcome: its signals that were in the log already, with the same value."""
    dated: int = 0
    """An outcome: when its decision was made."""


class Kept(NamedTuple):
    """A snapshot as a store keeps it."""

    experiment: str
    problem: int
    """The version of the problem."""
    seq: int
    """The last row that it knows."""
    content: bytes
    """What a decider needs (`Snapshot`)."""
    whole: bytes = b""
    """What a learner needs to go on from there; it is larger, and kept less often."""


class KeyRow(NamedTuple):
    """An access key; the secret itself is nowhere."""

    name: str
    """Public: the first part of the key."""
    digest: bytes
    role: str
    note: str
    made: int
    revoked: int | None = None
