"""Bounds of a mean that jumps: the formulas from all rows, which epochs are kept, and what a change forgets."""

import math

import numpy as np
import pytest

from stagewise.engine.compile import as_python
from stagewise.models import epochs as jumps
from stagewise.models.epochs import BELOW, CELL_SIZE, CHANGED, EPOCHS, FIRST_EPOCH, LOW, PULLS, TIGHTEST
from stagewise.models.intervals import compute_average_lower, compute_average_upper

SHARE, FIND, LEVEL = (
    as_python(one) for one in (jumps.compute_jump_log_share, jumps.find_in_slot, jumps.get_jump_level)
)
LEARN, FORGET = as_python(jumps.learn_jumping), as_python(jumps.forget_jumping)
UPDATE, FORGOTTEN = as_python(jumps.update_jumping), as_python(jumps.get_forgotten)
UPPER, LOWER = as_python(compute_average_upper), as_python(compute_average_lower)
CONFIDENCE = 3.0


def learn(cell: np.ndarray, values: np.ndarray, start: int = 0) -> None:
    for row, value in enumerate(values, start):
        cell[PULLS] += 1.0
        LEARN(float(row), float(value), CONFIDENCE, CONFIDENCE, cell)


def test_every_slot_holds_its_newest_epoch() -> None:
    for newest in range(1, 2000):
        found = [FIND(slot, newest) for slot in range(EPOCHS)]
        for slot in range(EPOCHS):
            known = [epoch for epoch in range(max(1, newest - 600), newest + 1) if LEVEL(epoch) == slot]
            if known:
                assert found[slot] == known[-1]
        assert found[jumps.FIRST] == 1
        ages = [newest - epoch for epoch in found if epoch]
        for back in range(1, min(newest, 1 << jumps.LEVELS)):
            assert any(back / 4 < age <= back for age in ages)


def test_shares_add_up_to_one() -> None:
    total = math.fsum(math.exp(-SHARE(LEVEL(epoch), epoch, 0.0)) for epoch in range(1, 2**16))
    total += math.fsum(math.exp(-SHARE(jumps.FIRST, 1, float(restarts))) for restarts in range(1, 1000))
    assert 0.99 < total < 1.0


def test_bounds_are_the_best_of_all_epochs_of_now() -> None:
    values = (np.random.default_rng(2).random(1500) < 0.02).astype(float)
    cell, tightest = np.zeros(CELL_SIZE), 1.0
    for row in range(values.size):
        learn(cell, values[row : row + 1], row)
        count = row + 1
        if count >= 64 and count % 16:
            continue
        newest, high, low = row // jumps.JUMP_STEP + 1, 1.0, 0.0
        for slot in range(EPOCHS):
            epoch = FIND(slot, newest)
            part = values[(epoch - 1) * jumps.JUMP_STEP : count] if epoch else values[:0]
            if part.size:
                spent = CONFIDENCE + SHARE(slot, epoch, 0.0)
                high = min(high, UPPER(float(part.size), float(part.sum()), spent))
                low = max(low, LOWER(float(part.size), float(part.sum()), spent))
        tightest = min(tightest, high)
        assert 1.0 - cell[BELOW] == pytest.approx(high, abs=1e-12)
        assert 1.0 - cell[TIGHTEST] == pytest.approx(tightest, abs=1e-12)
        assert cell[LOW] == pytest.approx(low, abs=1e-12)
    assert 0.0 < low < 0.02 < high < 0.1
    assert cell[CHANGED] == 0.0


def test_a_jump_is_found_and_what_is_older_is_forgotten() -> None:
    rng, cell = np.random.default_rng(1), np.zeros(CELL_SIZE)
    learn(cell, rng.random(3000) < 0.005)
    quiet = 1.0 - cell[BELOW]
    row = 3000
    while cell[CHANGED] == 0.0 and row < 6000:
        learn(cell, rng.random(1) < 0.06, row)
        row += 1
    assert quiet < 0.02
    assert row < 3500
    assert 2600 <= cell[CHANGED] <= 3300
    learn(cell, rng.random(3000) < 0.06, row)
    assert 0.06 < 1.0 - cell[BELOW] < 0.09
    assert cell[jumps.RESTARTS] == 1.0


def test_an_action_that_recovers_learns_from_all_outcomes_since() -> None:
    """Of what is forgotten only the first epoch would last longer than 10,240 outcomes: it begins anew."""
    rng, cell = np.random.default_rng(3), np.zeros(CELL_SIZE)
    learn(cell, np.zeros(3001))
    FORGET(math.inf, cell)
    FORGET(math.inf, cell)
    assert cell[jumps.RESTARTS] == 1.0
    assert FORGOTTEN(cell) == 3001
    values = rng.random(40_000) < 0.015
    learn(cell, values, 3001)
    first = cell[FIRST_EPOCH + 3 * jumps.FIRST :]
    assert first[:3].tolist() == [40_000, values.sum(), 3001]
    assert FORGOTTEN(cell) == 3001
    assert cell[CHANGED] == 0.0
    spent = CONFIDENCE + SHARE(jumps.FIRST, 1, 1.0)
    assert 1.0 - cell[BELOW] == pytest.approx(UPPER(40_000.0, float(values.sum()), spent), rel=1e-3)


def test_a_person_forgets_what_is_older_than_a_time() -> None:
    cell = np.zeros(CELL_SIZE)
    learn(cell, np.zeros(2000))
    before = 1.0 - cell[BELOW]
    FORGET(1500.0, cell)
    UPDATE(CONFIDENCE, CONFIDENCE, cell)
    assert before < 1.0 - cell[BELOW] < 0.1
    FORGET(math.inf, cell)
    assert cell[BELOW] == 0.0
    learn(cell, np.zeros(2000), 2000)
    assert 1.0 - cell[BELOW] < 0.02
