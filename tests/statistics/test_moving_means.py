"""Bounds of means moved by somebody who knows data and bounds: they hold; without ages or shares they break."""

import math

import numpy as np
import pytest
from benchmarks.adversaries import FEW_EVENTS, NEAR_BOUND, NO_AGE, NO_SHARES, PROVED, SAW, count_misses
from tests.chance import allowed

from stagewise.engine.compile import Floats, kernel
from stagewise.models.epochs import (
    AT,
    CELL_SIZE,
    CHANGED,
    HEADER_SIZE,
    NEWEST,
    PULLS,
    SLOPE,
    STEP,
    TIGHTEST,
    advance_cell,
    advance_header,
    compute_high_now,
    find_epoch,
    learn_in_epochs,
    learn_jumping,
)
from stagewise.problem.timing import DAY, Drift

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


@kernel
def choose_users(rounds: int, limit: float, so_far: bool, settings: Floats, header: Floats, cell: Floats) -> float:
    """Return the largest average mean of the users who got an action, chosen by somebody who sees its bound.

    Users of .01 come until the bound is below the limit, users just above the limit as long as it stays there. The
    action is played in full while its bound is at most the limit, and outcomes are the users' means.
    """
    total, most, trusted = 0.0, 0.0, False
    for play in range(rounds):
        now = play * 86.4
        bound = compute_high_now(settings, now, cell)
        if so_far:
            bound = 1.0 - cell[TIGHTEST] + settings[SLOPE] * (now - cell[AT]) / settings[STEP]
        trusted = bound <= limit if trusted else bound <= 0.95 * limit
        mean = 1.1 * limit if trusted else 0.01
        total += mean
        if settings[SLOPE] > 0.0:
            newest = find_epoch(header, settings, now)
            if newest > int(header[NEWEST]):
                advance_cell(header, newest, cell)
                advance_header(header, settings, newest, now)
            cell[PULLS] += 1.0
            learn_in_epochs(header, settings, now, mean, 6.0, 6.0, cell)
        else:
            cell[PULLS] += 1.0
            learn_jumping(now, mean, 6.0, 6.0, cell)
        if trusted:
            most = max(most, total / (play + 1))
    return most


@pytest.mark.parametrize("drift", [Drift(1e-6, DAY), Drift(0.0, DAY)])
def test_the_average_user_keeps_the_limit_whoever_chooses_users(drift: Drift) -> None:
    """The tightest bound so far would let in users above the limit until they are told from it: for months."""
    averages = []
    for so_far in (False, True):
        memory = np.zeros(HEADER_SIZE), np.zeros(CELL_SIZE)
        averages.append(choose_users(60_000, 0.02, so_far, np.array(drift.to_settings(0, 0.02)), *memory))
    assert 0.01 < averages[0] <= 0.02 < averages[1]
