"""Runs that violate, counted: what every statistic of safety shares."""

from collections.abc import Callable
from typing import Any

import numpy as np

import stagewise as sw

Family = Callable[[int], tuple[Any, Any]]  # of a run: its policy and its world

SEED, DELTA = 20260803, 0.05
# all of δ for the one interval that matters, and nothing beside it
TIGHT: dict[str, Any] = {"split_delta": False, "mean_cost_bound": None, "check_assumptions": False}


def violating(family: Family, runs: int, rounds: int) -> int:
    """Return how many runs violate; most of them must dare something, or safety would be no achievement."""
    violations, daring = 0, 0
    for run in range(runs):
        policy, world = family(run)
        told: dict[str, Any] = {"runs": [run], "seed": SEED, "record_points": rounds, "progress": False}
        result = sw.simulate(policy, world, rounds=rounds, **told)
        safe = policy.safe_action
        home = world.means(safe.features if safe.arm is None else safe.arm)[0]
        violations += int(result.violations[0] > 0)
        daring += int(np.count_nonzero(np.abs(result.reward - home) > 1e-12) > rounds // 10)
    assert daring >= runs // 2
    return violations
