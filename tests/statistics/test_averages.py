"""Bounds of running averages hold at all times, whoever chooses the means and whatever was seen before."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from tests.chance import allowed
from tests.sizes import sized

from stagewise.engine.compile import Floats
from stagewise.models.intervals import FACTORS, LOG_WEIGHTS, LOWER_ETAS, TERMS, UPPER_ETAS

pytestmark = pytest.mark.long
LEVEL, EVERY, THEN = 0.2, 200, 5  # checked at each of the first outcomes, then at every fifth
Adversary = Callable[[int, Floats, Floats, Floats], Floats]  # round, S, Σ p, uniform numbers: the next means

ADVERSARIES: dict[str, Adversary] = {
    "one mean": lambda i, seen, due, coins: np.full(seen.size, 0.02),
    "waves": lambda i, seen, due, coins: np.full(seen.size, 0.005 if (i // 300) % 2 == 0 else 0.05),
    "costly when lucky": lambda i, seen, due, coins: np.where(seen < due, 0.05, 0.005),
    "cheap when lucky": lambda i, seen, due, coins: np.where(seen < due, 0.005, 0.05),
    "costly when far ahead": lambda i, seen, due, coins: np.where(
        coins < 0.5, 0.02, np.where(seen < due - 5.0, 0.08, 0.001)
    ),
    "cheap, then costly": lambda i, seen, due, coins: np.full(seen.size, 0.001 if i < 1500 else 0.05),
}


class Misses(NamedTuple):
    """In how many runs a bound was ever on the wrong side of the average mean."""

    upper: int
    lower: int
    unweighted: int  # the best term for the data, as if it had been chosen before
    kept: int  # the tightest upper bound so far


def count_misses(adversary: Adversary, runs: int, rounds: int) -> Misses:
    """Play `runs` runs side by side, each bound with all of LEVEL."""
    random = np.random.default_rng([20261119, runs])
    seen, due, smallest = np.zeros((3, runs))
    smallest += 1.0
    missed = np.zeros((4, runs), bool)
    weights, (up, low) = np.array(LOG_WEIGHTS)[:, None], (np.array(e)[:, None] for e in (UPPER_ETAS, LOWER_ETAS))
    falls, rises, most = (*(np.abs(FACTORS).reshape(2, TERMS, 1)), math.log(1.0 / LEVEL))
    for i in range(1, rounds + 1):
        means = adversary(i, seen, due, random.uniform(size=runs))
        seen, due = seen + (random.uniform(size=runs) < means), due + means
        if i > EVERY and i % THEN:
            continue
        average = due / i
        above, below = -up * seen - i * np.log1p(-falls * average), low * seen - i * np.log1p(rises * average)
        missed[0] |= np.exp(weights + above).sum(0) > 1.0 / LEVEL
        missed[1] |= np.exp(weights + below).sum(0) > 1.0 / LEVEL
        missed[2] |= above.max(0) > most
        smallest = np.minimum(smallest, (-np.expm1(-(most - weights + up * seen) / i) / falls).min(0))
        missed[3] |= smallest < average
    return Misses(*missed.sum(1).tolist())


@pytest.mark.parametrize("name", ADVERSARIES)
@sized((2000, 3000), (2000, 15_000))
def test_each_bound_holds_at_all_times_whatever_chooses_the_means(name: str, size: tuple[int, int]) -> None:
    found = count_misses(ADVERSARIES[name], *size)
    assert max(found.upper, found.lower) <= allowed(size[0], LEVEL)


@sized((2000, 3000), (2000, 15_000))
def test_a_term_that_the_data_choose_does_not_hold(size: tuple[int, int]) -> None:
    """The statistic can fail: without weights, and so without a union, the upper bound misses too often."""
    assert count_misses(ADVERSARIES["one mean"], *size).unweighted > allowed(size[0], LEVEL)


@sized((2000, 3000), (2000, 15_000))
def test_the_tightest_bound_so_far_does_not_hold_where_means_differ(size: tuple[int, int]) -> None:
    """An average that rises passes every bound of its past, so bounds of segments are those of now."""
    assert count_misses(ADVERSARIES["cheap, then costly"], *size).kept > 0.9 * size[0]
