"""Bounds of running averages: the textbook's roots, from outside, and true at all times against means that react."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from stagewise.engine.compile import as_python
from stagewise.models.intervals import (
    LOG_WEIGHTS,
    LOWER_ETAS,
    UPPER_ETAS,
    compute_average_lower,
    compute_average_upper,
    compute_kl_interval,
    lower_to_average_upper,
    raise_to_average_lower,
)

UPPER, LOWER = as_python(compute_average_upper), as_python(compute_average_lower)
LOWERED, RAISED = as_python(lower_to_average_upper), as_python(raise_to_average_lower)
CASES = [
    (n, mean, c) for n in (1, 30, 1000, 10**6, 10**9) for mean in (0.0, 0.003, 0.02, 0.5, 1.0) for c in (0.5, 4.0, 16.0)
]


def log_upper(p: float, n: float, total: float) -> float:
    """Return log Σ w exp(−η S − n log(1 − κ p))."""
    etas = np.array(UPPER_ETAS)
    return float(np.logaddexp.reduce(np.array(LOG_WEIGHTS) - etas * total - n * np.log1p(np.expm1(-etas) * p)))


def log_lower(p: float, n: float, total: float) -> float:
    """Return log Σ w exp(η S − n log(1 + κ' p))."""
    etas = np.array(LOWER_ETAS)
    return float(np.logaddexp.reduce(np.array(LOG_WEIGHTS) + etas * total - n * np.log1p(np.expm1(etas) * p)))


@pytest.mark.parametrize(("n", "mean", "confidence"), CASES)
def test_bounds_are_the_roots_never_inside_them(n: float, mean: float, confidence: float) -> None:
    total = n * mean
    high, low = UPPER(float(n), total, confidence), LOWER(float(n), total, confidence)
    assert 0.0 <= low <= mean <= high <= 1.0
    if log_upper(1.0, n, total) > confidence:
        root = brentq(lambda p: log_upper(p, n, total) - confidence, mean, 1.0, xtol=1e-16)
        assert root * (1.0 - 1e-9) <= high <= root * 1.001
    else:
        assert high == 1.0
    if total > 0.0 and log_lower(0.0, n, total) > confidence:
        root = brentq(lambda p: log_lower(p, n, total) - confidence, 0.0, mean, xtol=1e-16)
        assert root * 0.999 <= low <= root * (1.0 + 1e-9)
    else:
        assert low == 0.0


@pytest.mark.parametrize(("n", "mean", "confidence"), CASES)
def test_known_bounds_are_tightened_to_the_same_roots(n: float, mean: float, confidence: float) -> None:
    total = n * mean
    high, low = UPPER(float(n), total, confidence), LOWER(float(n), total, confidence)
    for known in (
        0.0,
        0.5 * low,
        0.999 * low,
        low,
        mean,
        0.5 * (mean + high),
        high,
        min(1.0, 1.001 * high),
        0.5 * (1.0 + high),
        1.0,
    ):
        if known >= mean:
            assert LOWERED(float(n), total, confidence, known) == pytest.approx(min(high, known), rel=1e-6)
        if known <= mean:
            assert RAISED(float(n), total, confidence, known) == pytest.approx(max(low, known), rel=1e-6, abs=1e-12)


def test_a_rate_at_half_its_limit_is_certified_a_fifth_sooner_than_by_kl() -> None:
    """One in a hundred, limit .02, each bound with the same share."""
    pulls = np.arange(100.0, 6000.0, 100.0)
    sharper = next(n for n in pulls if UPPER(n, 0.01 * n, 5.0) <= 0.02)
    wide = next(n for n in pulls if as_python(compute_kl_interval)(n, 0.01, 5.0).high <= 0.02)
    assert 1.2 * sharper < wide


def test_weights_are_shares() -> None:
    assert math.fsum(map(math.exp, LOG_WEIGHTS)) == pytest.approx(1.0, abs=1e-12)
    assert len(LOG_WEIGHTS) == len(UPPER_ETAS) == len(LOWER_ETAS)
