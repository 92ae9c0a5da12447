"""Two parts of a log: one that choices are made from, and one that is left to learn from.

What is chosen by looking at rows and then learned from the same rows is not what the guarantee is about: the choice has
seen the noise. Rows that the choice did not see are as good as new ones.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.launch.doctor.exchange import Flags
from stagewise.launch.mixing import hashed
from stagewise.problem.checks import number
from stagewise.problem.errors import InvalidOutcome

HALF = 0.5  # of the rows, that a proposal is chosen from where nothing else is said


@dataclass(frozen=True, eq=False)
class Split:
    """Which rows choices are made from, and in words."""

    chosen_from: Flags
    words: str
    share: float

    @property
    def left(self) -> Flags:
        """The rows that are left to learn from; all of them where nothing was split."""
        return np.ones(self.chosen_from.size, dtype=bool) if self.share == 1.0 else ~self.chosen_from

    def plain(self) -> dict[str, Any]:
        """Return plain values."""
        told = {"share": self.share, "rule": self.words, "chosen_from": int(self.chosen_from.sum())}
        return {**told, "left": int(self.left.sum())}


def share_of(value: Any) -> float:
    """Return the share of rows to choose from; None: all, and nothing is left.

    >>> share_of(0.5), share_of(None)
    (0.5, 1.0)
    """
    if value is None:
        return 1.0
    share = number(value, "split", InvalidOutcome)
    if not 0.05 <= share <= 0.95:
        raise InvalidOutcome(
            f"split is {share:g}; it must be from 0.05 to 0.95, the share of rows to choose from, or None for no split"
        )
    return share


def split(rows: int, at: Floats | None, share: float) -> Split:
    """Return the earliest rows, by time where that is known, else some rows by a hash of their numbers.

    >>> split(4, np.array([3.0, 1.0, 2.0, 4.0]), 0.5).chosen_from.tolist()
    [False, True, True, False]
    """
    if share == 1.0:
        return Split(np.ones(rows, dtype=bool), "all rows: nothing is left that the choice has not seen", 1.0)
    if at is None:
        words = f"rows whose number, counted from 0, has a hash below {share:g} (SplitMix64, launch/mixing.py)"
        return Split(np.asarray(hashed(rows) < share), words, share)
    first = np.zeros(rows, dtype=bool)
    first[np.argsort(at, kind="stable")[: max(round(share * rows), 1)]] = True
    return Split(first, f"the earliest {share:.0%} of the rows, by time", share)
