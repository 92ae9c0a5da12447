"""Where a decision's random numbers come from: they are a function of these numbers, so any round can be repeated."""

from typing import NamedTuple


class Draw(NamedTuple):
    """The seed (0 ≤ seed < 2⁶³), the run, and the round (both below 2³²) of a decision.

    >>> Draw(seed=1)._replace(round=7)
    Draw(seed=1, run=0, round=7)
    """

    seed: int = 0
    run: int = 0
    round: int = 0


FIRST = Draw()
