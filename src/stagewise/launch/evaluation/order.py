"""In which order rows count: that of their times, and by lot where these do not tell (docs/theory/evaluation.md).

An interval looks at rows one after another and learns from those before, so their order may not depend on what came of
them. How a file is sorted may. The lot is drawn from the rows themselves: their digest is the key, so the same rows
give the same order however they stand, and nobody chooses it.
"""

from hashlib import blake2b, sha256
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.kernels.compile import Flags, Ints
from stagewise.launch.evaluation.propensities import Propensities
from stagewise.launch.log import Log
from stagewise.launch.mixing import STEP, finished, mixed
from stagewise.problem.words import several

Digests = npt.NDArray[np.uint64]
BY_LOT = "so rows count in an order drawn by lot, however they stand"
ANY_ORDER = "but intervals hold in whatever order rows were decided"
ADAPTED = (
    "and its probabilities differ between rows: whether they followed from earlier outcomes is not known. So limits "
    "are judged by ips, whose intervals hold in whatever order rows were decided; dr's hold if the log's policy was "
    "fixed. Times of the decisions in a column 'at', or their numbers in order, settle it"
)


class Order(NamedTuple):
    """The order of a log's rows."""

    rows: Ints
    """The numbers of the rows (n,), in the order in which they count."""
    missing: str = ""
    """What times lack, so that all rows count by lot; empty: nothing."""
    same: int = 0
    """How many rows have the time of another; these count by lot among themselves."""

    def note(self, drawn: Propensities | None) -> str:
        """Return what is to be said of it, where rows were drawn so; empty: nothing."""
        if not self.missing:
            words = f"{self.same:,} rows have the time of another: they count by lot, as decided at once"
            return words if self.same else ""
        if not may_adapt(drawn):
            return f"{self.missing}, {BY_LOT}"
        return f"{self.missing}, {ANY_ORDER if drawn is None or drawn.every is None else ADAPTED}"


def order_of(log: Log, drawn: Propensities | None) -> Order:
    """Return the order of a log: by time; rows of the same time, and all rows where a time is missing, by lot."""
    lot = by_lot(digests_of(log, drawn))
    if log.at is None:
        return Order(lot, "the log has no times")
    missing = int(np.isnan(log.at).sum())
    if missing:
        return Order(lot, f"the log has no time in {several(missing, 'row')}")
    rows = lot[np.argsort(log.at[lot], kind="stable")]
    return Order(rows, same=int(tied(log.at[rows]).sum()))


def tied(times: Any) -> Flags:
    """Return which of some sorted times (n,) another is equal to."""
    same = times[1:] == times[:-1]
    return np.asarray(np.append(same, False) | np.append(False, same))


def by_lot(digests: Digests) -> Ints:
    """Return rows (n,) in an order drawn by lot, the same however they stand."""
    canonical = np.argsort(digests, kind="stable")  # rows of one digest are the same row, and may change places
    key = int.from_bytes(sha256(digests[canonical].astype("<u8").tobytes()).digest()[:8], "little")
    return np.asarray(canonical[np.argsort(mixed(digests.size, key), kind="stable")], dtype=np.int64)


def digests_of(log: Log, drawn: Propensities | None) -> Digests:
    """Return 64 bits of all that an evaluation reads of every row (n,), outcomes too."""
    columns = [log.actions.astype(np.float64), *log.numbers.T, *log.values.T]
    columns += [] if drawn is None else [drawn.done]
    columns += [] if log.at is None else [log.at]
    digests = np.zeros(log.rows, dtype=np.uint64)
    for column in columns:
        told = np.where(np.isnan(column), np.nan, column + 0.0)  # one NaN, and one zero
        digests = finished(digests + told.view(np.uint64) + np.uint64(STEP))
    for texts in log.segments.values():
        bits = {text: bits_of(text) for text in dict.fromkeys(texts.tolist())}
        digests = finished(digests + np.array([bits[text] for text in texts.tolist()], dtype=np.uint64))
    return digests


def bits_of(text: str | None) -> int:
    """Return 64 bits of a text; 0: there is none."""
    return 0 if text is None else int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def may_adapt(drawn: Propensities | None) -> bool:
    """Say whether probabilities may have followed from earlier outcomes: not where they are the same in all rows."""
    return drawn is None or drawn.every is None or bool((drawn.every != drawn.every[0]).any())
