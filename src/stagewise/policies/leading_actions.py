"""Tables of explanations: the leading candidates, and the table of a round that plays only the safe action."""

from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Flags, Floats
from stagewise.problem.thresholds import Thresholds
from stagewise.records.explanation import Estimates, Row, Table

MAX_ROWS = 5


def count_hidden(count: int, eligible: Flags, row_count: int) -> int:
    """Return the number of eligible candidates that have no row."""
    return (int(eligible.sum()) if eligible.size else count) - row_count


class SafeActionBasis(NamedTuple):
    """The explanation of a round that plays only the safe action, without estimates."""

    limits: Thresholds
    label: str
    optimistic_reward: float
    why: str

    def __call__(self) -> Table:
        """Return the table with one row, the safe action."""
        limits, row = self.limits, Row(self.label, self.optimistic_reward, tuple(self.limits.at_safe), 1.0, True)
        return Table(limits.names, tuple(limits.signs), tuple(limits.values), "played", (row,), 0, self.why)

    def estimates(self) -> Estimates | None:
        """Return None: there are no estimates."""
        return None


def select_leading(optimistic_reward: Floats, eligible: Flags, code: int) -> list[int]:
    """Return the eligible candidates with the largest optimistic reward, including the one played."""
    order = [int(i) for i in np.argsort(-optimistic_reward, kind="stable") if eligible.size == 0 or eligible[i]]
    first = order[:MAX_ROWS]
    if code >= 0 and code not in first:
        first[-1] = code
    return first
