"""Which candidates a person is shown first."""

import numpy as np

from stagewise.kernels.compile import Flags, Floats

SHOWN = 5


def hidden_count(count: int, eligible: Flags, shown: int) -> int:
    """Return how many eligible candidates are not shown."""
    return (int(eligible.sum()) if eligible.size else count) - shown


def leading(hoped: Floats, eligible: Flags, code: int) -> list[int]:
    """Return the few eligible candidates with the largest hoped reward, the one played always among them."""
    order = [int(i) for i in np.argsort(-hoped, kind="stable") if eligible.size == 0 or eligible[i]]
    first = order[:SHOWN]
    if code >= 0 and code not in first:
        first[-1] = code
    return first
