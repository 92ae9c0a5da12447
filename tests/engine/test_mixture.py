"""The best pair under one limit: worth what HiGHS finds, and never above the limit. Its ties are in `test_simplex`."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tests.engine.highs import KINDS, Program, best_value, quiet_solver, random_program

from stagewise.engine.pair import Pair, find_best_pair, first_best, safe_share

SEED = 20260727
BILLIONTH = 1e-9
SIZES = [1, 2, 3, 10, 127, 128, 129, 2000]

amounts = st.floats(-8.0, 8.0, allow_subnormal=False)
grid = st.integers(-4, 4).map(lambda count: count / 2)
candidates = st.tuples(st.one_of(amounts, grid), st.one_of(amounts, grid))


def value_and_cost(pair: Pair, program: Program) -> tuple[float, float]:
    """Return what a pair is worth and what it costs, in floating point as its docstring says."""
    reward, cost = np.append(program.reward, program.safe_reward), np.append(program.cost[0], program.safe_cost[0])
    value = (1.0 - pair.share) * reward[pair.cheap] + pair.share * reward[pair.costly]
    return float(value), float((1.0 - pair.share) * cost[pair.cheap] + pair.share * cost[pair.costly])


def check_pair(program: Program, best: float) -> None:
    pair = find_best_pair(program.reward, program.cost[0], program.safe_reward, program.safe_cost[0], program.limits[0])
    value, cost = value_and_cost(pair, program)
    assert value == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert cost <= program.limits[0]
    assert (pair.cheap == pair.costly) == (pair.share == 0.0)
    assert 0.0 <= pair.share < 1.0


def exact_best(program: Program) -> Fraction:
    """Return the largest value over all actions and pairs, in rational arithmetic."""
    points = [(Fraction(r), Fraction(c)) for r, c in zip(program.reward, program.cost[0], strict=True) if r > -math.inf]
    points.append((Fraction(program.safe_reward), Fraction(program.safe_cost[0])))
    limit = Fraction(program.limits[0])
    cheap = [point for point in points if point[1] <= limit]
    costly = [point for point in points if point[1] > limit]
    mixed = [r + (limit - c) / (d - c) * (q - r) for r, c in cheap for q, d in costly]
    return max([r for r, _ in cheap] + mixed)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("actions", SIZES)
def test_a_pair_is_worth_what_highs_finds(kind: str, actions: int) -> None:
    random, solver = np.random.default_rng([SEED, actions, KINDS.index(kind)]), quiet_solver()
    for _ in range(8):
        program = random_program(random, kind, actions, 1)
        check_pair(program, best_value(solver, program))


@pytest.mark.slow
def test_ten_thousand_pairs_are_worth_what_highs_finds() -> None:
    random, solver = np.random.default_rng([SEED, 1]), quiet_solver()
    for count in range(10_000):
        program = random_program(random, KINDS[count % len(KINDS)], int(10 ** random.uniform(0.0, 2.5)), 1)
        check_pair(program, best_value(solver, program))


@settings(max_examples=300)
@given(st.lists(candidates, max_size=7), amounts, amounts, st.floats(0.01, 4.0))
def test_a_pair_is_worth_the_best_pair_of_all_in_rational_arithmetic(
    listed: list[tuple[float, float]], safe_reward: float, safe_cost: float, slack: float
) -> None:
    reward, cost = np.array(listed, dtype=float).reshape(-1, 2).T
    program = Program(
        reward.copy(), cost[np.newaxis].copy(), safe_reward, np.array([safe_cost]), np.array([safe_cost + slack])
    )
    check_pair(program, float(exact_best(program)))


def test_an_arc_with_a_thousand_corners_ends_at_its_best_chord() -> None:
    angle = np.linspace(0.0, np.pi / 2, 1000)
    for limit in (1e-6, 0.1, 0.5, 0.9):
        program = Program(np.sin(angle), 1.0 - np.cos(angle)[np.newaxis], -1.0, np.array([-1.0]), np.array([limit]))
        check_pair(program, best_value(quiet_solver(), program))


@pytest.mark.long
@settings(max_examples=500)
@example([0.1, 0.3, 0.7])
@example([0.0, 1e-300, 1e300])
@example([-5e-324, 0.0, 5e-324])
@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3).map(sorted))
def test_a_share_keeps_the_limit_in_floating_point_and_wastes_only_rounding(costs: list[float]) -> None:
    cheap, limit, costly = costs
    assume(limit < costly)
    share = safe_share(cheap, costly, limit)
    assert 0.0 <= share < 1.0
    assert (1.0 - share) * cheap + share * costly <= limit
    wasted = Fraction(limit) - Fraction(cheap) - Fraction(share) * (Fraction(costly) - Fraction(cheap))
    assert wasted <= Fraction(1e-14) * (abs(Fraction(limit)) + abs(Fraction(cheap))) + Fraction(1e-300)


@pytest.mark.parametrize(
    ("values", "first"),
    [
        ([], -1),
        ([-math.inf, -math.inf], -1),
        ([3.0, 3.0, 3.0], 0),
        ([1.0, 3.0, 3.0], 1),
        ([-math.inf, -2.0, -1.0], 2),
        ([1.0, 1.0 + 0.5 * BILLIONTH], 0),
        ([1.0, 1.0 + 2.0 * BILLIONTH], 1),
        ([-1.0 - 0.5 * BILLIONTH, -1.0], 0),
        ([-1.0 - 2.0 * BILLIONTH, -1.0], 1),
        ([0.0, 1e-300], 1),
        ([0.0, -0.0], 0),
    ],
)
def test_the_lowest_index_within_a_billionth_of_the_largest_is_first(values: list[float], first: int) -> None:
    assert first_best(np.array(values)) == first
