"""Worlds drawn per run."""

import numpy as np
import pytest
from tests.policies.refusals import refused_with

import stagewise as sw
from stagewise.problem.errors import ErrorCode


@pytest.mark.parametrize("spread", [-0.1, 1.5, float("nan")])
def test_a_spread_keeps_means_from_being_negative(spread: float) -> None:
    with refused_with(sw.InvalidProblem, ErrorCode.NOT_FINITE, ErrorCode.OUT_OF_RANGE):
        sw.ArmsWorldFamily(sw.ArmsWorld(reward=[0.5, 0.3], cost=[0.5, 0.1]), spread=spread)


def test_spread_means_stay_around_those_of_the_world_and_below_one() -> None:
    world = sw.ArmsWorld(reward=[0.5, 0.3, 0.9], cost=[0.5, 0.1, 0.02])
    family = sw.ArmsWorldFamily(world, safe=1, spread=0.5)
    tables = np.array([family(run).table for run in range(200)])
    assert np.all(tables >= 0.5 * world.table - 1e-15)
    assert np.all(tables <= np.minimum(1.5 * world.table, 1.0) + 1e-15)
    assert np.array_equal(tables[:, :, 1], np.broadcast_to(world.table[:, 1], (200, 2)))
    assert np.all(tables[:, :, [0, 2]].std(axis=0) > 0.0)
