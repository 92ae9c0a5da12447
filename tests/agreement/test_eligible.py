"""A world that offers only some of its actions does so in every backend, is judged by them, and says so of itself."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.agreement.test_backends import (
    MIXTURES,
    MUS,
    RAYS,
    SAFE,
    TARGETS,
    THETA,
    D,
    baselines,
    on_points,
    play_both,
    policies,
    same,
)
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.worlds.world_families import build_world

pytestmark = pytest.mark.long

ROUNDS = 80
CHOSEN = [1, 4]
INTERVALS = ("kl", "hoeffding")
REWARD, COST = [0.1, 0.2, 0.4, 0.7], [0.0, 0.4, 0.5, 0.2]
ARM = sw.SafeAction(arm=0, reward=0.1, cost=0.0)
LOGGED: dict[str, Any] = {"reward": REWARD, "cost": COST, "noise": 0.1}
KERNEL = sw.KernelOPLB(
    kernel=sw.RBF(lengthscale=0.3),
    norm_bound=1.0,
    safe_action=sw.SafeAction(features=[0.0], reward=0.1, cost=0.0),
    threshold=0.45,
    noise=0.02,
)


def linear(actions: Any) -> sw.LinearWorld:
    return sw.LinearWorld(reward=THETA, cost=MUS[:1], actions=actions, noise=0.1)


def arms(*chosen: int) -> sw.ArmsWorld:
    return sw.ArmsWorld(reward=REWARD, cost=COST, actions=sw.ArmSet(4).only(chosen))


def table(*chosen: int) -> sw.FiniteSetWorld:
    return sw.FiniteSetWorld(features=sw.FiniteSet([[0.0], [0.3], [0.6], [1.0]]).only(chosen), **LOGGED)


def played(policy: Any, world: Any, **settings: Any) -> sw.Result:
    given: dict[str, Any] = {"rounds": ROUNDS, "runs": [3], "seed": 11, "record_points": ROUNDS}
    with np.errstate(all="ignore"):
        return sw.simulate(policy, world, **(given | settings))


def assert_alike(policy: Any, world: Any, *, audit: bool = False) -> None:
    one, other = play_both(policy, world, rounds=ROUNDS, audit=audit)
    assert (one.audit is not None) == audit
    assert same(one, other), policy


@pytest.mark.parametrize("kind", [sw.RaySet, sw.FiniteSet])
@pytest.mark.parametrize("baseline", ["at zero", "unknown"])
def test_by_hand_is_the_loop_on_listed_actions(kind: Any, baseline: str) -> None:
    world = linear(kind(TARGETS).only(CHOSEN))
    for policy in policies(baselines(1)[baseline], 1):
        if kind is sw.RaySet or not on_points(policy):
            assert_alike(policy, world)
    for policy in policies(baselines(1)[baseline], 1, MIXTURES if kind is sw.FiniteSet else (*RAYS, *MIXTURES)):
        assert_alike(policy, world, audit=True)


@pytest.mark.parametrize("interval", INTERVALS)
def test_by_hand_is_the_loop_on_arms(interval: str) -> None:
    for audit in (False, True):
        assert_alike(sw.OPB(arms=4, safe_action=ARM, threshold=0.3, interval=interval), arms(1, 2), audit=audit)
        assert_alike(sw.UCB(arms=4, safe_action=ARM, threshold=0.3, interval=interval), arms(1, 2), audit=audit)


def test_by_hand_is_the_loop_for_the_kernel_policy() -> None:
    assert_alike(KERNEL, table(1, 2))
    assert played(KERNEL, table(1, 2)).reward.max() < 0.4 < played(KERNEL, table(1, 3)).reward.max()


def test_what_is_not_offered_is_never_played_and_never_the_optimum() -> None:
    free = sw.UCB(arms=4, safe_action=ARM, threshold=0.3)
    for chosen in ([1, 2], [2], [1, 3]):
        result, rewards = played(free, arms(*chosen)), [REWARD[arm] for arm in chosen]
        assert set(result.reward.ravel()) == set(rewards)
        assert result.optimum.max() < max(rewards) if chosen != [1, 3] else result.optimum.min() == 0.7


@pytest.mark.parametrize("kind", [sw.RaySet, sw.FiniteSet])
def test_the_optimum_is_that_of_a_world_without_the_others(kind: Any) -> None:
    policy = sw.AlwaysSafe(safe_action=baselines(1)["known"], threshold=0.7)
    for chosen in ([0], [1, 4], [2, 3, 5]):
        some, all_of_them = linear(kind(TARGETS).only(chosen)), linear(kind(TARGETS[chosen]))
        np.testing.assert_allclose(played(policy, some).optimum, played(policy, all_of_them).optimum, rtol=1e-12)


@pytest.mark.parametrize(
    ("policy", "make"),
    [
        (
            sw.LCLUCB(safe_action=sw.SafeAction(features=np.zeros(D)), threshold=0.7, noise=0.1, mean_cost_bound=2.0),
            "rays",
        ),
        (sw.OPB(arms=4, safe_action=ARM, threshold=0.3), "arms"),
        (KERNEL, "table"),
    ],
    ids=["rays", "arms", "table"],
)
def test_a_folder_of_some_actions_does_not_answer_for_others(policy: Any, make: str, tmp_path: Path) -> None:
    some = {"rays": lambda *chosen: linear(sw.RaySet(TARGETS).only(chosen)), "arms": arms, "table": table}
    world: Any = some[make]
    played(policy, world(1), out=tmp_path)
    with pytest.raises(sw.InvalidFile) as caught:
        played(policy, world(2), out=tmp_path)
    assert "world" in str(caught.value.details)
    assert same(played(policy, build_world(world(1).description())), played(policy, world(1)))
    assert "eligible" not in linear(sw.RaySet(TARGETS)).description()


def test_families_offer_what_their_world_offers() -> None:
    sphere = sw.LinearWorldFamily(linear(sw.RaySet(TARGETS).only(CHOSEN)), seed=2)
    assert np.flatnonzero(sphere(3).actions.eligible).tolist() == CHOSEN
    drawn = sw.ArmsWorldFamily(arms(1, 2), seed=2)
    assert np.flatnonzero(drawn(3).actions.eligible).tolist() == [1, 2]
    assert drawn.description() != sw.ArmsWorldFamily(arms(1, 3), seed=2).description()


def test_arms_that_are_not_the_worlds_are_refused() -> None:
    for actions in (sw.ArmSet(3), [0, 1], sw.FiniteSet(np.eye(4)), SAFE):
        with refused(sw.InvalidProblem, ErrorCode.WRONG_TYPE, "ArmSet(4)"):
            sw.ArmsWorld(reward=REWARD, cost=COST, actions=actions)  # type: ignore[arg-type]
