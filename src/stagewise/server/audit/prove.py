"""Proof that one row is in the log: its Merkle path, and the seals from its own up to a receipt.

A proof is checked without the store. It shows that the row was sealed as it is, at its number, in a log whose receipt
the reader has from elsewhere.
"""

import hashlib
from typing import Any

import msgspec

from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import safe_repr
from stagewise.server.audit.log_reader import check_experiment, find_decision
from stagewise.server.audit.verify import Receipt
from stagewise.server.event_log import Event
from stagewise.server.seals import Seal, compute_leaf, compute_path, compute_seal_hash, decode_numbers, follow_path
from stagewise.server.store.base import Store


class Proof(msgspec.Struct):
    """A row, and how the hash of a seal follows from it."""

    experiment: str
    number: int
    row: str
    """What the leaf covers after the code, as text."""
    mac: str
    """The code of the row, hexadecimal."""
    path: list[tuple[str, str]]
    """The neighbours on the way to the Merkle root: side and digest."""
    before: str
    """The hash of the seal before the row's."""
    seals: list[Seal]
    """The row's seal and those after it, up to the receipt."""
    receipt: str
    """Of the last of these seals."""

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()


def prove_decision(store: Store, experiment: str, id_: str, until: int = 0) -> Proof:
    """Return the proof that a decision is in the log, up to a seal (0: its own)."""
    event = find_decision(store, check_experiment(store, experiment), id_)
    own = store.seal_at(experiment, store.find_place(experiment, event.number))
    if not own.seal:
        raise InvalidFile(ErrorCode.NOT_SEALED, "decision {id} is not sealed yet; try again later", id=safe_repr(id_))
    last = max(until, own.seal)
    seals = store.seals(own.seal - 2, last - own.seal + 2) if own.seal > 1 else [Seal(), *store.seals(0, last)]
    if seals[-1].seal != last:
        raise InvalidFile.must_be(ErrorCode.OUT_OF_RANGE, "the seal", until, f"at most {store.last_seal().seal}")
    rows = list[tuple[int, str, Event]]()
    for part in store.parts_of_seals(own.seal - 1, own.seal):
        found = store.read_numbers(part.experiment, decode_numbers(part.numbers))
        rows += [(number, part.experiment, Event(*row)) for number, row in found.items()]
    rows.sort()
    leaves = [compute_leaf(row.mac, row.encode(name)) for _, name, row in rows]
    path = compute_path(leaves, [number for number, _, _ in rows].index(event.number))
    return Proof(
        experiment, event.number, event.encode(experiment).decode(), event.mac.hex(),
        [(side, digest.hex()) for side, digest in path], seals[0].hash.hex(), seals[1:],
        str(Receipt(last, seals[-1].hash.hex(), True)),
    )  # fmt: skip


def check_proof(content: bytes, receipt: str) -> Proof:
    """Return a proof that holds for a receipt. Raises InvalidFile."""
    try:
        proof = msgspec.json.decode(content, type=Proof)
        head: Any = msgspec.json.decode(proof.row[: proof.row.index("]") + 1])
        leaf = hashlib.sha256(b"\0" + bytes.fromhex(proof.mac) + proof.row.encode()).digest()
        root = follow_path(leaf, [(side, bytes.fromhex(digest)) for side, digest in proof.path])
        before = bytes.fromhex(proof.before)
    except (msgspec.DecodeError, ValueError) as error:
        raise InvalidFile(ErrorCode.FILE_CORRUPT, "the proof cannot be read: {error}", error=error) from None
    is_linked = bool(proof.seals) and proof.seals[0].root == root and head[:2] == [proof.experiment, proof.number]
    for seal in proof.seals:
        before = compute_seal_hash(before, seal)
    expected = Receipt(proof.seals[-1].seal if proof.seals else 0, before.hex(), True)
    if not is_linked or Receipt.of(receipt) != expected:
        template = (
            "the proof does not lead to the receipt {receipt}: the row, its path or a seal was changed, or the proof "
            "ends with another seal; make it again with --until"
        )
        raise InvalidFile(ErrorCode.DIGEST_MISMATCH, template, receipt=receipt)
    return proof
