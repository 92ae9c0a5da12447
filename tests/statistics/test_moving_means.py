"""Bounds of means moved by somebody who knows data and bounds: they hold; without ages or shares they break."""

import math

import numpy as np
import pytest
from benchmarks.adversaries import FEW_EVENTS, NEAR_BOUND, NO_AGE, NO_SHARES, PROVED, SAW, count_misses
from tests.chance import allowed

from stagewise.models.epochs import CELL_SIZE, CHANGED, PULLS
from stagewise.models.jumps import learn_jumping

pytestmark = pytest.mark.compiled
DELTA, SEED = 0.2, 8
strategies = pytest.mark.parametrize("strategy", [NEAR_BOUND, SAW, FEW_EVENTS])


@strategies
def test_who_knows_data_and_bounds_does_not_break_them(strategy: int) -> None:
    assert count_misses(60, PROVED, strategy, 4e-6, 10_000, DELTA, 200.0, SEED) <= allowed(60, DELTA)


@pytest.mark.slow
@strategies
@pytest.mark.parametrize("slope", [1e-6, 4e-6])
def test_who_knows_data_and_bounds_does_not_break_them_in_many_runs(strategy: int, slope: float) -> None:
    assert count_misses(500, PROVED, strategy, slope, 30_000, DELTA, 200.0, SEED) <= allowed(500, DELTA)


@strategies
@pytest.mark.parametrize("how", [NO_AGE, NO_SHARES])
def test_without_ages_or_shares_they_break(strategy: int, how: int) -> None:
    assert count_misses(6, how, strategy, 4e-6, 20_000, DELTA, 200.0, SEED) > allowed(6, DELTA)


@pytest.mark.slow
def test_a_mean_that_stays_does_not_jump() -> None:
    false = 0
    for run in range(200):
        cell, rng = np.zeros(CELL_SIZE), np.random.default_rng([3, run])
        for row, value in enumerate((rng.random(20_000) < 0.01).astype(float)):
            cell[PULLS] += 1.0
            learn_jumping(float(row + 1), value, math.log(2.0 / DELTA), math.log(2.0 / DELTA), cell)
        false += cell[CHANGED] != 0.0
    assert false <= allowed(200, DELTA)
