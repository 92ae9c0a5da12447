"""The search over triples finds the paper's maximum: as all triples one by one do, and one mixed-integer program."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reproduction.tests.exact.triples_witness import mixed_integer_value, over_all_triples
from tests.rules.test_rows import problems, worth_of
from tests.rules.witness import KINDS, linear_value
from tests.sizes import sized

from stagewise.rules.mixture import compute_pessimistic_costs
from stagewise_reproduction.exact.highs import keep_maximal
from stagewise_reproduction.exact.triples import find_best_triple


@sized(2, 12)
@pytest.mark.parametrize("constraints", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_the_search_finds_what_all_triples_and_the_mixed_integer_program_find(
    kind: str, constraints: int, size: int
) -> None:
    for problem in problems(kind, constraints, size):
        found = find_best_triple(*problem)
        assert found.solved
        assert found.value == pytest.approx(over_all_triples(problem), abs=1e-9)
        assert found.value == pytest.approx(mixed_integer_value(problem), abs=1e-9)
        assert found.value <= found.bound <= found.value + 1e-9
        assert np.all(compute_pessimistic_costs(found.shares, problem.costs) <= problem.limits)


@pytest.mark.parametrize("constraints", [1, 2])
def test_the_value_is_that_of_the_mixture(constraints: int) -> None:
    for problem in problems("plain", constraints, 10):
        found = find_best_triple(*problem)
        ends = zip(problem.costs, problem.scales, strict=True)
        bonus = max(scale * np.ptp(cost @ found.shares) for cost, scale in ends)
        assert found.value == pytest.approx(np.max(problem.rewards @ found.shares) + bonus, abs=1e-12)


@pytest.mark.parametrize("constraints", [1, 2])
def test_policy_level_widths_hope_for_no_more_than_action_level_ones(constraints: int) -> None:
    strictly = 0
    for problem in problems("plain", constraints):
        found, looser = find_best_triple(*problem), linear_value(worth_of(problem), problem)
        assert found.value <= looser + 1e-9
        strictly += found.value < looser - 1e-3
    assert strictly >= 5


def test_the_search_solves_far_fewer_programs_than_there_are_triples() -> None:
    """Measured: see docs/theory/function-classes.md."""
    random = np.random.default_rng(0)
    solved = 0
    for _ in range(5):
        base, costs = random.random(11), random.random(11)
        rewards = np.clip(base + 0.3 * random.normal(size=(10, 11)), 0.0, 1.0)
        table = np.clip(costs + 0.3 * random.normal(size=(10, 11)), 0.0, 1.0)
        table[:, -1] = 0.1
        solved += find_best_triple(rewards, (table,), np.array([0.4]), np.array([3.0])).programs
    assert solved < 500, "of 5 x 1000 triples"


def test_a_search_cut_short_is_feasible_and_says_how_much_it_may_have_missed() -> None:
    missed = 0
    for problem in problems("plain", 2):
        total, cut = find_best_triple(*problem), find_best_triple(*problem, most=1)
        assert cut.programs <= 1
        assert np.all(compute_pessimistic_costs(cut.shares, problem.costs) <= problem.limits)
        assert cut.value <= total.value + 1e-9
        assert total.value - 1e-9 <= cut.bound < np.inf
        missed += cut.bound > cut.value + 1e-6
    assert missed > 0


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_only_functions_that_another_reaches_everywhere_are_left_out(seed: int) -> None:
    random = np.random.default_rng(seed)
    table = random.integers(0, 4, size=(12, 3)).astype(float)
    kept = keep_maximal(table)
    assert len(np.unique(kept, axis=0)) == len(kept)
    for row in table:
        assert np.any(np.all(kept >= row, axis=1))
    for row in kept:
        assert np.sum(np.all(kept >= row, axis=1)) == 1
        assert np.any(np.all(table == row, axis=1))
