"""Bounds of means moved by somebody who knows data and bounds: they hold; without ages or shares they break."""

import math

import numpy as np
import pytest
from tests.chance import allowed

from stagewise.engine.compile import Floats, kernel
from stagewise.engine.random import OUTCOME, uniform
from stagewise.models.average_bounds import compute_average_upper
from stagewise.models.epochs import (
    CELL_SIZE,
    CHANGED,
    EPOCHS,
    FIRST_BEGIN,
    FIRST_EPOCH,
    HEADER_SIZE,
    NEWEST,
    PULLS,
    advance_cell,
    advance_header,
    compute_high_now,
    find_epoch,
    get_begin,
    learn_in_epochs,
)
from stagewise.models.jumps import learn_jumping
from stagewise.problem.drift import Drift

pytestmark = pytest.mark.compiled
DELTA, LOWEST, HIGHEST, NEVER = 0.2, 0.005, 0.05, 1e9
PROVED, NO_AGE, NO_SHARES = range(3)


@kernel
def play(
    rounds: int, slope: float, how: int, strategy: int, settings: Floats, high: float, header: Floats, cell: Floats,
    missed: Floats, run: int,
) -> None:  # fmt: skip
    """Play every round; the mean rises when the bound is near, or as a saw, or after few events."""
    mean, rises, recent, bound = LOWEST, True, 0.0, 1.0
    for t in range(rounds):
        now = float(t)
        if how == NO_SHARES:
            bound = min(1.0, bound + slope)
            if t % 16 == 0:
                for i in range(EPOCHS):
                    at = FIRST_EPOCH + 3 * i
                    if header[FIRST_BEGIN + i] > 0.0 and cell[at] > 0.0:
                        middle = get_begin(header, settings, header[FIRST_BEGIN + i]) + cell[at + 2] / cell[at]
                        bound = min(bound, compute_average_upper(cell[at], cell[at + 1], high) + slope * (now - middle))
        else:
            bound = compute_high_now(settings, now, cell)
        if mean > bound:
            missed[0] = 1.0
        if strategy == 0:
            rises = bound - mean < 0.5 * bound
        elif strategy == 1:
            rises = mean < HIGHEST and (rises or mean <= LOWEST)
        elif t % 500 == 0:
            rises, recent = recent < 250.0 * mean, 0.0
        value = 1.0 if uniform(8, run, t, OUTCOME, strategy) < mean else 0.0
        recent += value
        newest = find_epoch(header, settings, now)
        if newest > int(header[NEWEST]):
            advance_cell(header, newest, cell)
            advance_header(header, settings, newest, now)
        cell[PULLS] += 1.0
        learn_in_epochs(header, settings, now, value, NEVER, high, cell)
        mean = min(HIGHEST, mean + slope) if rises else max(LOWEST, mean - slope)


def count_misses(runs: int, how: int, strategy: int, slope: float = 4e-6, rounds: int = 10_000) -> int:
    step = 200.0
    settings = np.array(Drift(slope, 1.0).to_settings(0, 64 * step * slope))
    assert settings[1] == pytest.approx(step)
    if how == NO_AGE:
        settings[2] = 1e-300
    missed = np.zeros((runs, 1))
    for run in range(runs):
        memory = np.zeros(HEADER_SIZE), np.zeros(CELL_SIZE)
        play(rounds, slope, how, strategy, settings, -math.log(DELTA), *memory, missed[run], run)
    return int(missed.sum())


@pytest.mark.parametrize("strategy", range(3))
def test_who_knows_data_and_bounds_does_not_break_them(strategy: int) -> None:
    assert count_misses(60, PROVED, strategy) <= allowed(60, DELTA)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", range(3))
@pytest.mark.parametrize("slope", [1e-6, 4e-6])
def test_who_knows_data_and_bounds_does_not_break_them_in_many_runs(strategy: int, slope: float) -> None:
    assert count_misses(500, PROVED, strategy, slope, 30_000) <= allowed(500, DELTA)


@pytest.mark.parametrize("how", [NO_AGE, NO_SHARES])
def test_without_ages_or_shares_they_break(how: int) -> None:
    assert count_misses(10, how, 1, rounds=20_000) > allowed(10, DELTA)


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
