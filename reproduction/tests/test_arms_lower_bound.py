"""√((K−1)T)/27: on the worst of its instances every policy regrets at least as much, and a clairvoyant does not."""

import math
from typing import Any

import numpy as np
import pytest
from tests.sizes import sized

import stagewise as sw
from stagewise_reproduction.beyond.lower_bound.arms import (
    SAFE_COST,
    SAFE_REWARD,
    build_instances,
    compute_bound,
    compute_gap,
)
from stagewise_reproduction.instances import compute_optimum

SAFE = sw.SafeAction(arm=0, reward=SAFE_REWARD, cost=SAFE_COST)


def told(kind: Any, arms: int) -> Any:
    """Return a policy that knows the noise, the safe arm and the limit."""
    if kind is sw.AlwaysSafe:
        return sw.AlwaysSafe(safe_action=SAFE, threshold=0.3)
    if kind is sw.UCB:
        return sw.UCB(arms=arms, noise=1.0, threshold=0.3)
    return kind(arms=arms, safe_action=SAFE, threshold=0.3, noise=1.0)


def worst(kind: Any, arms: int, rounds: int, runs: int) -> float:
    """Return the mean regret on the worst of the instances."""
    policy = told(kind, arms)
    results = [
        sw.simulate(policy, world, rounds=rounds, runs=runs, seed=4, progress=False)
        for world in build_instances(arms, rounds)
    ]
    return max(float(result.regret[:, -1].mean()) for result in results)


def test_the_instances_are_the_theorem_s() -> None:
    worlds, step = build_instances(4, 300), compute_gap(4, 300)
    assert step == pytest.approx(math.sqrt(3 / 1200))
    assert len(worlds) == 4
    np.testing.assert_allclose(worlds[0].table[0], [0.5, 0.5 - step, 0.5 - step, 0.5 - step])
    policy = told(sw.OPB, 4)
    assert [compute_optimum(policy, world) for world in worlds] == pytest.approx([0.5, *[0.5 + step] * 3])
    for arm in (1, 2, 3):
        changed = worlds[arm].table[0] - worlds[0].table[0]
        np.testing.assert_allclose(changed, 2.0 * step * np.eye(4)[arm], atol=1e-15)
    assert all((world.table[1] == SAFE_COST).all() for world in worlds)
    assert compute_bound(4, 300) == pytest.approx(math.sqrt(900) / 27)
    assert min(world.table[0].min() for world in build_instances(4, 3)) >= 0.0


@pytest.mark.parametrize("kind", [sw.OPB, sw.SafeArmPosteriorSampling, sw.UCB, sw.AlwaysSafe])
@sized((3, 200, 4), (10, 20_000, 40))
def test_the_worst_instance_costs_every_policy_at_least_the_bound(kind: Any, size: tuple[int, ...]) -> None:
    assert worst(kind, *size) >= compute_bound(size[0], size[1])


@sized((3, 200, 4), (10, 20_000, 40))
def test_on_the_others_a_policy_may_regret_less(size: tuple[int, ...]) -> None:
    """The bound is of the worst instance: who never leaves the safe arm regrets nothing where that arm is best."""
    arms, rounds, runs = size
    best = build_instances(arms, rounds)[0]
    result = sw.simulate(told(sw.AlwaysSafe, arms), best, rounds=rounds, runs=runs, seed=4, progress=False)
    assert float(result.regret[:, -1].mean()) == 0.0 < compute_bound(arms, rounds)
