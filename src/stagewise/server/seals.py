"""Seals: the order of the rows, and what makes a change of it evident.

A seal takes committed rows that no seal has, sorted by number. Rows follow each other by seal, then by number: state,
statistics and replay read them in this order. It is valid for learning because a row that was committed before another
was chosen has a lower number and is in the same seal or an earlier one (docs/theory/server.md).

    H₀ = 32 zero bytes
    H_b = SHA-256(H_{b−1} ‖ [b, at, term, size, highest number, open numbers, Merkle root])

A leaf of the Merkle tree (RFC 6962) is SHA-256(0 ‖ mac ‖ row). Open numbers are those below the highest that no seal
has and that a transaction may still commit; the others are gaps for good.
"""

import hashlib
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from stagewise.server.event_log import DECISION, GENESIS_HASH, Event, encode_canonical

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
