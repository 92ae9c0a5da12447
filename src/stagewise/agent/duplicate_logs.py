"""Detection of logs that are already learned, fully or in part: every outcome counts once.

An agent's statistics hold a digest of every log, which does not depend on the order of its rows, and a sample of the
hashes of learned rows: all of them at first, later those below a threshold that is halved whenever there are too many.
"""

import base64
import math
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Ints
from stagewise.problem.checks import check_bool
from stagewise.problem.columns import Hashes, hash_rows
from stagewise.problem.errors import ErrorCode, InvalidOutcome

MAX_LOGS = 10_000  # logs that are remembered, the latest
MAX_ROWS = 1 << 14  # hashes of rows that are remembered
MIN_SURPRISE = 30.0  # nats: honest logs have as much in common with probability e⁻³⁰
OVERRIDE_HINT = "give again=True where these are other outcomes that happen to be the same"


class LogFingerprint(NamedTuple):
    """The digest and the row hashes of a log."""

    digest: str | None  # None: another honest log may well be the same
    hashes: Hashes  # of its different rows, sorted
    counts: Ints  # how many rows each of them stands for

    @property
    def rows(self) -> int:
        return int(self.counts.sum())


def compute_fingerprint(actions: Any, values: Any) -> LogFingerprint:
    """Return the fingerprint of a log; it has a digest only if an equal log is improbable.

    If rows have frequencies p = c/n, n independent rows are equal again, in some order, with probability n!/Πc! Πpᶜ,
    and in the same order with Πpᶜ. Twenty rows without a context, all of one action without a reward, identify nothing;
    a thousand rows of several actions do.
    """
    if not len(actions):
        return LogFingerprint(None, np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64))
    parts = (np.asarray(part, dtype=np.float64) for part in (actions, values))
    hashes = hash_rows(np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1))
    distinct, counts = np.unique(hashes, return_counts=True)
    in_order = float(counts @ np.log(counts.sum() / counts))
    orders = math.lgamma(len(hashes) + 1.0) - sum(
        many * math.lgamma(count + 1.0) for count, many in count_values(counts)
    )
    in_any_order = in_order - orders
    if in_any_order >= MIN_SURPRISE:
        content = b"any order" + distinct.tobytes() + counts.tobytes()
    elif in_order >= MIN_SURPRISE:
        content = b"this order" + hashes.tobytes()
    else:
        return LogFingerprint(None, distinct, counts)
    return LogFingerprint(sha256(content).hexdigest()[:32], distinct, counts)


def count_values(counts: Any) -> list[tuple[int, int]]:
    """Return every distinct count, and how often it occurs."""
    return [(int(count), int(many)) for count, many in zip(*np.unique(counts, return_counts=True), strict=True)]


@dataclass
class LearnedRows:
    """The hashes of the rows of learned logs: all, or those below a threshold."""

    hashes: Hashes = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    """Sorted, each once."""
    halvings: int = 0
    """How often the bar was halved: one row in 2^halvings is in the sample."""
    taken: int = 0
    """How many rows of the sample were learned."""
    twice: int = 0
    """How many of them were the same as another: so often honest rows are."""

    def below(self, hashes: Hashes) -> int:
        """Return how many of the sorted hashes are below the threshold."""
        return hashes.size if not self.halvings else int(np.searchsorted(hashes, np.uint64(1 << (64 - self.halvings))))

    def known(self, fingerprint: LogFingerprint) -> tuple[int, int]:
        """Return how many distinct rows of a log are in the sample, and how many of them are learned."""
        sampled = fingerprint.hashes[: self.below(fingerprint.hashes)]
        positions = np.searchsorted(sampled, self.hashes)
        in_range = positions < sampled.size
        return sampled.size, int((sampled[positions[in_range]] == self.hashes[in_range]).sum())

    def overlaps(self, asked: int, known: int) -> bool:
        """Return whether more rows are learned already than independent logs have in common.

        Twice the share of learned rows that equal another one is an upper estimate q of the probability that a new row
        equals a learned one. Of n rows, k or more do with probability at most exp(−n kl(k/n, q)).
        """
        chance = 2.0 * (self.twice + 1.0) / (self.taken + 1.0)
        if not asked or known <= chance * asked:
            return False
        share = known / asked
        rest = (1.0 - share) * math.log((1.0 - share) / (1.0 - chance)) if share < 1.0 else 0.0
        return asked * (share * math.log(share / chance) + rest) >= MIN_SURPRISE

    def take(self, fingerprint: LogFingerprint, *, honest: bool) -> None:
        """Add learned rows; rows of `again=True` do not count as independent."""
        while self.below(fingerprint.hashes) > MAX_ROWS:
            self.lower()
        sampled = self.below(fingerprint.hashes)
        if honest:
            rows = int(fingerprint.counts[:sampled].sum())
            self.taken, self.twice = self.taken + rows, self.twice + rows - sampled + self.known(fingerprint)[1]
        self.hashes = np.union1d(self.hashes, fingerprint.hashes[:sampled])
        while self.hashes.size > MAX_ROWS:
            self.lower()

    def lower(self) -> None:
        """Halve the threshold."""
        self.halvings += 1
        self.hashes = self.hashes[: self.below(self.hashes)]

    def to_dict(self) -> dict[str, Any]:
        """Return the sample as JSON holds it."""
        content = base64.b64encode(self.hashes.astype("<u8").tobytes()).decode()
        return {"hashes": content, "halvings": self.halvings, "taken": self.taken, "twice": self.twice}

    @classmethod
    def from_dict(cls, content: Any) -> "LearnedRows":
        """Return the sample that `to_dict` wrote."""
        if not content:
            return cls()
        hashes = np.frombuffer(base64.b64decode(content["hashes"], validate=True), dtype="<u8").astype(np.uint64)
        counts = {name: int(content[name]) for name in ("halvings", "taken", "twice")}
        if min(counts.values()) < 0 or counts["halvings"] > 63:
            raise ValueError("the rows of logs that were learned have counts that can be none")
        return cls(np.unique(hashes), **counts)


def check_not_learned(statistics: Any, fingerprint: LogFingerprint, again: Any) -> None:
    """Raise if all or part of a log is already learned, unless `again` is True."""
    if check_bool(again, "again"):
        return
    if fingerprint.digest in statistics.logs:
        template = (
            "this log is already learned, all {logs:,} rows of it, and an outcome counts once; leave "
            "it out, or {override_hint}"
        )
        data = {"logs": statistics.logs[fingerprint.digest], "override_hint": OVERRIDE_HINT}
        raise InvalidOutcome(ErrorCode.LOG_ALREADY_LEARNED, template, **data)
    sampled, learned = statistics.rows.known(fingerprint)
    if statistics.rows.overlaps(sampled, learned):
        sample_note = f" of {sampled:,} sampled rows" if statistics.rows.halvings else ""
        raise InvalidOutcome(
            ErrorCode.LOG_ALREADY_LEARNED,
            "part of this log is already learned, {learned:,}{sample_note} of its {rows:,} rows, and an "
            "outcome counts once; leave these rows out, or {override_hint}",
            learned=learned,
            sample_note=sample_note,
            rows=fingerprint.rows,
            override_hint=OVERRIDE_HINT,
        )


def remember_log(statistics: Any, fingerprint: LogFingerprint, again: bool) -> None:
    statistics.rows.take(fingerprint, honest=not again)
    if fingerprint.digest is not None:
        statistics.logs.pop(fingerprint.digest, None)
        statistics.logs[fingerprint.digest] = fingerprint.rows
        while len(statistics.logs) > MAX_LOGS:
            del statistics.logs[next(iter(statistics.logs))]
