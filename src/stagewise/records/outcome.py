"""What came of a decision."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Outcome(NamedTuple):
    """One noisy reward and the noisy costs: a number, one per constraint, or a mapping by name."""

    reward: float
    cost: float | Sequence[float] | Mapping[str, float] | Any = ()
