"""Runs that violate, counted: what every statistic of safety shares."""

from collections.abc import Callable
from typing import Any

from tests.statistics.families import Result

Play = Callable[[int, int], Result]  # of a run and a number of rounds

ROUNDING = 1e-12
# all of δ for the one interval that matters, and nothing beside it
TIGHT: dict[str, Any] = {"split_delta": False, "mean_cost_bound": None, "check_assumptions": False}


def violating(play: Play, runs: int, rounds: int) -> int:
    """Return how many runs violate; most of them must dare something, or safety would be no achievement."""
    results = [play(run, rounds) for run in range(runs)]
    assert sum(result.dared > rounds // 10 for result in results) >= runs // 2
    return sum(result.excess > ROUNDING for result in results)
