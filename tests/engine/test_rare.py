"""Ends for rare outcomes on a ray: they hold at all times at once, and less confidence would not be enough."""

import math

import numpy as np
import pytest
from tests.chance import allowed

from stagewise.models.intervals import SHARED, compute_sum_interval

RUNS, ROUNDS, DELTA = 2000, 1000, 0.1


def missed(confidence: float, rate: float, start: float, upper: bool) -> int:
    """Return in how many runs of coins, thrown at steps on a ray, the sum of their means leaves its end."""
    random = np.random.default_rng(20261117)
    steps = random.choice([0.05, 0.3, 1.0], size=ROUNDS)
    means = (1.0 - steps) * start + steps * rate
    counts, sums = np.cumsum(random.random((RUNS, ROUNDS)) < means, axis=1), np.cumsum(means)
    ends = [compute_sum_interval(float(count), confidence, confidence) for count in range(int(counts.max()) + 1)]
    lows, highs = np.array([end.low for end in ends])[counts], np.array([end.high for end in ends])[counts]
    return int(np.any(sums > highs if upper else sums < lows, axis=1).sum())


CASES = [(0.01, 0.0), (0.02, 0.001), (0.5, 0.1)]


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize(("rate", "start"), CASES)
def test_the_means_leave_their_ends_in_no_more_runs_than_promised(rate: float, start: float, upper: bool) -> None:
    assert missed(-math.log(DELTA), rate, start, upper) <= allowed(RUNS, DELTA)


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize(("rate", "start"), CASES)
def test_ends_that_spend_ten_times_as_much_are_left_too_often(rate: float, start: float, upper: bool) -> None:
    assert missed(-SHARED, rate, start, upper) > allowed(RUNS, DELTA)


def test_without_an_event_the_upper_end_is_the_confidence_and_with_many_it_is_near_their_number() -> None:
    assert compute_sum_interval(0.0, 3.0, 3.0).low == 0.0
    assert 3.0 + SHARED <= compute_sum_interval(0.0, 3.0, 3.0).high <= 1.02 * (3.0 + SHARED)
    low, high = compute_sum_interval(1e5, 3.0, 3.0)
    assert 0.98e5 < low < 1e5 < high < 1.02e5
