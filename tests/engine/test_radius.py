"""Each radius covers the truth in all rounds at once, and the three are ordered; the paper's fails in one dimension."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.chance import allowed
from tests.engine.alone import start_model, teach
from tests.engine.textbook import build_model, unit_rows

from stagewise import LCLUCB, ErrorCode, InvalidProblem, SafeAction
from stagewise.engine.compile import Floats, kernel
from stagewise.engine.layout import ELSEWHERE
from stagewise.engine.random import ACTIONS, OUTCOME, normal
from stagewise.models.regression import (
    JOINT,
    LOG_DET,
    LOGDET,
    OBSERVATIONS,
    PAPER,
    RADII,
    Regression,
    learn_ridge,
    radius,
)

RUNS = 2000
ROUNDS = 300


@kernel
def tempting_action(fit: Floats, seed: int, run: int, round_: int, trial: Floats, action: Floats) -> None:
    """Write the most promising of three random directions: the actions depend on what was seen."""
    best = -math.inf
    for attempt in range(3):
        size, guarantee = 0.0, 0.0
        for i in range(fit.size):
            trial[i] = normal(seed, run, round_, ACTIONS, attempt * fit.size + i)
            size += trial[i] * trial[i]
            guarantee += trial[i] * fit[i]
        if guarantee / math.sqrt(size) > best:
            best = guarantee / math.sqrt(size)
            for i in range(fit.size):
                action[i] = trial[i] / math.sqrt(size)


@kernel
def leaves(
    part: Regression, config: Floats, memory: Floats, kind: int, declared: float, confidence: float, truth: Floats,
    noise: float, rounds: int, run: int, gram: Floats, room: Floats, value: Floats, work: Floats,
) -> bool:  # fmt: skip
    """Say whether ‖θ* − θ̂‖_V is ever above β in a run, with S = λ = L = 1."""
    n, seed = truth.size, 20250727
    tally, fit, trial, action = part.tally, part.learned[n], room[:n], room[n:]
    for round_ in range(rounds):
        tempting_action(fit, seed, run, round_, trial, action)
        value[0] = noise * normal(seed, run, round_, OUTCOME, 0)
        for i in range(n):
            value[0] += action[i] * truth[i]
        learn_ridge(part, action, ELSEWHERE, 1.0, False, value, config, memory, work)
        distance = 0.0
        for i in range(n):
            for j in range(n):
                gram[i, j] += action[i] * action[j]
                distance += gram[i, j] * (fit[i] - truth[i]) * (fit[j] - truth[j])
        beta = radius(kind, declared, 1.0, 1.0, confidence, tally[LOG_DET], n, tally[OBSERVATIONS])
        if distance > beta * beta:
            return True
    return False


def count_leaving(kind: str, declared: float, delta: float, truth: Floats, noise: float, rounds: int, runs: int) -> int:
    """Return in how many runs the truth ever leaves the ellipsoid, where the noise is declared to be `declared`."""
    n, total = truth.size, 0
    model = start_model(build_model(np.zeros(n), None, None, 1))
    start, options = model.memory.copy(), (RADII.index(kind), declared, math.log(1.0 / delta), truth, noise, rounds)
    room, value, work = np.empty(2 * n), np.empty(1), np.empty(3 * n + 1)
    for run in range(runs):
        model.memory[:] = start
        total += leaves(model.block, model.settings, model.memory, *options, run, np.eye(n), room, value, work)
    return total


LONGEST = np.array([2.0, -1.0, 2.0]) / 3.0  # of norm S = 1


@pytest.mark.compiled
@pytest.mark.parametrize("kind", RADII)
def test_the_truth_stays_inside_in_all_rounds_at_once(kind: str) -> None:
    assert count_leaving(kind, 1.0, 0.1, LONGEST, 1.0, ROUNDS, RUNS) <= allowed(RUNS, 0.1)


@pytest.mark.compiled
def test_the_default_radius_is_nearly_tight() -> None:
    assert count_leaving("joint", 1.0, 0.1, LONGEST, 1.0, ROUNDS, RUNS) > 0.01 * RUNS


@pytest.mark.compiled
def test_a_noise_declared_too_small_is_found_out() -> None:
    assert count_leaving("joint", 0.6, 0.1, LONGEST, 1.0, ROUNDS, RUNS) > allowed(RUNS, 0.1)


@pytest.mark.compiled
def test_in_one_dimension_the_papers_radius_fails_and_the_others_hold() -> None:
    runs, truth = 6000, np.ones(1)
    failures = {kind: count_leaving(kind, 5.0, 0.01, truth, 5.0, 100, runs) for kind in RADII}
    assert failures["paper"] > 2 * allowed(runs, 0.01)
    assert failures["logdet"] <= allowed(runs, 0.01)
    assert failures["joint"] <= allowed(runs, 0.01)


class Design:
    """The log-determinant that a random design ends with, by the recursion that policies use."""

    def __init__(self, seed: int, dimension: int, rounds: int, ridge: float, action_bound: float) -> None:
        random = np.random.default_rng(seed)
        model = start_model(build_model(np.zeros(dimension), None, None, 1, ridge))
        few = unit_rows(random, int(random.integers(1, 2 * dimension + 1)), dimension)
        actions = np.empty((rounds, dimension))
        for t in range(rounds):
            actions[t] = few[random.integers(len(few))] * action_bound * random.choice([1.0, random.uniform()])
        teach(model, actions, np.zeros((rounds, 1)))
        self.log_det = float(model.block.tally[LOG_DET])
        self.energy = rounds * action_bound**2
        self.dimension = dimension

    def radius(self, kind: int, noise: float, bound: float, ridge: float, confidence: float) -> float:
        return radius(kind, noise, bound, ridge, confidence, self.log_det, self.dimension, self.energy)


sizes = st.floats(1e-3, 1e3)


@pytest.mark.long
@settings(max_examples=300)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(0, 80), sizes, sizes, sizes, sizes, st.floats(1e-9, 0.999)
)
def test_mixture_is_at_most_logdet_and_that_at_most_the_papers(
    seed: int, dimension: int, rounds: int, ridge: float, bound: float, noise: float, norm: float, delta: float
) -> None:
    design, options = Design(seed, dimension, rounds, ridge, bound), (noise, norm, ridge, math.log(1.0 / delta))
    assert design.radius(JOINT, *options) <= design.radius(LOGDET, *options) * (1.0 + 1e-12)
    if dimension >= 2:
        assert design.radius(LOGDET, *options) <= design.radius(PAPER, *options) * (1.0 + 1e-12)


def test_in_one_dimension_the_papers_radius_is_smaller_than_its_source() -> None:
    design, options = Design(0, 1, 50, 1.0, 1.0), (1.0, 1.0, 1.0, math.log(1.0 / 0.01))
    assert design.radius(PAPER, *options) < design.radius(LOGDET, *options)


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
    with pytest.raises(InvalidProblem) as caught:
        LCLUCB(safe_action=safe_action, threshold=0.5, noise=0.1, radius="paper")
    assert caught.value.code is ErrorCode.UNSUPPORTED
    assert caught.value.details["n"] == 1


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
