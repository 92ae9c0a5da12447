"""Safety as a statistic: among many seeded runs, those that ever violate are no more than δ allows.

A run violates when the true expected cost of any of its rounds is above its threshold: that of the point played on rays,
that of the mixture otherwise. The noise is exactly as declared, and the bound on the parameters is attained.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from tests.statistics.families import DELTA, Result, arm_world, linear_world, run_arms, run_linear

from stagewise import LCLUCB, OPLB, ROFUL, Agent, Arms, SafeLTS

ROUNDING = 1e-12
CONFIDENCE = 0.999


def in_linear_worlds(kind: Any, known: bool, **settings: Any) -> Callable[[int, int], Result]:
    return lambda run, rounds: run_linear(kind, linear_world(run, known), run, rounds, known, **settings)


def in_arm_worlds(known: bool, **settings: Any) -> Callable[[int, int], Result]:
    return lambda run, rounds: run_arms(arm_world(run, known), run, rounds, known, **settings)


POLICIES = {
    "LC-LUCB": in_linear_worlds(LCLUCB, True),
    "ROFUL": in_linear_worlds(ROFUL, True),
    "Safe-LTS": in_linear_worlds(SafeLTS, True),
    "OPLB": in_linear_worlds(OPLB, True),
    "OPLB directional": in_linear_worlds(OPLB, True, optimism="directional"),
    "OPB": in_arm_worlds(True),
    "OPB directional": in_arm_worlds(True, optimism="directional"),
    "LC-LUCB, unknown baseline": in_linear_worlds(LCLUCB, False),
    "OPLB, unknown baseline": in_linear_worlds(OPLB, False),
    "OPB, unknown baseline": in_arm_worlds(False),
}
OVERCONFIDENT = {
    "LC-LUCB": in_linear_worlds(LCLUCB, True, declared=0.1),
    "ROFUL": in_linear_worlds(ROFUL, True, declared=0.1),
    "OPLB": in_linear_worlds(OPLB, True, declared=0.1),
    "OPB": in_arm_worlds(True, noise=0.05),  # Bernoulli outcomes are ½-sub-Gaussian
}


def violating(play: Callable[[int, int], Result], runs: int, rounds: int) -> int:
    """Return how many runs violate; most of them must dare something, or safety would be no achievement."""
    results = [play(run, rounds) for run in range(runs)]
    assert sum(result.dared > rounds // 10 for result in results) >= runs // 2
    return sum(result.excess > ROUNDING for result in results)


@pytest.mark.parametrize("name", POLICIES)
def test_few_of_a_hundred_runs_violate(name: str) -> None:
    assert violating(POLICIES[name], 100, 300) <= binom.ppf(CONFIDENCE, 100, DELTA)


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_no_more_runs_violate_than_delta_allows(name: str) -> None:
    count = violating(POLICIES[name], 2000, 2000)
    print(f"{name}: {count} of 2000 runs violate")
    assert count <= binom.ppf(CONFIDENCE, 2000, DELTA)


@pytest.mark.parametrize("name", OVERCONFIDENT)
def test_a_policy_told_a_tenth_of_the_noise_violates_in_far_more_runs(name: str) -> None:
    count = violating(OVERCONFIDENT[name], 100, 300)
    assert count > 2 * binom.ppf(CONFIDENCE, 100, DELTA)
