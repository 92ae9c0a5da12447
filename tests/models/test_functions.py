"""Confidence sets over finite classes: kept incrementally, they hold the truth as often as they promise."""

import math

import numpy as np
import pytest
from tests.chance import allowed
from tests.sizes import sized

from stagewise.engine.compile import Floats
from stagewise.models.function_class import FunctionClassModel, FunctionOutcome, add_compensated, find_plausible

SEED, DELTA = 20260901, 0.05


def model_of(
    sizes: tuple[int, ...],
    noise: float = 0.5,
    delta: float = DELTA,
    kind: type[FunctionClassModel] = FunctionClassModel,
) -> FunctionClassModel:
    return kind(sizes=sizes, noise=np.full(len(sizes), noise), confidence=math.log(len(sizes) / delta))


def history(random: np.random.Generator, sizes: tuple[int, ...], rounds: int) -> tuple[Floats, Floats]:
    """Return values of all functions (T, F) at random actions, and Bernoulli outcomes (T, 1 + m) of each's first."""
    values = random.random((4, sum(sizes)))[random.integers(4, size=rounds)]
    truths = np.cumsum([0, *sizes[:-1]])
    return values, (random.random((rounds, len(sizes))) < values[:, truths]).astype(float)


def test_incremental_memory_is_the_direct_sum() -> None:
    random, sizes = np.random.default_rng(SEED), (5, 3, 7)
    model, (values, outcomes) = model_of(sizes), history(random, sizes, 400)
    memory = model.start()
    for row, outcome in zip(values, outcomes, strict=True):
        model.learn(memory, [FunctionOutcome(row, outcome)])
    kept = model.get_statistics(memory)
    assert kept.rounds[0] == 400
    assert kept.losses == pytest.approx(np.sum((values - np.repeat(outcomes, sizes, axis=1)) ** 2, axis=0), rel=1e-14)


@pytest.mark.long
def test_sums_do_not_drift() -> None:
    """Many terms: a plain sum is off by many units in the last place, the corrected one by at most one."""
    terms = np.random.default_rng(SEED).random(400_000)
    sums, corrections, base = np.zeros(1), np.zeros(1), 0.0
    for term in terms:
        add_compensated(term, sums, corrections)
        base += term
    exact = math.fsum(terms)
    assert abs(sums[0] - exact) <= math.ulp(exact)
    assert abs(base - exact) > 4 * math.ulp(exact)


def test_the_set_is_the_one_in_the_theorem() -> None:
    losses, noise, confidence = np.array([3.0, 2.5, 9.0, 4.1]), 0.7, math.log(20.0)
    double = 2.0 * noise**2
    level = losses + double * math.log(np.mean(np.exp(-losses / double)))
    assert (
        find_plausible(losses, noise, confidence).tolist()
        == (level <= double * confidence).tolist()
        == [True] * 2
        + [
            False,
            True,
        ]
    )


def test_the_set_does_not_care_how_large_all_losses_are() -> None:
    losses = np.random.default_rng(SEED).random(50) * 3.0
    assert np.array_equal(find_plausible(losses, 0.5, 3.0), find_plausible(losses + 2.0**20, 0.5, 3.0))
    assert find_plausible(np.array([0.0, 1e9]), 1e-150, 3.0).tolist() == [True, False]


def test_the_mixture_is_tighter_than_the_maximum() -> None:
    """{L(f) − min L ≤ 2R² log F/δ} contains it, and is larger in most random cases."""
    random, larger = np.random.default_rng(SEED), 0
    for _ in range(200):
        losses = random.exponential(2.0, size=20)
        inside = find_plausible(losses, 0.5, math.log(20.0))
        ball = losses - losses.min() <= 2.0 * 0.25 * math.log(20.0 * 20.0)
        assert not np.any(inside & ~ball)
        larger += int(ball.sum() > inside.sum())
    assert larger >= 50


def test_what_was_once_excluded_stays_out_and_a_class_without_the_truth_ends_empty() -> None:
    model = model_of((2, 1), noise=0.1)
    memory, functions = model.start(), np.array([0.0, 1.0, 0.5])
    left = [2.0]
    for round_ in range(40):
        model.learn(memory, [FunctionOutcome(functions, np.array([float(round_ >= 6), 0.5]))])
        left.append(model.get_statistics(memory).plausible[:2].sum())
    assert sorted(left, reverse=True) == left
    assert left[-1] == 0.0
    assert model.bounds(memory, np.column_stack([functions, functions])) is None


def excluding_runs(settings: float, runs: int, rounds: int) -> int:
    """Return in how many runs the truth is ever excluded; actions go where the plausible functions differ most."""
    failures, sizes = 0, (8,)
    for run in range(runs):
        random = np.random.default_rng([SEED, run])
        table = random.random((8, 4))
        model = model_of(sizes, noise=settings)
        memory = model.start()
        noise = 0.5 * random.normal(size=rounds)
        for round_ in range(rounds):
            plausible = table[model.get_statistics(memory).plausible != 0.0]
            action = int(np.argmax(plausible.max(axis=0) - plausible.min(axis=0)))
            model.learn(memory, [FunctionOutcome(table[:, action], table[0, action] + noise[round_ : round_ + 1])])
            if model.get_statistics(memory).plausible[0] == 0.0:
                failures += 1
                break
    return failures


@pytest.mark.compiled
@sized(300, 2000)
def test_of_many_runs_no_more_exclude_the_truth_than_delta_allows(size: int) -> None:
    assert excluding_runs(0.5, size, 40) <= allowed(size, DELTA)


@pytest.mark.long
def test_sets_told_a_third_of_the_noise_exclude_the_truth_too_often() -> None:
    assert excluding_runs(0.5 / 3.0, 300, 40) > allowed(300, DELTA)
