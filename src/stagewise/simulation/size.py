"""How large a plan may be: what random numbers can count, and what this machine's memory can hold."""

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from stagewise.problem.checks import alone, shown, whole
from stagewise.problem.errors import InvalidProblem

MOST = 2**32  # rounds, and runs: each is one word of the counter that random numbers are made from
OWN = 1000  # bytes of a run besides its curves: its task, its place in line, its totals
GIB = 2**30


def counted(value: Any, name: str) -> int:
    """Return how many rounds or runs there are to be."""
    return whole(value, name, "from 1 to 2**32, which is how far the random numbers are counted", 1, MOST)


def run_numbers(runs: Any, points: int, costs: int) -> list[int]:
    """Return the numbers of the runs, from how many there are or the numbers themselves, if memory holds them all."""
    asked = range(counted(runs, "runs")) if isinstance(alone(runs), int | np.integer) else runs
    try:
        count = len(asked)
    except OverflowError:  # a range of more than a machine can count
        count = MOST + 1
    except Exception:  # no list, or whatever the object's own code came to
        count = 0
    check_room(count, points, costs)
    try:
        numbers = list(asked) if isinstance(asked, Iterable) else []
    except Exception:  # whatever the object's own code came to
        numbers = []
    whole = all(isinstance(run, int | np.integer) and 0 <= run < MOST for run in numbers)
    if not numbers or not whole or len(set(numbers)) < len(numbers):
        raise InvalidProblem(
            f"runs is {shown(runs)}; it must be a number of runs, or different run numbers from 0 to {MOST - 1}"
        )
    return [int(run) for run in numbers]


def check_room(runs: int, points: int, costs: int) -> None:
    """Refuse runs whose curves, each of so many points, and joined in the end, are more than memory holds."""
    needed, there = 2 * runs * (OWN + 8 * points * (3 + costs)), memory()
    if needed > there:
        raise InvalidProblem(
            f"{runs:,} runs of {points:,} recorded points would need some {needed / GIB:,.0f} GiB, and this machine "
            f"has {there / GIB:,.0f}; play fewer at once, or record less"
        )


def memory() -> float:
    """Return this machine's memory in bytes, or infinity where it does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")
