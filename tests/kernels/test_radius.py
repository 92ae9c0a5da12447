"""Each radius covers the truth in all rounds at once, and the three are ordered; the paper's fails in one dimension."""

import math

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stagewise.kernels.radius import LOGDET, MIXTURE, PAPER, Belief, closed_form, fill_radii, log_determinant, mixture
from stagewise.kernels.ridge import Ridge, tally_size
from tests.chance import allowed
from tests.kernels.alone import absorb
from tests.kernels.textbook import unit_rows

from stagewise import LCLUCB, InvalidProblem, SafeAction
from stagewise.kernels.compile import Floats
from stagewise.kernels.draw import ACTIONS, OUTCOME, normal

RUNS = 2000
ROUNDS = 300
KINDS = {"mixture": MIXTURE, "logdet": LOGDET, "paper": PAPER}


@numba.njit
def tempting_action(fit: Floats, seed: int, run: int, round_: int, action: Floats) -> None:
    """Write the most promising of three random directions: the actions depend on what was seen."""
    size, best, trial = fit.size, -math.inf, np.empty(fit.size)
    for attempt in range(3):
        for i in range(size):
            trial[i] = normal(seed, run, round_, ACTIONS, attempt * size + i)
        trial /= math.sqrt(np.sum(trial * trial))
        promise = np.sum(trial * fit)
        if promise > best:
            best = promise
            action[:] = trial


@numba.njit
def leaves(belief: Belief, truth: Floats, noise: float, rounds: int, run: int) -> bool:
    """Say whether ‖θ* − θ̂‖_V is ever above β in a run."""
    size, seed = truth.size, 20250727
    ridge = Ridge(np.eye(size) / np.sqrt(belief.ridge), np.zeros((1, size)), np.zeros(tally_size(1)))
    gram = belief.ridge * np.eye(size)
    action, value, radii = np.empty(size), np.empty(1), np.empty(1)
    work = np.empty(3 * size + 1)
    for round_ in range(rounds):
        tempting_action(ridge.fits[0], seed, run, round_, action)
        value[0] = np.sum(action * truth) + noise * normal(seed, run, round_, OUTCOME, 0)
        absorb(ridge, action, value, work)
        for i in range(size):
            for j in range(size):
                gram[i, j] += action[i] * action[j]
        fill_radii(belief, size, ridge.tally[0], ridge.tally[1], radii)
        distance = 0.0
        for i in range(size):
            for j in range(size):
                distance += gram[i, j] * (ridge.fits[0, i] - truth[i]) * (ridge.fits[0, j] - truth[j])
        if distance > radii[0] * radii[0]:
            return True
    return False


@numba.njit
def count_leaving(belief: Belief, truth: Floats, noise: float, rounds: int, runs: int) -> int:
    total = 0
    for run in range(runs):
        if leaves(belief, truth, noise, rounds, run):
            total += 1
    return total


def belief_in(kind: str, noise: float, delta: float) -> Belief:
    return Belief(KINDS[kind], 1.0, 1.0, np.array([noise]), np.ones(1), np.array([math.log(1.0 / delta)]))


LONGEST = np.array([2.0, -1.0, 2.0]) / 3.0  # of norm S = 1


@pytest.mark.compiled
@pytest.mark.parametrize("kind", KINDS)
def test_the_truth_stays_inside_in_all_rounds_at_once(kind: str) -> None:
    assert count_leaving(belief_in(kind, 1.0, 0.1), LONGEST, 1.0, ROUNDS, RUNS) <= allowed(RUNS, 0.1)


@pytest.mark.compiled
def test_the_default_radius_is_nearly_tight() -> None:
    assert count_leaving(belief_in("mixture", 1.0, 0.1), LONGEST, 1.0, ROUNDS, RUNS) > 0.01 * RUNS


@pytest.mark.compiled
def test_a_noise_declared_too_small_is_found_out() -> None:
    assert count_leaving(belief_in("mixture", 0.6, 0.1), LONGEST, 1.0, ROUNDS, RUNS) > allowed(RUNS, 0.1)


@pytest.mark.compiled
def test_in_one_dimension_the_papers_radius_fails_and_the_others_hold() -> None:
    runs, truth = 6000, np.ones(1)
    failures = {kind: count_leaving(belief_in(kind, 5.0, 0.01), truth, 5.0, 100, runs) for kind in KINDS}
    assert failures["paper"] > 2 * allowed(runs, 0.01)
    assert failures["logdet"] <= allowed(runs, 0.01)
    assert failures["mixture"] <= allowed(runs, 0.01)


class Design:
    """The log-determinant that a random design ends with, by the recursion that policies use."""

    def __init__(self, seed: int, dimension: int, rounds: int, ridge: float, action_bound: float) -> None:
        random = np.random.default_rng(seed)
        memory = Ridge(np.eye(dimension) / np.sqrt(ridge), np.zeros((0, dimension)), np.zeros(tally_size(0)))
        few = unit_rows(random, int(random.integers(1, 2 * dimension + 1)), dimension)
        for _ in range(rounds):
            action = few[random.integers(len(few))] * action_bound * random.choice([1.0, random.uniform()])
            absorb(memory, action, np.empty(0), np.empty(3 * dimension))
        self.log_det = memory.tally[0]
        self.reach = rounds * action_bound**2


sizes = st.floats(1e-3, 1e3)


@settings(deadline=None, max_examples=300)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(0, 80), sizes, sizes, sizes, sizes, st.floats(1e-9, 0.999)
)
def test_mixture_is_at_most_logdet_and_that_at_most_the_papers(
    seed: int, dimension: int, rounds: int, ridge: float, bound: float, noise: float, norm: float, delta: float
) -> None:
    design, confidence = Design(seed, dimension, rounds, ridge, bound), math.log(1.0 / delta)
    least = mixture(noise, norm, ridge, confidence, design.log_det)
    middle = log_determinant(noise, norm, ridge, confidence, design.log_det)
    assert least <= middle * (1.0 + 1e-12)
    if dimension >= 2:
        most = closed_form(noise, norm, ridge, confidence, dimension, design.reach)
        assert middle <= most * (1.0 + 1e-12)


def test_in_one_dimension_the_papers_radius_is_smaller_than_its_source() -> None:
    design, confidence = Design(0, 1, 50, 1.0, 1.0), math.log(1.0 / 0.01)
    assert closed_form(1.0, 1.0, 1.0, confidence, 1, design.reach) < log_determinant(
        1.0, 1.0, 1.0, confidence, design.log_det
    )


@pytest.mark.parametrize(
    "safe_action",
    [
        SafeAction(features=[1.0, 0.0], reward=0.1, cost=0.1),
        SafeAction(features=[1.0, 0.0], cost=0.1),
        SafeAction(features=[0.0]),
        SafeAction(features=[0.5]),
    ],
)
def test_a_policy_refuses_the_papers_radius_in_one_dimension_and_says_why(safe_action: SafeAction) -> None:
    LCLUCB(safe_action=safe_action, threshold=0.5, noise=0.1, radius="logdet")
    with pytest.raises(InvalidProblem, match=r"1 unknown direction.*only in two dimensions or more"):
        LCLUCB(safe_action=safe_action, threshold=0.5, noise=0.1, radius="paper")


@pytest.mark.parametrize(
    "safe_action",
    [
        SafeAction(features=[1.0, 0.0, 0.0], reward=0.1, cost=0.1),
        SafeAction(features=[1.0, 0.0]),
        SafeAction(features=[0.0, 0.0]),
    ],
)
def test_a_policy_takes_the_papers_radius_in_two_dimensions(safe_action: SafeAction) -> None:
    assert LCLUCB(safe_action=safe_action, threshold=0.5, noise=0.1, radius="paper").radius == "paper"
