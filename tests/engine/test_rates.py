"""Ends for rates about as large as their limits: the textbook's, never much wider than "kl", and true at all times."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import betaln
from tests.chance import allowed
from tests.sizes import sized

from stagewise.engine.compile import as_python
from stagewise.models.intervals import REST, SHAPE, compute_kl_interval, compute_rate_interval

ENDS, KL = as_python(compute_rate_interval), as_python(compute_kl_interval)
CASES = [(n, mean, e) for n in (1, 30, 1000, 10**6) for mean in (0.0, 0.003, 0.5, 1.0) for e in (1e-6, 0.02, 0.5)]


def excess(p: float, n: float, mean: float, expected: float) -> float:
    """Return the logarithm of how much more likely the mixture of coins is than the coin p."""
    ones, zeros = n * mean, n * (1.0 - mean)
    near = betaln(ones + SHAPE, zeros + SHAPE / expected - SHAPE) - betaln(SHAPE, SHAPE / expected - SHAPE)
    wide = betaln(ones + 0.5, zeros + 0.5) - betaln(0.5, 0.5)
    mixture = np.logaddexp(math.log(1.0 - REST) + near, math.log(REST) + wide)
    return float(mixture - (ones * math.log(p) if ones else 0.0) - (zeros * math.log1p(-p) if zeros else 0.0))


@pytest.mark.parametrize(("n", "mean", "expected"), CASES)
def test_each_end_is_where_the_mixture_has_its_own_share(n: float, mean: float, expected: float) -> None:
    ends = ENDS(float(n), mean, expected, 4.0, 7.0)
    assert 0.0 <= ends.low <= mean <= ends.high <= 1.0
    if mean < 1.0:
        root = brentq(lambda p: excess(p, n, mean, expected) - 7.0, max(mean, 1e-15), 1.0 - 1e-12, xtol=1e-16)
        assert ends.high == pytest.approx(root, rel=1e-6, abs=1e-9)
        assert ends.high >= root * (1.0 - 1e-9)
    if mean > 0.0 and excess(1e-15, n, mean, expected) <= 4.0:
        assert ends.low <= 1e-12
    elif mean > 0.0:
        root = brentq(lambda p: excess(p, n, mean, expected) - 4.0, 1e-15, min(mean, 1.0 - 1e-15), xtol=1e-16)
        assert ends.low == pytest.approx(root, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("n", "mean", "expected"), CASES)
def test_they_are_never_wider_than_kl_at_a_tenth_of_its_share(n: float, mean: float, expected: float) -> None:
    ends, wide = ENDS(float(n), mean, expected, 5.0, 5.0), KL(float(n), mean, 5.0 - math.log(REST))
    assert wide.low - 1e-9 <= ends.low
    assert ends.high <= wide.high + 1e-9


def test_a_rate_at_half_its_limit_is_certified_a_third_sooner_than_by_kl() -> None:
    """One in a hundred, limit .02, each end with the same share."""
    pulls = np.arange(100.0, 6000.0, 100.0)
    sharper = next(n for n in pulls if ENDS(n, 0.01, 0.02, 5.0, 5.0).high <= 0.02)
    wide = next(n for n in pulls if KL(n, 0.01, 5.0).high <= 0.02)
    assert 1.3 * sharper < wide


def misses(rate: float, delta: float, runs: int, rounds: int, coins: bool) -> tuple[int, int]:
    """Return in how many runs an upper, and a lower end was ever beyond the mean."""
    random, settings = np.random.default_rng([20261116, runs]), -math.log(delta)
    above, below = 0, 0
    for _ in range(runs):
        observed = random.uniform(size=rounds) < rate if coins else 2.0 * rate * random.uniform(size=rounds)
        sums = np.cumsum(observed)
        late = {"high": False, "low": False}
        for n in sorted({int(1.15**k) for k in range(1, int(math.log(rounds) / math.log(1.15)) + 1)}):
            ends = ENDS(float(n), sums[n - 1] / n, 0.02, settings, settings)
            late["high"] |= ends.high < rate
            late["low"] |= ends.low > rate
        above += late["high"]
        below += late["low"]
    return above, below


@pytest.mark.long
@pytest.mark.parametrize("coins", [True, False], ids=["coins", "numbers"])
@pytest.mark.parametrize("rate", [0.01, 0.3])
@sized((300, 1000), (2000, 3000))
def test_each_end_holds_at_all_times_with_its_share(rate: float, coins: bool, size: tuple[int, int]) -> None:
    assert max(misses(rate, 0.2, *size, coins)) <= allowed(size[0], 0.2)


@sized((300, 1000), (2000, 3000))
def test_ends_of_a_share_far_too_large_do_not_hold(size: tuple[int, int]) -> None:
    """The statistic can fail: with log 1/δ' = 0 the ends of coins miss in more runs than a fifth."""
    assert max(misses(0.3, 1.0, *size, True)) > allowed(size[0], 0.2)
