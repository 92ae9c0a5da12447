"""Bets against upper ends: how often they win where every end holds, and that they win where some do not."""

import math
from typing import Any

import numba
import numpy as np
import pytest
from scipy.stats import binom

from stagewise.engine.compile import as_python
from stagewise.models.promise_tests import (
    BET_ENDS,
    BET_SUM,
    BETS,
    COLUMN_FIELDS,
    COUNT,
    FIELDS,
    LOG_WEALTH,
    SUM,
    compute_log_wealth,
    count_in_subgroups,
    count_rows_in_subgroups,
    count_subgroups,
)

NUMBERS, ACTIONS = 3, 2
SUBGROUPS = as_python(count_subgroups)
NO_SLOPES = np.zeros((0, NUMBERS))


def start() -> tuple[Any, Any]:
    """Return the empty table of two actions, and its columns."""
    return np.zeros((1 + ACTIONS, SUBGROUPS(NUMBERS), FIELDS)), np.zeros((NUMBERS + 2, COLUMN_FIELDS))


def draw_rows(chance: np.random.Generator, count: int) -> Any:
    """Return rows of two actions."""
    numbers = chance.uniform(-1.0, 1.0, (count, NUMBERS))
    return np.column_stack([chance.integers(0, ACTIONS, count), np.ones(count), numbers])


@numba.njit
def fill_wealths(runs: int, rows: int, ratio: float, slopes: Any, table: Any, columns: Any, logs: Any) -> None:
    """Write the largest log wealth of every run; the mean is `ratio` times the end, and the end depends on the past."""
    found, row = np.zeros(2, dtype=np.int64), np.empty(2 + NUMBERS)
    for run in range(runs):
        table[:], columns[:], logs[run], excess = 0.0, 0.0, -np.inf, 0.0
        np.random.seed(run)
        for i in range(rows):
            row[0], row[1] = np.random.randint(0, ACTIONS), 1.0
            for k in range(NUMBERS):
                row[2 + k] = np.random.uniform(-1.0, 1.0)
            end = 0.02 + 0.18 * np.random.random() if excess > 0.0 else 0.1 * (1.0 + 0.9 * row[2])
            value = 1.0 if np.random.random() < min(ratio * end, 1.0) else 0.0
            if i % 7 == 0:
                value = min(ratio * end, 1.0)  # outcomes need not be 0 or 1
            excess += value - end
            count_in_subgroups(table, columns, value, end, 0.1, row, slopes)
            if i % 16 == 0:
                logs[run] = max(logs[run], compute_log_wealth(table, found))


@pytest.mark.compiled
@pytest.mark.parametrize("level", [0.2, 0.05])
def test_wealth_reaches_a_level_no_more_often_than_it_may_where_ends_are_exact(level: float) -> None:
    runs, logs = 400, np.empty(400)
    fill_wealths(runs, 2_000, 1.0, np.ones((ACTIONS, NUMBERS)), *start(), logs)
    assert (logs >= -math.log(level)).sum() <= binom.ppf(0.999, runs, level)


@pytest.mark.compiled
def test_wealth_grows_where_means_exceed_their_ends() -> None:
    logs = np.empty(50)
    fill_wealths(50, 2_000, 2.0, NO_SLOPES, *start(), logs)
    assert (logs >= math.log(1e3)).sum() >= 49


def test_a_row_is_counted_once_in_every_column_and_every_pair() -> None:
    chance, (table, columns), count = np.random.default_rng(1), start(), 400
    rows, values = draw_rows(chance, count), (chance.random(count) < 0.3) * 1.0
    ends = np.where(np.arange(count) < 100, 1.0, 0.2)
    count_rows_in_subgroups(table, columns, values, ends, 0.1, rows, np.ones((ACTIONS, NUMBERS)))
    counts = table[:, :, COUNT]
    by_action = [count, (rows[:, 0] == 0).sum(), (rows[:, 0] == 1).sum()]
    assert counts[:, 0].tolist() == by_action
    for column in range(NUMBERS + 1):  # the click score too
        assert counts[:, 1 + 4 * column : 5 + 4 * column].sum(axis=1).tolist() == by_action
    assert counts[0, 5 + 4 * NUMBERS : 9 + 4 * NUMBERS].sum() == 300  # an end of 1 says nothing
    pairs = counts[:, 9 + 4 * NUMBERS :].reshape(1 + ACTIONS, -1, 4)
    assert (pairs.sum(axis=2) == np.array(by_action)[:, None]).all()
    assert pairs.shape[1] == 3
    assert table[0, 0, SUM] == values.sum()
    assert table[0, 0, BETS] <= 300
    assert columns[0, 1] == pytest.approx(rows[:, 2].mean(), abs=0.1)


def test_a_bet_is_the_likelihood_ratio_of_the_rate_so_far() -> None:
    table, columns = start()
    rows, values = np.ones((5, 2 + NUMBERS)), np.array([1.0, 1.0, 0.0, 0.5, 1.0])
    ends, wealth, total = np.array([0.05, 0.2, 0.9, 0.3, 1.0]), 0.0, 0.0
    count_rows_in_subgroups(table, columns, values, ends, 0.1, rows, NO_SLOPES)
    bets = 0
    for i, (value, end) in enumerate(zip(values, ends, strict=True)):
        rate = (total + 1.0) / (i + 10.0)
        if end < rate:
            wealth += math.log(value * rate / end + (1.0 - value) * (1.0 - rate) / (1.0 - end))
            bets += 1
        total += value
    entry = table[0, 0]
    assert entry[LOG_WEALTH] == pytest.approx(wealth)
    assert (entry[BETS], entry[BET_SUM], entry[BET_ENDS]) == (bets, 1.0, 0.05)
    assert table[2, 0].tolist() == entry.tolist()
    assert not table[1].any()


def test_ends_of_nothing_and_outcomes_at_the_edges_keep_wealth_finite() -> None:
    table, columns, found = *start(), np.zeros(2, dtype=np.int64)
    values, ends = np.tile([0.0, 1.0], 500), np.tile([0.0, 1e-300, 1.0, 0.5], 250)
    count_rows_in_subgroups(table, columns, values, ends, 1e-6, np.ones((1_000, 2 + NUMBERS)), NO_SLOPES)
    assert np.isfinite(table).all()
    assert np.isfinite(compute_log_wealth(table, found))


def test_more_actions_than_cells_count_for_all_actions() -> None:
    table, columns = start()
    rows = np.ones((3, 2 + NUMBERS))
    rows[:, 0] = 7.0
    count_rows_in_subgroups(table, columns, np.ones(3), np.full(3, 0.5), 0.1, rows, NO_SLOPES)
    assert table[0, 0, COUNT] == 3.0
    assert not table[1:].any()
