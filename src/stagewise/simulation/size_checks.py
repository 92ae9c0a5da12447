"""Limits on the size of a plan: counters of random numbers, memory and time."""

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from stagewise.files.paths import GIB, get_total_memory
from stagewise.problem.checks import check_integer, unwrap_scalar
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import format_count, safe_repr

MAX_COUNT = 2**32  # rounds, and runs: each is one word of the counter that random numbers are made from
BYTES_PER_RUN = 1000  # bytes of a run besides its curves: its task, its place in line, its totals
MAX_ROUNDS = 10**16  # of all runs together
MAX_CELLS = 100_000  # of a sweep
ROUNDS_PER_SECOND = 1e7  # rounds a second, of all cores together: more than most machines play
SECONDS_PER_CELL = (
    0.01  # seconds of one cell of a sweep, however few rounds it plays: it is checked, and its files are flushed
)


def check_count(value: Any, name: str) -> int:
    """Return a number of rounds or runs."""
    return check_integer(value, name, "from 1 to 2**32, which is how far the random numbers are counted", 1, MAX_COUNT)


def parse_run_numbers(runs: Any, points: int, costs: int, rounds: int = 1) -> list[int]:
    """Return the run numbers, given as a count or as numbers, if memory holds them all."""
    asked = range(check_count(runs, "runs")) if isinstance(unwrap_scalar(runs), int | np.integer) else runs
    try:
        count = len(asked)
    except OverflowError:  # a range of more than a machine can count
        count = MAX_COUNT + 1
    except Exception:  # no list, or whatever the object's own code came to
        count = 0
    check_memory(count, points, costs)
    check_total_rounds(count, rounds)
    try:
        numbers = list(asked) if isinstance(asked, Iterable) else []
    except Exception:  # whatever the object's own code came to
        numbers = []
    is_valid = all(isinstance(run, int | np.integer) and 0 <= run < MAX_COUNT for run in numbers)
    if not numbers or not is_valid or len(set(numbers)) < len(numbers):
        raise InvalidProblem(
            ErrorCode.WRONG_TYPE,
            "runs is {runs}; it must be a number of runs, or different run numbers from 0 to {max_count}",
            runs=safe_repr(runs),
            max_count=MAX_COUNT - 1,
        )
    return [int(run) for run in numbers]


def check_memory(runs: int, points: int, costs: int) -> None:
    """Raise if the curves of the runs, and their merged copy, do not fit into memory."""
    needed, there = 2 * runs * (BYTES_PER_RUN + 8 * points * (3 + costs)), get_total_memory()
    if needed > there:
        raise InvalidProblem(
            ErrorCode.TOO_LARGE,
            "{runs} of {points} need about {needed:,.0f} GiB, and this machine has {there:,.0f}; "
            "play fewer runs at once, or record fewer points",
            runs=format_count(runs, "run"),
            points=format_count(points, "recorded point"),
            needed=needed / GIB,
            there=there / GIB,
        )


def check_total_rounds(runs: int, rounds: int) -> None:
    """Raise if there are more rounds than can be played."""
    if runs * rounds > MAX_ROUNDS:
        raise InvalidProblem(
            ErrorCode.TOO_LARGE,
            "{runs} of {rounds:,} rounds are {runs_2:.0e} rounds and take about {runs_3} at ten "
            "million a second; at most {max_rounds:.0e} rounds are allowed",
            runs=format_count(runs, "run"),
            rounds=rounds,
            runs_2=runs * rounds,
            runs_3=format_duration(runs * rounds / ROUNDS_PER_SECOND),
            max_rounds=MAX_ROUNDS,
        )


def check_cells(parts: dict[str, int]) -> None:
    """Raise if a sweep has too many cells; `parts` are the counts of its dimensions."""
    count = prod(parts.values())
    if count > MAX_CELLS:
        each = " × ".join(f"{number:,} {word}" for word, number in parts.items() if number > 1)
        raise InvalidProblem(
            ErrorCode.TOO_LARGE,
            "the sweep has {count:,} cells: {each}; at most {max_cells:,} are allowed, since the "
            "files of this many take about {count_2}, so sweep over fewer values or in several parts",
            count=count,
            each=each,
            max_cells=MAX_CELLS,
            count_2=format_duration(count * SECONDS_PER_CELL),
        )


def format_duration(seconds: float) -> str:
    """Return a duration in words.

    >>> format_duration(7200.0), format_duration(1e12)
    ('2 hours', '31,710 years')
    """
    units = (("years", 365.0 * 86400.0), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0))
    word, length = next((unit for unit in units if seconds >= 2.0 * unit[1]), ("minutes", 60.0))
    return f"{max(seconds / length, 1.0):,.0f} {word}"
