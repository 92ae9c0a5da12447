"""Users drawn afresh and safe actions of the round: by hand and in the loop, runs are the same to the bit."""

from typing import Any

import numpy as np
import pytest
from tests.agreement.test_backends import play_both, same
from tests.sizes import in_lanes

import stagewise as sw

pytestmark = pytest.mark.long

RNG = np.random.default_rng(9)
K, D, M = 3, 3, 2
THETA = RNG.uniform(0.0, 0.15, size=(1 + M, K, D))
THETA[1:, 0] *= 0.2
SEGMENTS = {"segments": [0.3, 0.7], "segment_offsets": RNG.uniform(0.0, 0.1, size=(1 + M, K, 2))}
SAFE = sw.SafeAction(cost=[0.3, 0.3])
LIMITS = [0.35, 0.35]
ROUNDS = 60
PLAN: dict[str, Any] = {"rounds": ROUNDS, "audit": True}


def users(features: Any, segmented: bool, **settings: Any) -> sw.ContextWorld:
    options: dict[str, Any] = SEGMENTS if segmented else {}
    return sw.ContextWorld(reward=THETA[0], cost=THETA[1:], features=features, **options, **settings)


@pytest.mark.parametrize("features", ["crossed", "plain"])
@pytest.mark.parametrize("segmented", [True, False])
def test_users_are_the_same_by_hand_and_in_the_loop(features: str, segmented: bool) -> None:
    world, policy = users(features, segmented, outcomes="gaussian"), sw.AlwaysSafe(safe_action=SAFE, threshold=LIMITS)
    assert same(*play_both(policy, world, **PLAN))


@pytest.mark.parametrize("segmented", [True, False])
def test_users_of_who_knows_no_limits_are_the_same(segmented: bool) -> None:
    world, policy = (
        users("crossed", segmented, outcomes="gaussian"),
        sw.LinUCB(noise=0.5, norm_bound=1.0, threshold=LIMITS),
    )
    assert same(*play_both(policy, world, **PLAN))


MIXING: dict[str, tuple[Any, dict[str, Any]]] = {
    "OPLB": (sw.OPLB, {}),
    "OPLB, directional": (sw.OPLB, {"optimism": "directional"}),
    "DOSLB": (sw.DOSLB, {}),
    "CAPS": (sw.SafePosteriorSampling, {"mixtures": True}),
}


MIXED = [(name, segmented) for name in MIXING for segmented in (True, False)]


@pytest.mark.parametrize(("name", "segmented"), in_lanes(MIXED, [("OPLB", False)], MIXED))
def test_mixtures_for_users(name: str, segmented: bool) -> None:
    kind, settings = MIXING[name]
    world = users("crossed", segmented, outcomes="gaussian", noise=0.05)
    options = {"safe_action": SAFE, "threshold": LIMITS, "noise": 0.05, "dimension": world.actions.dimension}
    policy = kind(**options, mean_cost_bound=None, **settings)
    runs = play_both(policy, world, **PLAN)
    assert same(*runs)
    safest = sw.AlwaysSafe(safe_action=SAFE, threshold=LIMITS)
    safe = sw.simulate(safest, world, runs=[3], seed=11, backend="python", **PLAN)
    assert not np.array_equal(runs[0].reward, safe.reward)


STEPPING: dict[str, Any] = {
    "LC-LUCB": sw.LCLUCB,
    "ROFUL": sw.ROFUL,
    "Safe-LTS": sw.SafeLTS,
    "CAPS": sw.SafePosteriorSampling,
}
COSTS = [[0.8, 0.6, 0.0], [0.0, 0.6, 0.8]]


def points(kind: Any, actions: Any) -> tuple[Any, sw.LinearWorld]:
    world = sw.LinearWorld(reward=[0.6, 0.8, 0.0], cost=COSTS, actions=actions, noise=0.1)
    safe = sw.SafeAction(cost=[0.25, 0.25], reward=-0.2)
    return kind(safe_action=safe, threshold=[0.5, 0.5], noise=0.1, dimension=3), world


@pytest.mark.parametrize("name", in_lanes(STEPPING, ["LC-LUCB"], STEPPING))
def test_rays_from_every_rounds_own_point(name: str) -> None:
    fixed = [sw.RaySet(np.eye(3), safe=[0.1, 0.1, 0.0])] if name in ("LC-LUCB", "ROFUL") else []
    for actions in (sw.RandomRaySet(count=5, dimension=3, safe=0.2), *fixed):
        policy, world = points(STEPPING[name], actions)
        assert same(*play_both(policy, world, **PLAN)), actions


def test_a_contradiction_comes_in_the_same_round() -> None:
    world = users("crossed", False, outcomes="gaussian", noise=0.02)
    options = {"safe_action": sw.SafeAction(cost=[0.001, 0.3]), "threshold": LIMITS, "noise": 0.02, "dimension": K * D}
    plan = {**PLAN, "rounds": 400}
    watched, blind = (sw.OPLB(**options, mean_cost_bound=None, check_assumptions=watch) for watch in (True, False))
    one, other = play_both(watched, world, **plan)
    assert same(one, other)
    assert not same(one, play_both(blind, world, **plan)[0]), "something must have been contradicted"
