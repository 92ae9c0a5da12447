"""The cone program: as good as its witness says, safe whatever the solver does, certified without trusting it."""

from typing import Any

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rules.cone_witness import best_value, random_columns

from stagewise.rules import cone_program
from stagewise.rules.cone_program import (
    Columns,
    compute_certified_bound,
    compute_pessimistic_costs,
    find_best_mixture_in_cone,
    mix_back_to_safe,
)

SIZES = [(1, 1, 4), (2, 1, 6), (4, 1, 12), (4, 3, 12), (10, 1, 100), (10, 3, 100)]


def problem(seed: int, n: int, m: int, count: int, known: bool = True) -> tuple[Columns, Any]:
    random = np.random.default_rng([seed, n, m, count, known])
    return random_columns(random, n, m, count, known), random.normal(size=count + 1)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_no_other_formulation_finds_a_better_mixture(sizes: tuple[int, int, int], known: bool) -> None:
    for seed in range(8):
        columns, gains = problem(seed, *sizes, known)
        best = find_best_mixture_in_cone(columns, gains)
        assert best.value == pytest.approx(best_value(columns, gains), abs=1e-6 * max(1.0, abs(best.value)))
        assert best.bound >= best_value(columns, gains) - 1e-9
        assert best.bound - best.value <= 2e-6 * max(1.0, abs(best.value))
        assert best.shares.sum() == pytest.approx(1.0, abs=1e-12)
        assert np.all(best.shares >= 0.0)
        assert np.all(compute_pessimistic_costs(columns, best.shares) <= columns.limits)


def test_equal_problems_give_equal_bits_whatever_was_solved_before() -> None:
    problems = [problem(seed, *sizes) for seed in range(4) for sizes in SIZES]
    cone_program._POOL.clear()
    kept = [find_best_mixture_in_cone(*one) for one in problems]
    backwards = [find_best_mixture_in_cone(*one) for one in reversed(problems)][::-1]
    for one, before, again in zip(problems, kept, backwards, strict=True):
        cone_program._POOL.clear()
        fresh = find_best_mixture_in_cone(*one)
        for other in (before, again):
            assert np.array_equal(fresh.shares, other.shares)
            assert (fresh.value, fresh.bound) == (other.value, other.bound)


def test_only_so_many_solvers_are_kept() -> None:
    for count in range(2, 2 * cone_program.MAX_SOLVERS):
        find_best_mixture_in_cone(*problem(0, 2, 1, count))
    assert len(cone_program._POOL) <= cone_program.MAX_SOLVERS


def hurried(refined: bool) -> Any:
    chosen = clarabel.DefaultSettings()
    chosen.verbose = False
    chosen.presolve_enable = chosen.equilibrate_enable = chosen.iterative_refinement_enable = False
    chosen.tol_gap_abs = chosen.tol_gap_rel = chosen.tol_feas = 1e-2
    chosen.max_iter = 6
    return chosen


@pytest.mark.parametrize("known", [True, False])
def test_a_careless_solver_costs_value_but_no_safety_and_the_bound_says_how_much(
    monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    missing = []
    with monkeypatch.context() as patch:
        patch.setattr(cone_program, "settings", hurried)
        cone_program._POOL.clear()
        for seed in range(20):
            for sizes in SIZES:
                columns, gains = problem(seed, *sizes, known)
                best, truth = find_best_mixture_in_cone(columns, gains), best_value(columns, gains)
                assert np.all(compute_pessimistic_costs(columns, best.shares) <= columns.limits)
                assert best.value <= truth + 1e-9 <= best.bound + 2e-9
                missing.append(truth - best.value)
        cone_program._POOL.clear()
    assert max(missing) > 1e-4


@pytest.mark.parametrize("rubbish", [np.nan, np.inf, -1.0, 0.0, 1e300])
def test_a_solver_that_answers_rubbish_is_survived(monkeypatch: pytest.MonkeyPatch, rubbish: float) -> None:
    columns, gains = problem(0, 4, 3, 12)
    answer = cone_program.PrimalDual(np.full(8, rubbish), np.full(21, rubbish), True)
    monkeypatch.setattr(cone_program, "solve_conic", lambda _: answer)
    best = find_best_mixture_in_cone(columns, gains)
    assert np.all(compute_pessimistic_costs(columns, best.shares) <= columns.limits)
    assert best.shares.sum() == pytest.approx(1.0, abs=1e-12)
    assert best.bound >= best_value(columns, gains) - 1e-9


@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.lists(st.floats(-5.0, 5.0), min_size=3, max_size=3),
    st.lists(st.floats(-5.0, 5.0), min_size=4, max_size=4),
)
def test_any_prices_give_a_bound(seed: int, prices: list[float], pull: list[float]) -> None:
    columns, gains = problem(seed, 4, 3, 7)
    assert (
        compute_certified_bound(columns, gains, np.array(prices), np.array(pull)) >= best_value(columns, gains) - 1e-8
    )


@settings(max_examples=100)
@given(st.integers(0, 10**6), st.booleans(), st.lists(st.floats(0.0, 1.0), min_size=8, max_size=8))
def test_mixing_back_ends_within_the_limits_and_no_earlier_than_it_must(
    seed: int, known: bool, weights: list[float]
) -> None:
    columns, _ = problem(seed, 3, 2, 7, known)
    shares = (np.array(weights) + 1e-3) / (sum(weights) + 8e-3)
    mixed = mix_back_to_safe(shares, columns)
    assert np.all(compute_pessimistic_costs(columns, mixed) <= columns.limits)
    assert mixed.sum() == pytest.approx(1.0, abs=1e-12)
    within = bool(np.all(compute_pessimistic_costs(columns, shares) <= columns.limits))
    assert np.array_equal(mixed, shares) == within
    if known and not within:
        assert np.min(columns.limits - compute_pessimistic_costs(columns, mixed)) < 1e-9
