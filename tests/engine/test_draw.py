"""Draws: where each bit comes from, that no two draws share theirs, and that they look as random as they should."""

import itertools
import math
import statistics
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats  # type: ignore[import-untyped, unused-ignore]

from stagewise.engine import random as random_streams
from stagewise.engine.compile import Floats
from stagewise.engine.random import philox, quantile, quantile_pair

SEED = 20260727
MANY = 1_000_000
SOME = 50_000
ONES = 0xFFFFFFFF
STREAMS = [random_streams.OUTCOME, random_streams.ACTIONS, random_streams.POLICY, random_streams.INSTANCE]

words = st.integers(0, ONES)
seeds = st.integers(0, 2**64 - 1)


def standard_errors(value: float, variance: float, size: int) -> float:
    return abs(value) / math.sqrt(variance / size)


@given(seeds, words, words, st.sampled_from(STREAMS), words)
def test_the_seed_is_the_key_and_the_rest_is_the_counter(
    seed: int, run: int, round_: int, stream: int, pair: int
) -> None:
    first, second, third, fourth = philox(pair, stream, round_, run, seed % 2**32, seed // 2**32)
    expected = (random_streams.open_unit(first, second), random_streams.open_unit(third, fourth))
    assert random_streams.uniform_pair(random_streams.to_signed_seed(seed), run, round_, stream, pair) == expected


@given(words, words)
def test_uniforms_use_52_bits_and_stay_inside_the_open_interval(high: int, low: int) -> None:
    value = random_streams.open_unit(high, low)
    assert 0.0 < value < 1.0
    assert value == (((high << 32 | low) >> 12) + 0.5) / 2**52


def test_the_extreme_uniforms() -> None:
    assert random_streams.open_unit(0, 0) == 2.0**-53
    assert random_streams.open_unit(ONES, ONES) == 1.0 - 2.0**-53


@pytest.mark.parametrize("size", [0, 1, 2, 7, 64])
def test_filling_is_drawing_one_by_one(size: int) -> None:
    uniforms, normals = np.empty(size), np.empty(size)
    random_streams.fill_uniform(uniforms, SEED, 3, 5, random_streams.ACTIONS)
    random_streams.fill_normal(normals, SEED, 3, 5, random_streams.ACTIONS)
    assert uniforms.tolist() == [
        random_streams.uniform(SEED, 3, 5, random_streams.ACTIONS, position) for position in range(size)
    ]
    assert normals.tolist() == [
        random_streams.normal(SEED, 3, 5, random_streams.ACTIONS, position) for position in range(size)
    ]


@pytest.mark.parametrize("pair", [0, 1, 2**31])
def test_a_pair_is_two_positions(pair: int) -> None:
    even, odd = 2 * pair, 2 * pair + 1
    uniforms = (
        random_streams.uniform(SEED, 3, 5, random_streams.ACTIONS, even),
        random_streams.uniform(SEED, 3, 5, random_streams.ACTIONS, odd),
    )
    normals = (
        random_streams.normal(SEED, 3, 5, random_streams.ACTIONS, even),
        random_streams.normal(SEED, 3, 5, random_streams.ACTIONS, odd),
    )
    assert random_streams.uniform_pair(SEED, 3, 5, random_streams.ACTIONS, pair) == uniforms
    assert random_streams.normal_pair(SEED, 3, 5, random_streams.ACTIONS, pair) == normals


def test_no_two_draws_share_their_bits() -> None:
    near = [0, 1, 2, 2**31]
    keys = [random_streams.to_signed_seed(seed) for seed in (0, 1, 2**32, 2**63, 2**64 - 1)]
    indices = list(itertools.product(keys, near, near, STREAMS, near))
    assert len({random_streams.uniform(*offset) for offset in indices}) == len(indices)


def test_the_streams_are_told_apart() -> None:
    assert len(set(STREAMS)) == len(STREAMS)


def test_large_seeds_keep_their_64_bits() -> None:
    assert [random_streams.to_signed_seed(seed) for seed in (0, 2**63 - 1, 2**63, 2**64 - 1)] == [
        0,
        2**63 - 1,
        -(2**63),
        -1,
    ]


@pytest.mark.compiled
@pytest.mark.parametrize("stream", [random_streams.OUTCOME, random_streams.POLICY])
def test_uniforms_are_uniform(stream: int) -> None:
    values = np.empty(MANY // 5)
    random_streams.fill_uniform(values, SEED, 0, 0, stream)
    leading = np.bincount((values * 1024).astype(np.int64), minlength=1024)
    trailing = np.bincount((values * 2.0**52).astype(np.int64) % 1024, minlength=1024)
    assert stats.kstest(values, "uniform").pvalue > 1e-3
    assert stats.chisquare(leading).pvalue > 1e-3
    assert stats.chisquare(trailing).pvalue > 1e-3


@pytest.mark.compiled
def test_normals_have_the_moments_of_the_normal() -> None:
    values = np.empty(MANY)
    random_streams.fill_normal(values, SEED, 0, 0, random_streams.OUTCOME)
    square = values * values
    assert standard_errors(float(values.mean()), 1.0, MANY) < 5.0
    assert standard_errors(float(values.var()) - 1.0, 2.0, MANY) < 5.0
    assert standard_errors(float((square * values).mean()), 15.0, MANY) < 5.0
    assert standard_errors(float((square * square).mean()) - 3.0, 96.0, MANY) < 5.0
    assert standard_errors(float(stats.skew(values)), 6.0, MANY) < 5.0
    assert standard_errors(float(stats.kurtosis(values)), 24.0, MANY) < 5.0


def along(offset: Callable[[int], tuple[int, int, int, int, int]]) -> Floats:
    return np.array([random_streams.normal(*offset(index)) for index in range(SOME)])


@pytest.mark.compiled
@pytest.mark.parametrize(
    "other",
    [
        pytest.param(lambda t: (SEED, 0, t, random_streams.ACTIONS, 0), id="streams"),
        pytest.param(lambda t: (SEED, 1, t, random_streams.OUTCOME, 0), id="runs"),
        pytest.param(lambda t: (SEED, 0, t + 1, random_streams.OUTCOME, 0), id="successive rounds"),
        pytest.param(lambda t: (SEED + 1, 0, t, random_streams.OUTCOME, 0), id="seeds"),
        pytest.param(lambda t: (SEED, 0, t, random_streams.OUTCOME, 1), id="halves of a pair"),
        pytest.param(lambda t: (SEED, 0, t, random_streams.OUTCOME, 2), id="neighbouring pairs"),
        pytest.param(lambda t: (SEED, t, 0, random_streams.OUTCOME, 0), id="runs against rounds"),
    ],
)
def test_what_differs_is_uncorrelated(other: Callable[[int], tuple[int, int, int, int, int]]) -> None:
    # From round 1, because (run 0, round 0) is the same draw along rounds and along runs.
    ones, others = along(lambda t: (SEED, 0, t, random_streams.OUTCOME, 0))[1:], along(other)[1:]
    assert standard_errors(float((ones * others).mean()), 1.0, SOME) < 5.0
    assert standard_errors(float(((ones**2 - 1.0) * (others**2 - 1.0)).mean()), 4.0, SOME) < 5.0


PROBABILITIES = [
    *np.geomspace(2.0**-53, 0.5, 2_000).tolist(),
    *(1.0 - np.geomspace(2.0**-53, 0.5, 2_000)).tolist(),
    *(side + step * 2.0**-50 for side in (0.075, 0.925, math.exp(-25.0)) for step in (-1, 0, 1)),
]


def test_quantiles_are_those_of_the_standard_library() -> None:
    expected = [statistics.NormalDist().inv_cdf(probability) for probability in PROBABILITIES]
    np.testing.assert_allclose([quantile(probability) for probability in PROBABILITIES], expected, rtol=1e-15)


def test_quantiles_invert_the_distribution_function() -> None:
    expected = special.ndtri(PROBABILITIES)
    np.testing.assert_allclose([quantile(probability) for probability in PROBABILITIES], expected, rtol=4e-15)


@given(words, words)
def test_quantiles_are_odd_about_one_half(high: int, low: int) -> None:
    probability = random_streams.open_unit(high, low)
    assert quantile(1.0 - probability) == -quantile(probability)


def test_the_longest_tails_are_finite_and_symmetric() -> None:
    assert quantile(2.0**-53) == -quantile(1.0 - 2.0**-53) == pytest.approx(-8.2095361516013856, rel=1e-15)


def test_two_quantiles_at_once_are_two_quantiles() -> None:
    reverse = PROBABILITIES[::-1]
    for first, second in zip(PROBABILITIES, reverse, strict=True):
        assert quantile_pair(first, second) == (quantile(first), quantile(second))
