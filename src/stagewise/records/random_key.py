"""Seeds of decisions: random numbers are a function of seed, run and round, so any round can be repeated."""

from typing import NamedTuple


class RandomKey(NamedTuple):
    """The source of a decision's random numbers.

    Attributes:
        seed: 0 ≤ seed < 2⁶³.
        run: The run of a simulation, below 2³².
        round: The round, below 2³².

    Example:
        >>> RandomKey(seed=1)._replace(round=7)
        RandomKey(seed=1, run=0, round=7)
    """

    seed: int = 0
    run: int = 0
    round: int = 0


FIRST = RandomKey()
