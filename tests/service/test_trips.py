"""The test that trips a desk by itself: it seldom does so by chance, and soon where there is cause."""

import numpy as np
import pytest
from tests.chance import allowed

from stagewise.service.trips import Trip


def share(rate: float, runs: int, length: int) -> int:
    rng = np.random.default_rng(7)
    return sum(Trip(0.02, 0.05).take((rng.random(length) < rate).astype(float)) for _ in range(runs))


def test_costs_at_their_limit_trip_it_no_more_often_than_told() -> None:
    assert share(0.02, 1000, 3000) <= allowed(1000, 0.05)


def test_costs_at_twice_their_limit_trip_it() -> None:
    assert share(0.04, 50, 3000) >= 48


def test_it_does_not_depend_on_how_costs_are_cut() -> None:
    costs = (np.random.default_rng(1).random(500) < 0.03).astype(float)
    whole, parts = Trip(0.02, 0.01), Trip(0.02, 0.01)
    whole.take(costs)
    for part in np.array_split(costs, 37):
        parts.take(part)
    assert whole.plain() == parts.plain()


def test_it_is_lost_for_good() -> None:
    trip = Trip(0.02, 0.01)
    assert trip.take(np.ones(10))
    assert trip.take(np.zeros(5000))
    other = Trip(0.02, 0.01)
    other.restore(trip.plain())
    assert other.tripped
    assert other.plain() == pytest.approx(trip.plain(), rel=0)
