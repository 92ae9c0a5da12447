"""Sums go from the left everywhere: a candidate has the same bounds to the bit, looked at afresh or just followed."""

import numpy as np
import pytest
from tests.engine.alone import cache_candidates, compute_bounds, compute_cached_bounds
from tests.engine.test_ridge import BASELINES, COUNTS, learned, study


@pytest.mark.long
@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("rounds", [0, 40])
def test_a_look_and_a_following_agree_to_the_bit(baseline: str, rounds: int) -> None:
    random = np.random.default_rng([rounds, BASELINES.index(baseline)])
    for d in range(1, 17):
        model = learned(study(random, baseline, d, rounds, ridge=float(random.uniform(0.1, 3.0))))
        for count in COUNTS[:3]:
            features = random.normal(size=(count, d))
            observed, kept = compute_bounds(model, features), compute_cached_bounds(cache_candidates(model, features))
            np.testing.assert_array_equal(observed.safe_halves, kept.safe_halves)
            np.testing.assert_array_equal(observed.safe_centres, kept.safe_centres)
            np.testing.assert_array_equal(observed.halves, kept.halves)
            np.testing.assert_array_equal(observed.centres, kept.centres)
            if baseline == "free":
                np.testing.assert_array_equal(observed.crosses, kept.crosses)
