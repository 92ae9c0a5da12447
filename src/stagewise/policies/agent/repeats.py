"""Whether a log, or some of its rows, was learned already: every outcome counts once.

Two things are kept among an agent's notes, and saved with them. A digest of every log, which does not depend on the
order of its rows. And hashes of the rows that were learned, all of them at first, later those below a bar that is
halved whenever there are too many: a sample that a log which overlaps is held against, however its rows were put into
files.
"""

import base64
import math
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.compile import Ints
from stagewise.problem.checks import switch
from stagewise.problem.errors import InvalidOutcome
from stagewise.problem.row_hash import Hashes, hashes_of

KEPT = 10_000  # logs that are remembered, the latest
MOST_ROWS = 1 << 14  # hashes of rows that are remembered
RARE = 30.0  # nats: honest logs have as much in common with probability e⁻³⁰
WAY_OUT = "give again=True where these are other outcomes that happen to be the same"


class LogMark(NamedTuple):
    """What a log is known again by."""

    digest: str | None  # None: another honest log may well be the same
    hashes: Hashes  # of its different rows, sorted
    counts: Ints  # how many rows each of them stands for

    @property
    def rows(self) -> int:
        """How many rows the log has."""
        return int(self.counts.sum())


def mark_of(actions: Any, values: Any) -> LogMark:
    """Return what a log is known by, as it is learned: in whatever order its rows are, where that is rare enough.

    Where rows come with frequencies p = c/n, n honest rows are the same again, in some order, with probability
    n!/Πc! Πpᶜ, and in the same order with Πpᶜ. Twenty rows without a context, all of them of one action to which nobody
    answered, say nothing; a thousand of several do.

    >>> [mark_of(rows, np.zeros((40, 2))).digest is None for rows in (np.zeros(40), np.arange(40))]
    [True, False]
    """
    if not len(actions):
        return LogMark(None, np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64))
    parts = (np.asarray(part, dtype=np.float64) for part in (actions, values))
    hashes = hashes_of(np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1))
    distinct, counts = np.unique(hashes, return_counts=True)
    in_order = float(counts @ np.log(counts.sum() / counts))
    orders = math.lgamma(len(hashes) + 1.0) - sum(many * math.lgamma(count + 1.0) for count, many in tally(counts))
    in_any_order = in_order - orders
    if in_any_order >= RARE:
        content = b"any order" + distinct.tobytes() + counts.tobytes()
    elif in_order >= RARE:
        content = b"this order" + hashes.tobytes()
    else:
        return LogMark(None, distinct, counts)
    return LogMark(sha256(content).hexdigest()[:32], distinct, counts)


def tally(counts: Any) -> list[tuple[int, int]]:
    """Return every count that there is, and how often."""
    return [(int(count), int(many)) for count, many in zip(*np.unique(counts, return_counts=True), strict=True)]


@dataclass
class LearnedRows:
    """The rows of the logs that were learned, by their hashes: all, or those below a bar where they are many."""

    hashes: Hashes = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    """Sorted, each once."""
    halvings: int = 0
    """How often the bar was halved: one row in 2^halvings is in the sample."""
    taken: int = 0
    """How many rows of the sample were learned."""
    twice: int = 0
    """How many of them were the same as another: so often honest rows are."""

    def below(self, hashes: Hashes) -> int:
        """Return how many of some hashes, which are sorted, are below the bar."""
        return hashes.size if not self.halvings else int(np.searchsorted(hashes, np.uint64(1 << (64 - self.halvings))))

    def known(self, mark: LogMark) -> tuple[int, int]:
        """Return how many different rows of a log are in the sample, and how many of them were learned."""
        asked = mark.hashes[: self.below(mark.hashes)]
        places = np.searchsorted(asked, self.hashes)
        there = places < asked.size
        return asked.size, int((asked[places[there]] == self.hashes[there]).sum())

    def overlaps(self, asked: int, known: int) -> bool:
        """Say whether more rows were learned already than honest logs have in common.

        Of the rows that were learned, a share was equal to another; twice that is taken for the chance q that a row of
        an honest log is equal to one of them. Of n rows k or more are with probability exp(−n kl(k/n, q)) at most.
        """
        chance = 2.0 * (self.twice + 1.0) / (self.taken + 1.0)
        if not asked or known <= chance * asked:
            return False
        share = known / asked
        rest = (1.0 - share) * math.log((1.0 - share) / (1.0 - chance)) if share < 1.0 else 0.0
        return asked * (share * math.log(share / chance) + rest) >= RARE

    def take(self, mark: LogMark, *, honest: bool) -> None:
        """Remember rows that were learned; those that somebody says are others say nothing of how honest rows agree."""
        while self.below(mark.hashes) > MOST_ROWS:
            self.lower()
        some = self.below(mark.hashes)
        if honest:
            rows = int(mark.counts[:some].sum())
            self.taken, self.twice = self.taken + rows, self.twice + rows - some + self.known(mark)[1]
        self.hashes = np.union1d(self.hashes, mark.hashes[:some])
        while self.hashes.size > MOST_ROWS:
            self.lower()

    def lower(self) -> None:
        """Halve the bar."""
        self.halvings += 1
        self.hashes = self.hashes[: self.below(self.hashes)]

    def plain(self) -> dict[str, Any]:
        """Return the sample as JSON holds it."""
        content = base64.b64encode(self.hashes.astype("<u8").tobytes()).decode()
        return {"hashes": content, "halvings": self.halvings, "taken": self.taken, "twice": self.twice}

    @classmethod
    def of(cls, plain: Any) -> "LearnedRows":
        """Return the sample of a file, which may have none."""
        if not plain:
            return cls()
        hashes = np.frombuffer(base64.b64decode(plain["hashes"], validate=True), dtype="<u8").astype(np.uint64)
        counts = {name: int(plain[name]) for name in ("halvings", "taken", "twice")}
        if min(counts.values()) < 0 or counts["halvings"] > 63:
            raise ValueError("the rows of logs that were learned have counts that can be none")
        return cls(np.unique(hashes), **counts)


def check_first(notes: Any, mark: LogMark, again: Any) -> None:
    """Refuse a log that was learned already, all or part of it, unless somebody says that it is another one."""
    if switch(again, "again"):
        return
    if mark.digest in notes.logs:
        raise InvalidOutcome(
            f"this log was learned already, all {notes.logs[mark.digest]:,} rows of it, and once is all that an "
            f"outcome counts; leave it out, or {WAY_OUT}"
        )
    asked, known = notes.rows.known(mark)
    if notes.rows.overlaps(asked, known):
        looked = f" of {asked:,} that were looked up" if notes.rows.halvings else ""
        raise InvalidOutcome(
            f"a part of this log was learned already, {known:,}{looked} of its {mark.rows:,} rows, and once is "
            f"all that an outcome counts; leave these rows out, or {WAY_OUT}"
        )


def remember(notes: Any, mark: LogMark, again: bool) -> None:
    """Remember a log that was learned."""
    notes.rows.take(mark, honest=not again)
    if mark.digest is not None:
        notes.logs.pop(mark.digest, None)
        notes.logs[mark.digest] = mark.rows
        while len(notes.logs) > KEPT:
            del notes.logs[next(iter(notes.logs))]
