"""The paper's balls: kept incrementally, as large as the paper says, and larger than the likelihood's sets."""

import math

import numpy as np
import pytest
from tests.models.test_functions import DELTA, SEED, history, model_of

from stagewise.models.function_class import FunctionOutcome
from stagewise_reproduction.exact.balls import BallsModel, find_in_ball


def test_distances_are_the_direct_sums() -> None:
    random, sizes = np.random.default_rng(SEED), (5, 3, 7)
    model, (values, outcomes) = model_of(sizes, kind=BallsModel), history(random, sizes, 400)
    memory = model.start()
    for row, outcome in zip(values, outcomes, strict=True):
        model.learn(memory, [FunctionOutcome(row, outcome)])
    parts = np.split(values, np.cumsum(sizes)[:-1], axis=1)
    direct = [np.sum((part[:, :, None] - part[:, None]) ** 2, axis=0).ravel() for part in parts]
    assert model.get_statistics(memory).more == pytest.approx(np.concatenate(direct), rel=1e-12)


def test_the_papers_set_is_larger() -> None:
    random, sizes = np.random.default_rng(SEED), (40,)
    values, outcomes = history(random, sizes, 3000)
    tight, wide = model_of(sizes), model_of(sizes, kind=BallsModel)
    memories = [tight.start(), wide.start()]
    for row, outcome in zip(values, outcomes, strict=True):
        for model, memory in zip([tight, wide], memories, strict=True):
            model.learn(memory, [FunctionOutcome(row, outcome)])
    left = [model.get_statistics(memory).plausible for model, memory in zip([tight, wide], memories, strict=True)]
    assert np.all(left[0] <= left[1])
    assert left[0].sum() < 0.2 * left[1].sum()


def test_the_papers_radius_bounds_the_square_of_the_norm() -> None:
    losses, rounds = np.array([1.0, 2.0]), 50.0
    radius = 512.0 * math.log(24.0 * 2 * math.log(2.0 * rounds) / DELTA)
    for square, inside in [(radius * (1 - 1e-9), True), (radius * (1 + 1e-9), False)]:
        distances = np.array([[0.0, square], [square, 0.0]])
        assert find_in_ball(losses, distances, rounds, math.log(2.0 / DELTA)).tolist() == [True, inside]
