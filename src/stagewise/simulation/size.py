"""How large a plan may be: what random numbers can count, and what this machine's memory can hold."""

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from stagewise.files.machine import GIB, memory
from stagewise.problem.checks import alone, shown, whole
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.words import several

MOST = 2**32  # rounds, and runs: each is one word of the counter that random numbers are made from
OWN = 1000  # bytes of a run besides its curves: its task, its place in line, its totals
MOST_ROUNDS = 10**16  # of all runs together
MOST_CELLS = 100_000  # of a sweep
SPEED = 1e7  # rounds a second, of all cores together: more than most machines play
CELL = 0.01  # seconds of one cell of a sweep, however few rounds it plays: it is checked, and its files are flushed


def counted(value: Any, name: str) -> int:
    """Return how many rounds or runs there are to be."""
    return whole(value, name, "from 1 to 2**32, which is how far the random numbers are counted", 1, MOST)


def run_numbers(runs: Any, points: int, costs: int, rounds: int = 1) -> list[int]:
    """Return the numbers of the runs, from how many there are or the numbers themselves, if memory holds them all."""
    asked = range(counted(runs, "runs")) if isinstance(alone(runs), int | np.integer) else runs
    try:
        count = len(asked)
    except OverflowError:  # a range of more than a machine can count
        count = MOST + 1
    except Exception:  # no list, or whatever the object's own code came to
        count = 0
    check_room(count, points, costs)
    check_length(count, rounds)
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
            f"{several(runs, 'run')} of {several(points, 'recorded point')} would need some {needed / GIB:,.0f} GiB, "
            f"and this machine has {there / GIB:,.0f}; play fewer at once, or record less"
        )


def check_length(runs: int, rounds: int) -> None:
    """Refuse more rounds in all than anybody can wait for."""
    if runs * rounds > MOST_ROUNDS:
        raise InvalidProblem(
            f"{several(runs, 'run')} of {rounds:,} rounds are {runs * rounds:.0e} rounds, which take some "
            f"{in_words(runs * rounds / SPEED)} at ten million a second; at most {MOST_ROUNDS:.0e} are played"
        )


def check_cells(parts: dict[str, int]) -> None:
    """Refuse a sweep of more cells than can be set up, before there is one; `parts` says how many there are of what."""
    count = prod(parts.values())
    if count > MOST_CELLS:
        each = " × ".join(f"{number:,} {word}" for word, number in parts.items() if number > 1)
        raise InvalidProblem(
            f"the sweep has {count:,} cells: {each}; at most {MOST_CELLS:,} are played at once, since the files of so "
            f"many alone take some {in_words(count * CELL)}; sweep through fewer values, or one part after the other"
        )


def in_words(seconds: float) -> str:
    """Return a time as people say it.

    >>> in_words(7200.0), in_words(1e12)
    ('2 hours', '31,710 years')
    """
    units = (("years", 365.0 * 86400.0), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0))
    word, length = next((unit for unit in units if seconds >= 2.0 * unit[1]), ("minutes", 60.0))
    return f"{max(seconds / length, 1.0):,.0f} {word}"
