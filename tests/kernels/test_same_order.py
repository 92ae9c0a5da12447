"""Sums go from the left everywhere: a candidate has the same bounds to the bit, looked at afresh or just followed."""

import numpy as np
import pytest
from stagewise.kernels.look import View, recall
from stagewise.kernels.ridge import Followed, Regression, follow
from tests.kernels.test_ridge import BASELINES, COUNTS, alone, learned, looked, study

from stagewise.kernels.compile import Floats


def recalled(features: Floats, model: Regression) -> tuple[Regression, View, float]:
    """Return the model that has begun to follow these candidates, and what it recalls of them."""
    signals, count, size = len(model.ridge.fits), len(features), len(model.ridge.root)
    followed = Followed(*(np.full(shape, np.nan) for shape in [(size, count), (signals, count), count]))
    following = model._replace(followed=followed)
    follow(features, following, np.empty(size))
    rubbish = [np.full(shape, np.nan) for shape in [(signals, count), count, count, signals, signals]]
    view = View(*rubbish)
    return following, view, recall(following, view, np.empty(2 * size))


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("rounds", [0, 40])
def test_a_look_and_a_following_agree_to_the_bit(baseline: str, rounds: int) -> None:
    random = np.random.default_rng([rounds, BASELINES.index(baseline)])
    for d in range(1, 17):
        data = study(random, baseline, d, rounds, ridge=float(random.uniform(0.1, 3.0)))
        model = learned(data)
        for count in COUNTS[:3]:
            features = random.normal(size=(count, d))
            seen, start_width = looked(features, alone(model.ridge, model.anchor, model.belief))
            following, view, recalled_width = recalled(features, model)
            assert start_width == recalled_width
            np.testing.assert_array_equal(seen.widths, view.widths)
            np.testing.assert_array_equal(seen.estimates, following.followed.estimates)
            if baseline == "free":
                np.testing.assert_array_equal(seen.crosses, view.crosses)
