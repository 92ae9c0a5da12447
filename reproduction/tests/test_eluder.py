"""The eluder dimension against its definition, written out over all sequences and all scales."""

import math
from itertools import permutations

import numpy as np
import pytest

import stagewise as sw
from stagewise_reproduction.beyond.as_printed.plan import build_functions_problem
from stagewise_reproduction.eluder import compute_eluder_dimension, compute_radius, compute_regret_order, is_independent
from stagewise_reproduction.printed.opnlb import PrintedOPNLB


def by_definition(table: np.ndarray, scale: float) -> int:
    """Try every sequence of distinct actions at every scale ε' ≥ ε at which an answer can change."""
    pairs = [one - other for i, one in enumerate(table) for other in table[:i]]
    count = table.shape[1]
    sizes = {scale}
    for pair in pairs:
        for size in range(1, count + 1):
            for some in permutations(range(count), size):
                if list(some) == sorted(some):
                    sizes.add(math.sqrt(float(np.sum(pair[list(some)] ** 2))))
    longest = 0
    for chosen in [size for size in sizes if size >= scale]:
        for length in range(longest + 1, count + 1):
            found = any(
                all(some_pair_tells(pairs, order[:index], order[index], chosen) for index in range(length))
                for order in permutations(range(count), length)
            )
            if not found:
                break
            longest = length
    return longest


def some_pair_tells(pairs: list, before: tuple, action: int, scale: float) -> bool:
    """Say whether two functions within ε' on what came before differ by more than ε' here."""
    return any(
        math.sqrt(float(np.sum(pair[list(before)] ** 2))) <= scale * (1 + 1e-12)
        and abs(pair[action]) > scale * (1 + 1e-12)
        for pair in pairs
    )


@pytest.mark.parametrize("seed", range(12))
def test_it_is_what_the_definition_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    functions_, actions = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    table = rng.uniform(size=(functions_, actions)).round(1 if seed % 2 else 3)
    for scale in (0.001, 0.2, 0.5):
        assert compute_eluder_dimension(table, scale) == by_definition(table, scale)


def test_classes_of_which_it_is_known() -> None:
    assert compute_eluder_dimension(np.array([[0.2, 0.4]]), 0.01) == 0, "one function leaves nothing to learn"
    assert compute_eluder_dimension(np.array([[0.2, 0.4], [0.2, 0.9]]), 0.01) == 1
    assert compute_eluder_dimension(np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]), 0.1) == 1, (
        "one value tells them apart"
    )
    free = np.array([[float(bit) for bit in f"{number:03b}"] for number in range(8)])
    assert compute_eluder_dimension(free, 0.5) == 3, "all tables over three arms: each arm must be tried"
    assert compute_eluder_dimension(free, 1.0) == 0, "no two functions differ by more than 1"
    # f_w(x) = <w, x>: the dimension of the space, where parameters lie on a grid and actions span it
    weights = np.array([[a, b] for a in (0.0, 0.5, 1.0) for b in (0.0, 0.5, 1.0)])
    assert compute_eluder_dimension(weights @ np.array([[1.0, 0.0], [0.0, 1.0]]), 0.4) == 2


def test_it_falls_with_the_scale_and_a_single_step_is_the_definition_s() -> None:
    table = np.random.default_rng(5).uniform(size=(5, 5))
    dimensions = [compute_eluder_dimension(table, scale) for scale in (0.01, 0.2, 0.4, 0.8, 2.0)]
    assert dimensions == sorted(dimensions, reverse=True)
    assert dimensions[0] > dimensions[-1] == 0
    assert is_independent(table, [], 0, 0.01)
    assert not is_independent(table, [0], 0, 0.01), "an action is dependent on itself"


def test_the_theorem_s_order_and_that_it_says_nothing_at_this_horizon() -> None:
    problem = build_functions_problem()
    policy = problem.players["as printed"]
    rewards, costs = (np.array(policy.reward_class), np.array(policy.cost_class))
    rounds = 2_000
    order = compute_regret_order(rewards, costs, rounds, 0.01, 0.1, 0.0, 0.3)
    assert order == pytest.approx(24_683, abs=1), "docs/theory/function-classes.md"
    for later, below in ((300_000, False), (400_000, True)):
        assert (compute_regret_order(rewards, costs, later, 0.01, 0.1, 0.0, 0.3) < later) == below
    d_r, d_c = (compute_eluder_dimension(table, 1.0 / rounds) for table in (rewards, costs))
    assert (d_r, d_c) == (3, 3)
    gamma = 512 * math.log(24 * 6 * math.log(2 * rounds) / 0.005)
    assert compute_radius(6, rounds, 0.01) == pytest.approx(gamma) == PrintedOPNLB.radius(policy, rounds - 1, 6)
    expected = math.sqrt(rounds * d_r * gamma) + d_r + 3.0 * (math.sqrt(rounds * d_c * gamma) + d_c)
    assert order == pytest.approx(expected)
    result = sw.simulate(policy, problem.world, rounds=200, runs=1, progress=False)
    assert result.regret[0, -1] <= 200.0 < compute_regret_order(rewards, costs, 200, 0.01, 0.1, 0.0, 0.3)
