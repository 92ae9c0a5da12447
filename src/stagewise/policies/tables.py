"""Which candidates a person is shown first, and the table of a round that plays the safe action alone."""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Flags, Floats
from stagewise.problem.thresholds import Thresholds
from stagewise.records.explanation import Estimates, Row, Table

SHOWN = 5


def hidden_count(count: int, eligible: Flags, shown: int) -> int:
    """Return how many eligible candidates are not shown."""
    return (int(eligible.sum()) if eligible.size else count) - shown


class SafeAlone(NamedTuple):
    """What a round that plays the safe action alone is explained by: no estimate, since no bound is trusted."""

    limits: Thresholds
    label: str
    hoped: float
    why: str

    def __call__(self) -> Table:
        """Return the table of the safe action alone."""
        limits, row = self.limits, Row(self.label, self.hoped, tuple(self.limits.at_safe), 1.0, True)
        return Table(limits.names, tuple(limits.signs), tuple(limits.values), "played", (row,), 0, self.why)

    def estimates(self) -> Estimates | None:
        """Return nothing: there are none."""
        return None


def leading(hoped: Floats, eligible: Flags, code: int) -> list[int]:
    """Return the few eligible candidates with the largest hoped reward, the one played always among them."""
    order = [int(i) for i in np.argsort(-hoped, kind="stable") if eligible.size == 0 or eligible[i]]
    first = order[:SHOWN]
    if code >= 0 and code not in first:
        first[-1] = code
    return first
