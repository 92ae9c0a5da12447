"""Split a log into selection rows, which a proposal is chosen from, and holdout rows, to learn from.

The guarantee does not cover a problem that is chosen from the same rows that are learned: the choice depends on their
noise. Holdout rows are as good as new ones.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.launch.doctor.permutation_tests import Flags
from stagewise.launch.splitmix import uniform_hash
from stagewise.problem.checks import check_number
from stagewise.problem.errors import ErrorCode, InvalidOutcome

DEFAULT_FRACTION = 0.5  # share of rows that a proposal is chosen from by default


@dataclass(frozen=True, eq=False)
class Split:
    """The selection rows, the rule that chose them, and their share."""

    selection: Flags
    rule: str
    fraction: float

    @property
    def holdout(self) -> Flags:
        """The rows to learn from; all rows if there is no split."""
        return np.ones(self.selection.size, dtype=bool) if self.fraction == 1.0 else ~self.selection

    def to_dict(self) -> dict[str, Any]:
        """Return the split as JSON values."""
        content = {"fraction": self.fraction, "rule": self.rule, "selection_rows": int(self.selection.sum())}
        return {**content, "holdout_rows": int(self.holdout.sum())}


def check_fraction(value: Any) -> float:
    """Return the share of selection rows; None: all rows.

    >>> check_fraction(0.5), check_fraction(None)
    (0.5, 1.0)
    """
    if value is None:
        return 1.0
    fraction = check_number(value, "fraction", InvalidOutcome)
    if not 0.05 <= fraction <= 0.95:
        raise InvalidOutcome(
            ErrorCode.OUT_OF_RANGE,
            "fraction is {fraction:g}; it must be from 0.05 to 0.95, the share of rows that propose "
            "the problem, or None for no holdout",
            fraction=fraction,
        )
    return fraction


def split_rows(rows: int, at: Floats | None, fraction: float) -> Split:
    """Return a split with the earliest rows as the selection, or rows by a hash of their numbers without times.

    >>> split_rows(4, np.array([3.0, 1.0, 2.0, 4.0]), 0.5).selection.tolist()
    [False, True, True, False]
    """
    if fraction == 1.0:
        return Split(np.ones(rows, dtype=bool), "all rows, without a holdout", 1.0)
    if at is None:
        rule = f"rows whose index has a hash below {fraction:g} (SplitMix64, launch/splitmix.py)"
        return Split(np.asarray(uniform_hash(rows) < fraction), rule, fraction)
    first = np.zeros(rows, dtype=bool)
    first[np.argsort(at, kind="stable")[: max(round(fraction * rows), 1)]] = True
    return Split(first, f"the earliest {fraction:.0%} of the rows, by time", fraction)
