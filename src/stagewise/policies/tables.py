"""Which candidates a person is shown first, and the table of a round that plays the safe action alone."""

import numpy as np

from stagewise.kernels.compile import Flags, Floats
from stagewise.problem.thresholds import Thresholds
from stagewise.records.explanation import Row, Table

SHOWN = 5


def hidden_count(count: int, eligible: Flags, shown: int) -> int:
    """Return how many eligible candidates are not shown."""
    return (int(eligible.sum()) if eligible.size else count) - shown


def safe_alone(limits: Thresholds, label: str, hoped: float, why: str) -> Table:
    """Return the table of the safe action alone."""
    row = Row(label, hoped, tuple(limits.at_safe), 1.0, True)
    return Table(limits.names, tuple(limits.signs), tuple(limits.values), "played", (row,), 0, why)


def leading(hoped: Floats, eligible: Flags, code: int) -> list[int]:
    """Return the few eligible candidates with the largest hoped reward, the one played always among them."""
    order = [int(i) for i in np.argsort(-hoped, kind="stable") if eligible.size == 0 or eligible[i]]
    first = order[:SHOWN]
    if code >= 0 and code not in first:
        first[-1] = code
    return first
