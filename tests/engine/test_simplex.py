"""The best mixture under several limits: worth what HiGHS finds, never above one, and decided by the rule on ties."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.highs import KINDS, Program, best_value, quiet_solver, random_program

from stagewise.engine import simplex
from stagewise.engine.compile import Floats, Ints
from stagewise.engine.pair import find_best_pair
from stagewise.engine.simplex import ITERATION_LIMIT, OPTIMAL, find_best_mixture, mixture_cost, scratch_shape

SEED = 20260727
BILLIONTH = 1e-9

grid = st.integers(-3, 3).map(lambda count: count / 2)


class Mixture(NamedTuple):
    status: int
    support: Ints
    shares: Floats


def mixture_of(program: Program, solve: Any = find_best_mixture) -> Mixture:
    constraints, actions = program.cost.shape
    support, shares = np.full(constraints + 1, 99), np.full(constraints + 1, np.nan)
    basis, gains = np.full(scratch_shape(constraints), np.nan), np.full(actions, np.nan)
    return Mixture(solve(*program, support, shares, basis, gains), support, shares)


def plays(program: Program) -> dict[int, float]:
    """Return the share of each action that has one."""
    mixture = mixture_of(program)
    assert mixture.status == OPTIMAL
    return {int(a): float(s) for a, s in zip(mixture.support, mixture.shares, strict=True) if s > 0.0}


def twice(reward: list[float], cost: list[float], safe_reward: float, limit: float) -> Program:
    """Return a program with the same limit twice and a safe action that costs nothing."""
    return Program(np.array(reward), np.array([cost, cost]), safe_reward, np.zeros(2), np.full(2, limit))


def check_mixture(program: Program, mixture: Mixture, best: float) -> None:
    status, support, shares = mixture
    played = shares > 0.0
    reward = np.append(program.reward, program.safe_reward)
    assert status == OPTIMAL
    assert float(shares[played] @ reward[support[played]]) == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert np.all(shares >= 0.0)
    assert shares.sum() == pytest.approx(1.0, abs=1e-14)
    assert np.all(support[~played] == -1)
    assert len(set(support[played])) == played.sum()
    for cost, safe_cost, limit in zip(program.cost, program.safe_cost, program.limits, strict=True):
        total = 0.0
        for share, each in zip(shares, np.append(cost, safe_cost)[support], strict=True):
            total += share * each
        assert total <= limit
        assert mixture_cost(cost, safe_cost, support, shares) == total


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("constraints", [1, 2, 3, 5, 8])
def test_a_mixture_is_worth_what_highs_finds(kind: str, constraints: int) -> None:
    random, solver = np.random.default_rng([SEED, constraints, KINDS.index(kind)]), quiet_solver()
    for actions in [1, 2, 3, 5, 10, 30, 100, 300] * 2:
        program = random_program(random, kind, actions, constraints)
        check_mixture(program, mixture_of(program), best_value(solver, program))


@pytest.mark.slow
def test_ten_thousand_mixtures_are_worth_what_highs_finds() -> None:
    random, solver = np.random.default_rng([SEED, 2]), quiet_solver()
    for count in range(10_000):
        actions, constraints = int(10 ** random.uniform(0.0, 2.5)), int(random.choice([1, 2, 3, 5, 8]))
        program = random_program(random, KINDS[count % len(KINDS)], actions, constraints)
        check_mixture(program, mixture_of(program), best_value(solver, program))


@pytest.mark.long
@settings(max_examples=300)
@given(st.data(), st.integers(1, 4), st.integers(1, 8))
def test_a_mixture_on_a_coarse_grid_is_worth_what_highs_finds(
    data: st.DataObject, constraints: int, actions: int
) -> None:
    def drawn(count: int) -> Floats:
        return np.array(data.draw(st.lists(grid, min_size=count, max_size=count)))

    safe_cost = drawn(constraints)
    limits = safe_cost + np.array(
        data.draw(st.lists(st.sampled_from([0.5, 1.0]), min_size=constraints, max_size=constraints))
    )
    program = Program(
        drawn(actions), drawn(constraints * actions).reshape(constraints, -1), data.draw(grid), safe_cost, limits
    )
    check_mixture(program, mixture_of(program), best_value(quiet_solver(), program))


def test_a_hair_of_slack_costs_no_more_than_the_rounding_of_the_limit() -> None:
    random, solver = np.random.default_rng(SEED), quiet_solver()
    for _ in range(30):
        slack = 10.0 ** random.uniform(-7.0, -6.0, 5)
        program = random_program(random, "plain", 300, 5)
        safe_cost = program.safe_cost + 0.3
        program = program._replace(safe_cost=safe_cost, limits=safe_cost + slack)
        status, support, shares = mixture_of(program)
        value = float(shares @ np.append(program.reward, program.safe_reward)[support])
        assert status == OPTIMAL
        assert value == pytest.approx(best_value(solver, program), rel=1e-9 + 1e-15 / slack.min())


@pytest.mark.parametrize("kind", KINDS)
def test_bland_alone_climbs_as_high(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simplex, "find_most_gaining", simplex.find_first_gaining)
    leaving = simplex.find_leaving
    monkeypatch.setattr(simplex, "find_leaving", lambda basis, careful: leaving(basis, True))
    monkeypatch.setattr(simplex, "run_simplex", interpreted(simplex.run_simplex))
    random, solver = np.random.default_rng([SEED, 3, KINDS.index(kind)]), quiet_solver()
    for actions in (3, 10, 30):
        program = random_program(random, kind, actions, 3)
        check_mixture(program, mixture_of(program, interpreted(find_best_mixture)), best_value(solver, program))


@pytest.mark.parametrize("part", ["run_simplex", "finish_shares"])
def test_giving_up_is_an_answer_and_it_is_the_safe_action(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simplex, part, lambda *_: False)
    status, support, shares = mixture_of(twice([1.0], [1.0], 0.0, 0.5), interpreted(find_best_mixture))
    assert (status, list(support), list(shares)) == (ITERATION_LIMIT, [-1, -1, -1], [1.0, 0.0, 0.0])


def interpreted(kernel: Any) -> Any:
    """Return the Python function behind a kernel, which sees what a test puts in the place of other kernels."""
    return getattr(kernel, "py_func", kernel)


@pytest.mark.parametrize("kind", KINDS)
def test_under_one_limit_it_plays_what_the_pair_plays(kind: str) -> None:
    random = np.random.default_rng([SEED, 4, KINDS.index(kind)])
    for actions in [1, 2, 5, 20, 100] * 4:
        program = random_program(random, kind, actions, 1)
        cheap, costly, share = find_best_pair(
            program.reward, program.cost[0], program.safe_reward, program.safe_cost[0], program.limits[0]
        )
        expected = {cheap: 1.0} if share < 1e-12 else {cheap: 1.0 - share, costly: share}
        assert plays(program) == pytest.approx(expected, abs=1e-12)


def decided(reward: list[float], cost: list[float], safe_reward: float, limit: float) -> dict[int, float]:
    """Return what has a share under a limit, once as a pair has it and once as a mixture under the same limit twice."""
    found = plays(twice(reward, cost, safe_reward, limit))
    cheap, costly, share = find_best_pair(np.array(reward), np.array(cost), safe_reward, 0.0, limit)
    assert found == ({cheap: 1.0} if share == 0.0 else {cheap: 1.0 - share, costly: share})
    return found


def test_of_equal_actions_the_first_is_played() -> None:
    assert decided([5.0] * 4, [1.0] * 4, 0.0, 0.25) == {-1: 0.75, 0: 0.25}
    assert decided([5.0] * 4, [0.2] * 4, 0.0, 0.25) == {0: 1.0}
    assert decided([1.0, 5.0, 5.0, 1.0], [0.0, 1.0, 1.0, 0.0], -9.0, 0.25) == {0: 0.75, 1: 0.25}


def test_values_within_a_billionth_are_equal_and_beyond_it_are_not() -> None:
    close, difference = 1.0 + 0.25 * BILLIONTH, 1.0 + 2.0 * BILLIONTH
    assert decided([1.0, close], [0.0, 0.0], 0.0, 1.0) == {0: 1.0}
    assert decided([1.0, difference], [0.0, 0.0], 0.0, 1.0) == {1: 1.0}
    assert decided([1.0, close], [2.0, 2.0], 0.0, 1.0) == {-1: 0.5, 0: 0.5}
    assert decided([1.0, difference], [2.0, 2.0], 0.0, 1.0) == {-1: 0.5, 1: 0.5}


def test_the_safe_action_is_played_only_where_strictly_better() -> None:
    assert decided([1.0], [0.0], 1.0, 1.0) == {0: 1.0}
    assert decided([1.0], [0.0], 1.0 + 0.5 * BILLIONTH, 1.0) == {0: 1.0}
    assert decided([1.0], [0.0], 1.0 + 2.0 * BILLIONTH, 1.0) == {-1: 1.0}
    assert decided([4.0, 0.0], [1.0, 0.0], 0.0, 0.5) == {0: 0.5, 1: 0.5}
    assert decided([4.0, -1.0], [1.0, 0.0], 0.0, 0.5) == {0: 0.5, -1: 0.5}


def test_a_dear_action_that_is_no_better_than_a_cheap_one_gets_no_share() -> None:
    assert decided([1.0, 1.0], [2.0, 0.5], 0.0, 1.0) == {1: 1.0}
    assert decided([1.0], [2.0], 1.0, 1.0) == {-1: 1.0}


def test_an_action_on_every_limit_may_be_played_alone() -> None:
    assert decided([2.0, 1.0], [2.0, 0.5], 0.0, 0.5) == {1: 1.0}
    assert decided([2.0], [0.5], 0.0, 0.5) == {0: 1.0}


def test_an_ineligible_action_is_never_played() -> None:
    assert decided([-math.inf, 1.0], [0.0, 2.0], 0.0, 1.0) == {-1: 0.5, 1: 0.5}
    assert decided([-math.inf, -math.inf], [0.0, 2.0], -5.0, 1.0) == {-1: 1.0}
    assert decided([], [], 0.0, 1.0) == {-1: 1.0}
