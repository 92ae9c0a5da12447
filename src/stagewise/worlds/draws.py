"""A draw as it comes from outside: kernels count with its three numbers and check nothing."""

from typing import Any

from stagewise.problem.checks import shown, whole
from stagewise.problem.errors import InvalidProblem
from stagewise.records.draw import Draw

WORD = 2**32 - 1  # runs and rounds are words of the counter that random numbers are made from


def run_of(run: Any) -> int:
    """Return a run's number.

    >>> run_of(7)
    7
    """
    return whole(run, "the run", "from 0 to 2**32 - 1", 0, WORD)


def checked_draw(draw: Any) -> Draw:
    """Return a draw whose numbers are whole and in range."""
    if not isinstance(draw, Draw):
        raise InvalidProblem(f"the draw is {shown(draw)}; it must be a Draw, with a seed, a run and a round")
    seed = whole(draw.seed, "the draw's seed", "of at most 64 bits with its sign", -(2**63), 2**63 - 1)
    return Draw(seed, run_of(draw.run), whole(draw.round, "the draw's round", "from 0 to 2**32 - 1", 0, WORD))
