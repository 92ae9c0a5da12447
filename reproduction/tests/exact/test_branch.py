"""The paper's own problem: its value and its bound hold the truth between them, however early the search ends."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reproduction.tests.exact.norms_witness import best_over_directions, random_norms, worth
from tests.rules.cone_witness import random_columns

from stagewise.rules.cone_program import compute_pessimistic_costs, find_best_mixture_in_cone, mix_back_to_safe
from stagewise_reproduction.exact.box import Box, bound_in_box
from stagewise_reproduction.exact.branch import find_best_by_norms, split_box
from stagewise_reproduction.exact.norms import compute_bonuses, compute_slope, compute_value


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_in_the_plane_a_net_of_directions_finds_the_same_value(seed: int, m: int) -> None:
    random = np.random.default_rng([seed, m])
    columns = random_columns(random, 2, m, 6)
    norms, gains = random_norms(random, columns, two=False)
    low, high = best_over_directions(columns, norms, 400)
    best = find_best_by_norms(columns, gains, norms, 1e-5, 2000)
    assert best.bound - best.value <= 1e-5
    assert low - 1e-6 <= best.bound
    assert best.value <= high + 1e-6
    assert best.value == pytest.approx(worth(norms, best.shares), abs=1e-12)
    assert np.all(compute_pessimistic_costs(columns, best.shares) <= columns.limits)


@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize(("k", "m"), [(2, 1), (3, 3), (4, 1)])
def test_a_search_that_ends_early_says_how_much_may_be_missing(k: int, m: int, two: bool) -> None:
    random = np.random.default_rng([k, m, two])
    for _ in range(3):
        columns = random_columns(random, k, m, 8, known=not two)
        norms, gains = random_norms(random, columns, two)
        long = find_best_by_norms(columns, gains, norms, 1e-3, 600)
        values, bounds = [], []
        for budget in (1, 2, 7, 20, 60, 200):
            short = find_best_by_norms(columns, gains, norms, 1e-3, budget)
            assert np.all(compute_pessimistic_costs(columns, short.shares) <= columns.limits)
            assert short.bound >= long.value
            assert short.value <= long.bound
            values.append(short.value)
            bounds.append(short.bound)
        assert np.all(np.diff(values) >= -1e-6), "more solves may find another mixture, but no worse one"
        assert long.bound - long.value < bounds[0] - values[0] or bounds[0] - values[0] <= 1e-3


def test_the_cone_program_is_the_first_bound() -> None:
    random = np.random.default_rng(4)
    for _ in range(5):
        columns = random_columns(random, 3, 1, 8)
        norms, gains = random_norms(random, columns, two=False)
        best, relaxed = find_best_by_norms(columns, gains, norms, 1e-3, 300), find_best_mixture_in_cone(columns, gains)
        assert best.value <= best.bound <= relaxed.bound
        assert best.value >= compute_value(norms, relaxed.shares)


def test_above_five_coordinates_the_gap_is_honest_and_the_climb_worth_it() -> None:
    random = np.random.default_rng(5)
    columns = random_columns(random, 8, 1, 30)
    norms, gains = random_norms(random, columns, two=False)
    best, relaxed = find_best_by_norms(columns, gains, norms, 1e-3, 300), find_best_mixture_in_cone(columns, gains)
    assert best.bound == relaxed.bound
    assert best.value > compute_value(norms, relaxed.shares) + 0.01


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_no_mixture_with_its_mean_in_the_box_exceeds_the_boxs_bound(seed: int, two: bool) -> None:
    random = np.random.default_rng(seed)
    columns = random_columns(random, 3, 2, 6)
    norms, gains = random_norms(random, columns, two)
    shares = mix_back_to_safe(random.dirichlet(np.full(7, 0.3)), columns)
    mean = norms.whitened @ shares
    box = Box(mean - random.uniform(0.0, 0.5, size=3), mean + random.uniform(0.0, 0.5, size=3))
    answer = bound_in_box(columns, gains, norms, box)
    assert answer.bound >= worth(norms, shares) - 1e-9
    assert np.all(compute_pessimistic_costs(columns, answer.shares) <= columns.limits)


def test_a_box_that_no_mixture_reaches_is_ruled_out() -> None:
    random = np.random.default_rng(6)
    columns = random_columns(random, 3, 1, 6)
    norms, gains = random_norms(random, columns, two=False)
    away = norms.whitened.max(axis=1) + 1.0
    assert bound_in_box(columns, gains, norms, Box(away, away + 1.0)).bound < -100.0


def test_the_bound_closes_on_a_small_box() -> None:
    random = np.random.default_rng(7)
    columns = random_columns(random, 3, 1, 6)
    norms, gains = random_norms(random, columns, two=True)
    shares = mix_back_to_safe(np.full(7, 1.0 / 7.0), columns)
    mean = norms.whitened @ shares
    gaps = []
    for side in (1.0, 0.1, 0.01):
        box = Box(mean - side, mean + side)
        answer = bound_in_box(columns, gains, norms, box)
        gaps.append(answer.bound - (norms.estimates @ answer.shares + compute_bonuses(norms, mean)))
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.1


@pytest.mark.parametrize("where", [-9.0, 0.25, 9.0])
def test_halves_share_one_side_and_leave_nothing_out(where: float) -> None:
    first, second = split_box(Box(np.zeros(2), np.array([1.0, 2.0])), np.full(2, where))
    assert first.high[1] == second.low[1]
    assert 0.4 <= first.high[1] <= 1.6
    assert np.array_equal(first.low, np.zeros(2))
    assert np.array_equal(second.high, [1.0, 2.0])


def test_a_slope_is_a_tangent_from_below() -> None:
    random = np.random.default_rng(8)
    norms, _ = random_norms(random, random_columns(random, 3, 1, 6), two=True)
    for _ in range(50):
        here, there = random.normal(size=(2, 3))
        assert compute_slope(norms, here) @ there <= compute_bonuses(norms, there) + 1e-12
        assert compute_slope(norms, here) @ here == pytest.approx(float(compute_bonuses(norms, here)), abs=1e-12)
    assert np.array_equal(compute_slope(norms, np.zeros(3)), np.zeros(3))
