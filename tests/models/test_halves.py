"""Halves of users: counted as defined, and evidence that is a minimum over means and an e-value."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from stagewise.engine.compile import Floats, as_python
from stagewise.models.promise_tests import (
    CUT,
    FALLS,
    HALF_FIELDS,
    HELD_BACK,
    LOG_WEIGHTS,
    RATIOS,
    compute_evidence,
    compute_tilted,
    count_row,
    count_rows,
)

EVIDENCE, ROW, ROWS = map(as_python, (compute_evidence, count_row, count_rows))


def compute_evidence_of_tilt(*case: float) -> float:
    """Return the evidence of a tilt (k, c)."""
    return float(as_python(compute_tilted)(*case, math.log1p(case[-2]), math.log1p(-case[-1])))


NUMBERS, NONE = 3, np.zeros((0, 3))


def draw_rows(chance: np.random.Generator, count: int) -> Floats:
    """Return rows (action, 1, numbers)."""
    numbers = chance.uniform(-1.0, 1.0, (count, NUMBERS))
    return np.column_stack([chance.integers(0, 2, count), np.ones(count), numbers])


@pytest.mark.parametrize(
    "case", [(50, 20, 400, 3), (400, 3, 50, 20), (7, 0, 9, 0), (300, 30, 0, 0), (1000, 400, 900, 2)]
)
@pytest.mark.parametrize(("k", "c"), [(0.02, 0.02), (2.0, 0.5), (0.05, 0.85)])
def test_the_evidence_of_a_tilt_is_its_least_over_all_means(case: Any, k: float, c: float) -> None:
    upper, upper_sum, lower, lower_sum = map(float, case)

    def log_ratio(p: float) -> float:
        gain = upper_sum * math.log1p(k) + lower_sum * math.log1p(-c)
        return gain - upper * math.log1p(k * p) - lower * math.log1p(-c * p)

    grid = min(log_ratio(p) for p in np.linspace(0.0, 1.0, 2_001))
    least = min(grid, float(minimize_scalar(log_ratio, bounds=(0.0, 1.0), method="bounded").fun))
    assert compute_evidence_of_tilt(upper, upper_sum, lower, lower_sum, k, c) == pytest.approx(least, abs=1e-4)
    assert compute_evidence_of_tilt(upper, upper_sum, lower, lower_sum, k, c) <= least + 1e-9


def test_the_evidence_of_all_cells_is_a_mean_over_tilts_of_their_products() -> None:
    table = np.zeros((3, 1, HALF_FIELDS))
    table[0, 0, :4], table[1, 0, :4] = (100.0, 2.0, 90.0, 9.0), (10.0, 0.0, 300.0, 4.0)  # the third is empty
    single, total, alone = np.empty(3), 0.0, np.zeros(3)
    for c in FALLS:
        for ratio, weight in zip(RATIOS, LOG_WEIGHTS, strict=True):
            each = [
                math.exp(compute_evidence_of_tilt(n1, s1, n0, s0, c * ratio, c))
                for n0, s0, n1, s1 in table[:2, 0, :4].tolist()
            ]
            each.append(1.0)
            total += math.exp(weight) * math.prod(HELD_BACK + (1.0 - HELD_BACK) * one for one in each)
            alone += math.exp(weight) * np.array(each)
    assert EVIDENCE(table, 3, 0, 1, single) == pytest.approx(math.log(total))
    np.testing.assert_allclose(single, np.log(alone), atol=1e-12)
    mirrored = table[:, :, [2, 3, 0, 1, 4]]
    assert EVIDENCE(np.ascontiguousarray(mirrored), 3, 0, 0, single) == pytest.approx(math.log(total))


@pytest.mark.parametrize("sums", [(1e9, 0.0), (5e8, 5e8), (0.0, 1e9)])
def test_evidence_of_very_many_outcomes_is_finite(sums: tuple[float, float]) -> None:
    table, single = np.zeros((1, 1, HALF_FIELDS)), np.empty(1)
    table[0, 0, :4] = (1e9, sums[0], 1e9, sums[1])
    assert math.isfinite(EVIDENCE(table, 1, 0, 1, single))
    assert math.isfinite(single[0])
    assert (single[0] > 100.0) == (sums == (0.0, 1e9))


def test_the_weights_of_the_tilts_add_up_to_one() -> None:
    assert len(FALLS) * sum(map(math.exp, LOG_WEIGHTS)) == pytest.approx(1.0)


def test_rows_are_counted_in_their_halves_by_what_was_known_before_them() -> None:
    chance = np.random.default_rng(1)
    rows, values, slopes = draw_rows(chance, 200), chance.random(200), chance.standard_normal((2, NUMBERS))
    table, risk = np.zeros((2, NUMBERS + 2, HALF_FIELDS)), np.zeros(NUMBERS + 1)
    expected, cuts = np.zeros((2, NUMBERS + 2, 4)), np.zeros((2, NUMBERS + 2))
    for at, (row, value) in enumerate(zip(rows, values, strict=True)):
        cell, numbers = int(row[0]), row[2:]
        earlier, ours = rows[:at], rows[:at, 0] == cell
        means = [
            values[:i][rows[:i, 0] == rows[i, 0]].mean() if (rows[:i, 0] == rows[i, 0]).any() else values[i]
            for i in range(at)
        ]
        slope = ((values[:at] - np.array(means))[:, np.newaxis] * earlier[:, 2:]).sum(axis=0) / max(at, 1)
        for column, place in enumerate([*numbers, slopes[cell] @ numbers, slope @ numbers]):
            half = 2 * int(place > cuts[cell, column] + 1e-12)
            expected[cell, column, half : half + 2] += 1.0, value
            cuts[cell, column] += (place - cuts[cell, column]) / (ours.sum() + 1)
        ROW(table, risk, cell, float(value), row, slopes)
    np.testing.assert_allclose(table[:, :, :4], expected)
    np.testing.assert_allclose(table[:, :, CUT], cuts, atol=1e-12)


def test_rows_at_once_are_rows_one_by_one_with_the_slopes_of_their_time() -> None:
    chance = np.random.default_rng(2)
    rows, values, indices = draw_rows(chance, 60), chance.random(60), np.arange(60)
    older, newer = chance.standard_normal((2, 2, NUMBERS))
    cells = rows[:, 0].astype(np.int64)
    cells[5] = -1  # it is not tested
    at_once, one_by_one = (np.zeros((2, NUMBERS + 2, HALF_FIELDS)), np.zeros((2, NUMBERS + 2, HALF_FIELDS)))
    risks = np.zeros(NUMBERS + 1), np.zeros(NUMBERS + 1)
    ROWS(at_once, risks[0], cells, values, rows, indices, newer, 40, older, 20, NONE)
    for i in range(60):
        if cells[i] >= 0:
            slopes = newer if i >= 40 else older if i >= 20 else NONE
            ROW(one_by_one, risks[1], int(cells[i]), float(values[i]), rows[i], slopes)
    assert at_once.tobytes() == one_by_one.tobytes()
    assert risks[0].tobytes() == risks[1].tobytes()
    assert at_once[:, NUMBERS, [0, 2]].sum() == 40.0  # the first twenty had no click score


@pytest.mark.compiled
def test_compiled_and_interpreted_evidence_are_equal_to_the_bit() -> None:
    chance = np.random.default_rng(3)
    rows, values, indices = draw_rows(chance, 400), (chance.random(400) < 0.1) * 1.0, np.arange(400)
    slopes, cells = chance.standard_normal((2, NUMBERS)), rows[:, 0].astype(np.int64)
    tables, found = [], []
    for count, compute in ((ROWS, EVIDENCE), (count_rows, compute_evidence)):
        table, single = np.zeros((2, NUMBERS + 2, HALF_FIELDS)), np.empty(2)
        count(table, np.zeros(NUMBERS + 1), cells, values, rows, indices, slopes, 0, slopes, 0, NONE)
        found.append([(compute(table, 2, column, 1, single), *single.tolist()) for column in range(NUMBERS + 2)])
        tables.append(table.tobytes())
    assert tables[0] == tables[1]
    assert found[0] == found[1]


def test_evidence_exceeds_what_it_may_no_more_often_than_it_may() -> None:
    """Users alike, with a selection that reacts to outcomes: the mean of the final e-value is at most 1."""
    chance, wealth = np.random.default_rng(4), []
    for _ in range(300):
        table, risk, single = np.zeros((1, 3, HALF_FIELDS)), np.zeros(2), np.empty(1)
        last = 0.0
        for _ in range(40):
            place = chance.uniform(0.0, 1.0) * (1.0 if last else -1.0)  # after an event only the upper half is chosen
            last = float(chance.random() < 0.3)
            ROW(table, risk, 0, last, np.array([0.0, 1.0, place]), np.zeros((0, 1)))
        wealth.append(math.exp(EVIDENCE(table, 1, 0, 1, single)))
    assert np.mean(wealth) < 1.0 + 3.0 * np.std(wealth) / math.sqrt(300)
