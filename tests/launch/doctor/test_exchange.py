"""The tests hold: against shuffles of the same rows, and against the exact chance."""

import numpy as np
import pytest
from scipy.stats import hypergeom

from stagewise.launch.doctor.number_checks import ValueCounts, compute_auc, compute_max_linear_auc
from stagewise.launch.statistics import (
    bennett_bound,
    chernoff_lower_bound,
    compute_ranks,
    measure_group_shifts,
    measure_shift,
)


@pytest.mark.parametrize("level", [0.05, 0.01])
def test_shuffled_rows_are_found_apart_no_more_often_than_said(level):
    chance = np.random.default_rng(5)
    values, strata, marked = chance.random(300) ** 4, chance.integers(0, 3, 300), chance.random(300) < 0.05
    found = sum(measure_shift(chance.permutation(values), marked, strata).p_value <= level for _ in range(400))
    assert found <= 400 * level


@pytest.mark.parametrize("hits", [12, 20, 30])
def test_the_bound_is_above_the_exact_chance_and_not_far(hits):
    """An event among 100 of 1,000 rows, of which 40 are marked: a hypergeometric draw."""
    values = np.zeros(1000)
    values[:100] = 1.0
    marked = np.zeros(1000, dtype=bool)
    marked[:hits] = True
    marked[999 - (40 - hits) : 999] = True
    told = measure_shift(values, marked, np.zeros(1000, dtype=np.int64)).p_value
    exact = hypergeom.sf(hits - 1, 1000, 100, 40)
    assert told == pytest.approx(min(2.0 * exact, 1.0), rel=1e-6)
    apart = measure_shift(values + 1e-3 * (np.arange(1000) == 999), marked, np.zeros(1000, dtype=np.int64)).p_value
    assert exact <= apart  # Bennett's, since there are three values now, and not far from it
    assert np.log(apart) <= 0.5 * np.log(exact) + 2.0


def test_groups_are_as_one_by_one():
    chance = np.random.default_rng(6)
    values, groups, strata = chance.random(500), chance.integers(0, 4, 500), chance.integers(0, 2, 500)
    told = measure_group_shifts(values, groups, strata, 5)
    for group in range(4):
        one = measure_shift(values, groups == group, strata)
        assert one.p_value <= told.p_value[group] * (1 + 1e-9)
    assert told.p_value[4] == 1.0


def test_what_does_not_vary_tells_nothing():
    nothing, some = np.zeros(10), np.arange(10) < 3
    assert measure_shift(nothing, some, np.zeros(10, dtype=np.int64)).p_value == 1.0
    assert bennett_bound(0.0, 0.0, 0.0) == 1.0
    assert compute_ranks(np.empty(0)).size == 0


def test_areas_are_those_of_pairs():
    chance = np.random.default_rng(7)
    values, marked = chance.integers(0, 5, 60).astype(float), chance.random(60) < 0.4
    ones, zeros = (
        np.bincount(values[marked].astype(int), minlength=5),
        np.bincount(values[~marked].astype(int), minlength=5),
    )
    pairs = np.sign(values[marked][:, None] - values[~marked][None, :])
    assert compute_auc(ones * 1.0, zeros * 1.0) == pytest.approx((pairs.mean() + 1.0) / 2.0)
    points = np.linspace(0.0, 1.0, 1001)
    rare = ValueCounts(10.01, points, np.ones(1001), np.full(1001, 0.01))
    assert compute_max_linear_auc(rare) == pytest.approx(2 / 3, abs=0.01)  # p ∝ x
    assert chernoff_lower_bound(0.8, 1e9, 10.0) == pytest.approx(0.8, abs=1e-3)
