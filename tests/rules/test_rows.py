"""The best mixture under a row for every function: as HiGHS has it, with a proof, and safe to the bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules.witness import KINDS, Problem, linear_value, random_problem

from stagewise.engine.compile import Floats
from stagewise.rules import mixture as rows_module
from stagewise.rules.mixture import (
    compute_dual_bounds,
    compute_pessimistic_costs,
    find_best_under_rows,
    mix_back_to_safe,
    scale_rows,
)

SEED = 20260902


def problems(kind: str, constraints: int, count: int = 25) -> list[Problem]:
    random = np.random.default_rng([SEED, *map(ord, kind), constraints])
    return [random_problem(random, kind, constraints) for _ in range(count)]


def worth_of(problem: Problem) -> Floats:
    """Return the hoped reward of every action by itself."""
    widths = [s * np.ptp(cost, axis=0) for cost, s in zip(problem.costs, problem.scales, strict=True)]
    return problem.rewards.max(axis=0) + np.max(widths, axis=0)


@pytest.mark.long
@pytest.mark.parametrize("constraints", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_the_mixture_is_the_best_and_safe_to_the_bit(kind: str, constraints: int) -> None:
    for problem in problems(kind, constraints):
        values = worth_of(problem)
        vertex = find_best_under_rows(values, problem.costs, problem.limits)
        best = linear_value(values, problem)
        assert vertex.solved
        assert vertex.value == pytest.approx(best, abs=1e-9)
        assert best - 1e-9 <= vertex.bound <= vertex.value + 1e-9
        assert np.all(vertex.shares >= 0.0)
        assert vertex.shares.sum() == pytest.approx(1.0, abs=1e-14)
        assert np.all(compute_pessimistic_costs(vertex.shares, problem.costs) <= problem.limits)


@given(st.integers(0, 2**32))
def test_any_prices_bound_every_feasible_mixture(seed: int) -> None:
    random = np.random.default_rng(seed)
    problem = random_problem(random, "plain", 2)
    costs, values = zip(problem.costs, problem.limits, strict=True), worth_of(problem)
    rows = np.concatenate([scale_rows(table, limit) for table, limit in costs])
    bound = compute_dual_bounds(values, random.exponential(size=len(rows)), rows)[0]
    shares = mix_back_to_safe(random.dirichlet(np.ones(values.size)), problem.costs, problem.limits)
    assert values @ shares <= bound + 1e-12


@given(st.integers(0, 2**32))
def test_mixing_back_is_safe_to_the_bit_and_moves_no_more_than_needed(seed: int) -> None:
    random = np.random.default_rng(seed)
    problem = random_problem(random, "unknown safe cost", 2)
    shares = random.dirichlet(np.ones(problem.rewards.shape[1]))
    mixed = mix_back_to_safe(shares, problem.costs, problem.limits)
    assert np.all(compute_pessimistic_costs(mixed, problem.costs) <= problem.limits)
    moved = 1.0 - mixed[:-1].sum() / shares[:-1].sum()
    if moved > 1e-9:
        nearer = mixed + 1e-9 * (shares - mixed)
        assert np.any(compute_pessimistic_costs(nearer, problem.costs) > problem.limits)
    else:
        assert mixed == pytest.approx(shares, abs=1e-8)


def test_a_solver_that_fails_leaves_the_safe_action(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problems("plain", 1, 1)[0]

    def failing(rows: Floats, values: Floats) -> tuple[Floats, Floats, bool]:
        return np.zeros(values.size - 1), np.zeros(len(rows)), False

    monkeypatch.setattr(rows_module, "solve_under_rows", failing)
    vertex = find_best_under_rows(worth_of(problem), problem.costs, problem.limits)
    assert not vertex.solved
    assert vertex.shares[-1] == 1.0
    assert vertex.bound >= vertex.value


def test_worth_that_is_no_number_counts_as_unsolved() -> None:
    problem = problems("plain", 1, 1)[0]
    assert not find_best_under_rows(np.full(problem.rewards.shape[1], np.nan), problem.costs, problem.limits).solved
