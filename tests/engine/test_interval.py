"""Intervals for means in [0, 1]: against root finding on the textbook's function, and counted over whole runs."""

import math

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import betaln
from tests.chance import allowed

from stagewise.models.intervals import compute_kl_interval

DELTA = 0.05
PULLS = st.integers(1, 10**7)
CONFIDENCE = st.floats(0.1, 40.0)


def beyond(p: float, pulls: float, mean: float, confidence: float) -> float:
    """Return how far the mixture's log likelihood ratio against the coin p is above log 1/δ."""
    ones, zeros = pulls * mean, pulls * (1.0 - mean)
    likelihood = (ones * math.log(p) if ones else 0.0) + (zeros * math.log1p(-p) if zeros else 0.0)
    return float(betaln(ones + 0.5, zeros + 0.5) - betaln(0.5, 0.5)) - likelihood - confidence


@given(PULLS, st.floats(1e-6, 1.0 - 1e-6), CONFIDENCE)
def test_the_ends_are_where_the_mixture_reaches_one_over_delta(pulls: int, mean: float, confidence: float) -> None:
    low, high = compute_kl_interval(float(pulls), mean, confidence)
    nearly = math.nextafter(1.0, 0.0)
    for end, middle in [(high, mean), (1.0 - low, 1.0 - mean)]:
        about = (pulls, middle, confidence)
        if beyond(nearly, *about) > 0.0:
            assert end == pytest.approx(brentq(beyond, middle, nearly, about, xtol=1e-15), abs=1e-9)
        else:
            assert end > 1.0 - 1e-9


@given(PULLS, st.floats(0.0, 1.0), CONFIDENCE)
def test_an_interval_lies_in_the_unit_interval_around_the_mean(pulls: int, mean: float, confidence: float) -> None:
    low, high = compute_kl_interval(float(pulls), mean, confidence)
    assert 0.0 <= low <= mean + 1e-12
    assert mean <= high <= 1.0


@pytest.mark.parametrize("pulls", [1, 10, 1000])
def test_nothing_seen_but_zeros_or_ones(pulls: int) -> None:
    """With S = 0 the upper end solves −n log(1 − p) = log 1/δ − log Γ(½) Γ(n + ½)/πΓ(n + 1)."""
    budget = math.log(1.0 / DELTA) - float(betaln(0.5, pulls + 0.5) - betaln(0.5, 0.5))
    low, high = compute_kl_interval(float(pulls), 0.0, math.log(1.0 / DELTA))
    assert (low, high) == (0.0, pytest.approx(-math.expm1(-budget / pulls), rel=1e-12))
    other = compute_kl_interval(float(pulls), 1.0, math.log(1.0 / DELTA))
    assert (1.0 - other.low, other.high) == (pytest.approx(high, rel=1e-12), 1.0)


@numba.njit
def ever_missed(observed, mean, confidence):  # type: ignore[no-untyped-def]
    """Say whether the interval misses the mean after any number of observations."""
    average = 0.0
    for n in range(observed.size):
        average += (observed[n] - average) / (n + 1.0)
        interval = compute_kl_interval(n + 1.0, average, confidence)
        if not interval.low <= mean <= interval.high:
            return True
    return False


def misses(kind: str, mean: float, confidence: float, runs: int = 1000) -> int:
    """Return how many of the runs of 2,000 observations ever miss."""
    random, count = np.random.default_rng(3), 0
    for _ in range(runs):
        uniform = random.uniform(size=2000)
        observed = (uniform < mean).astype(float) if kind == "coin" else uniform * 2.0 * mean
        count += ever_missed(observed, mean, confidence)
    return count


@pytest.mark.compiled
@pytest.mark.parametrize(("kind", "mean"), [("coin", 0.5), ("coin", 0.01), ("uniform", 0.3)])
def test_few_runs_ever_miss(kind: str, mean: float) -> None:
    assert misses(kind, mean, math.log(1.0 / DELTA)) <= allowed(1000, DELTA)


@pytest.mark.compiled
def test_with_too_little_confidence_too_many_runs_miss() -> None:
    assert misses("coin", 0.5, math.log(1.0 / 0.7)) > allowed(1000, DELTA)
