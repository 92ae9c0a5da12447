"""The order in which rows count: by time, else random (docs/theory/evaluation.md).

A confidence sequence uses rows one after another and learns from earlier ones, so their order must not depend on the
outcomes. The order of a file may. The random order is derived from a digest of the rows, so the same rows always have
the same order, and nobody chooses it.
"""

from hashlib import blake2b, sha256
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.engine.compile import Flags, Ints
from stagewise.launch.decision_log import Log
from stagewise.launch.evaluation.logging_propensities import Propensities
from stagewise.launch.notes import Note, NoteCode
from stagewise.launch.splitmix import GOLDEN_GAMMA, finalize_bits, hash_row_numbers

Digests = npt.NDArray[np.uint64]


class RowOrder(NamedTuple):
    """The order of a log's rows."""

    rows: Ints
    """The row indices (n,) in the order in which they count."""
    is_random: bool = False
    """Whether the order is random, because times are missing."""
    missing_times: int | None = None
    """How many rows have no time; None if the log has no times at all, or all of them."""
    tie_count: int = 0
    """How many rows have the time of another; their order is random."""

    def make_note(self, propensities: Propensities | None) -> Note | None:
        """Return a note on the order; None if there is nothing to note."""
        if not self.is_random:
            return Note.of(NoteCode.TIMES_TIED, count=self.tie_count) if self.tie_count else None
        if not may_be_adaptive(propensities):
            code = NoteCode.ORDER_RANDOM
        elif propensities is None or propensities.all_actions is None:
            code = NoteCode.ORDER_IRRELEVANT
        else:
            code = NoteCode.ORDER_UNKNOWN
        return Note.of(code, count=self.missing_times)


def compute_row_order(log: Log, propensities: Propensities | None) -> RowOrder:
    """Return the order of a log: by time, and random for equal times or if a time is missing."""
    shuffled = shuffle_rows(hash_rows(log, propensities))
    if log.at is None:
        return RowOrder(shuffled, is_random=True)
    missing = int(np.isnan(log.at).sum())
    if missing:
        return RowOrder(shuffled, is_random=True, missing_times=missing)
    rows = shuffled[np.argsort(log.at[shuffled], kind="stable")]
    return RowOrder(rows, tie_count=int(find_ties(log.at[rows]).sum()))


def find_ties(times: Any) -> Flags:
    """Return which of some sorted times (n,) are equal to another."""
    same = times[1:] == times[:-1]
    return np.asarray(np.append(same, False) | np.append(False, same))


def shuffle_rows(digests: Digests) -> Ints:
    """Return rows (n,) in a random order that does not depend on their order in the file."""
    canonical = np.argsort(digests, kind="stable")  # rows with equal digests are equal
    key = int.from_bytes(sha256(digests[canonical].astype("<u8").tobytes()).digest()[:8], "little")
    return np.asarray(canonical[np.argsort(hash_row_numbers(digests.size, key), kind="stable")], dtype=np.int64)


def hash_rows(log: Log, propensities: Propensities | None) -> Digests:
    """Return 64 bits of everything that an evaluation reads of every row (n,), including outcomes."""
    columns = [log.actions.astype(np.float64), *log.numbers.T, *log.values.T]
    columns += [] if propensities is None else [propensities.logged]
    columns += [] if log.at is None else [log.at]
    digests = np.zeros(log.rows, dtype=np.uint64)
    for column in columns:
        canonical = np.where(np.isnan(column), np.nan, column + 0.0)  # one NaN, and one zero
        digests = finalize_bits(digests + canonical.view(np.uint64) + np.uint64(GOLDEN_GAMMA))
    for texts in log.segments.values():
        bits = {text: hash_text(text) for text in dict.fromkeys(texts.tolist())}
        digests = finalize_bits(digests + np.array([bits[text] for text in texts.tolist()], dtype=np.uint64))
    return digests


def hash_text(text: str | None) -> int:
    """Return 64 bits of a text; 0 if it is missing."""
    return 0 if text is None else int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def may_be_adaptive(propensities: Propensities | None) -> bool:
    """Say whether probabilities may depend on earlier outcomes: not if they are the same in all rows."""
    return (
        propensities is None
        or propensities.all_actions is None
        or bool((propensities.all_actions != propensities.all_actions[0]).any())
    )
