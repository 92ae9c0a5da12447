"""Worlds drawn per run."""

import numpy as np
import pytest

import stagewise as sw


@pytest.mark.parametrize("spread", [-0.1, 1.5, float("nan")])
def test_a_spread_keeps_means_from_being_negative(spread: float) -> None:
    with pytest.raises(sw.InvalidProblem, match="spread"):
        sw.ArmsFamily(sw.ArmsWorld(reward=[0.5, 0.3], cost=[0.5, 0.1]), spread=spread)


def test_spread_means_stay_around_those_of_the_world_and_below_one() -> None:
    world = sw.ArmsWorld(reward=[0.5, 0.3, 0.9], cost=[0.5, 0.1, 0.02])
    family = sw.ArmsFamily(world, safe=1, spread=0.5)
    tables = np.array([family(run).table for run in range(200)])
    assert np.all(tables >= 0.5 * world.table - 1e-15)
    assert np.all(tables <= np.minimum(1.5 * world.table, 1.0) + 1e-15)
    assert np.array_equal(tables[:, :, 1], np.broadcast_to(world.table[:, 1], (200, 2)))
    assert np.all(tables[:, :, [0, 2]].std(axis=0) > 0.0)


def test_a_list_that_holds_itself_is_refused_before_numpy_follows_it() -> None:
    """Twice in itself, it has 2⁶⁴ paths: the memory was full before anything was said."""
    loop: list[object] = []
    loop.extend([loop, loop])
    pair: list[object] = [(loop, loop), [loop, loop]]
    for value in (loop, pair):
        with pytest.raises(sw.InvalidProblem, match="the world is a list"):
            sw.SphereFamily(value)
        with pytest.raises(sw.InvalidProblem, match="reward"):
            sw.LinearWorld(reward=value, cost=[0.1], actions=sw.Rays([[1.0]]), noise=0.1)
        with pytest.raises(sw.InvalidActions, match="the actions"):
            sw.Rays(value)
        with pytest.raises(sw.InvalidActions, match="eligible"):
            sw.Arms(3).only(value)
