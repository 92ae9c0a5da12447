"""Users drawn afresh: what a round offers, what its actions come to, and what is refused."""

from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.worlds.world_families import build_world

RNG = np.random.default_rng(8)
K, D, M = 4, 3, 2
THETA = RNG.uniform(0.0, 0.2, size=(1 + M, K, D))
SHARES, OFFSETS = [0.2, 0.5, 0.3], RNG.uniform(0.0, 0.2, size=(1 + M, K, 3))


def world(features: Any = "crossed", segmented: bool = True, **settings: Any) -> sw.ContextWorld:
    told = {"segments": SHARES, "segment_offsets": OFFSETS} if segmented else {}
    return sw.ContextWorld(reward=THETA[0], cost=THETA[1:], features=features, **told, **settings)


@pytest.mark.parametrize("segmented", [True, False])
def test_both_forms_offer_the_same_users_with_the_same_means(segmented: bool) -> None:
    for round_ in range(20):
        draw = sw.RandomKey(3, 1, round_)
        crossed, plain = (world(form, segmented).actions_in(draw) for form in ("crossed", "plain"))
        user = plain.features[0]
        segment = int(user[-1]) if segmented else 0
        numbers = user[1 : 1 + D]
        assert numbers[0] == 1.0
        assert np.all((numbers[1:] > 0.0) & (numbers[1:] < 1.0))
        block = [*numbers, *np.eye(3)[segment]] if segmented else list(numbers)
        for action in range(K):
            assert np.array_equal(plain.features[action], [action, *user[1:]])
            assert np.array_equal(crossed.features[action], np.kron(np.eye(K)[action], block))
            expected = THETA[:, action] @ numbers + (OFFSETS[:, action, segment] if segmented else 0.0)
            one = world("crossed", segmented).means(crossed.features[action])
            other = world("plain", segmented).action_means(action, plain.features[action])
            assert np.array_equal(one, other)
            assert one == pytest.approx(expected, rel=1e-12)


def test_a_round_is_a_function_of_seed_run_and_round() -> None:
    offered = [
        world().actions_in(sw.RandomKey(*draw)).features for draw in [(3, 1, 5), (3, 1, 5), (3, 1, 6), (3, 2, 5)]
    ]
    assert np.array_equal(offered[0], offered[1])
    assert not np.array_equal(offered[0], offered[2])
    assert not np.array_equal(offered[0], offered[3])


def test_segments_come_by_their_shares() -> None:
    drawn = [int(world("plain").actions_in(sw.RandomKey(1, 0, t)).features[0, -1]) for t in range(3000)]
    assert np.bincount(drawn) / 3000 == pytest.approx(SHARES, abs=0.04)


def test_the_largest_means_are_those_of_the_best_user() -> None:
    place = world("plain")
    rows = [place.actions_in(sw.RandomKey(1, 0, t)).features for t in range(2000)]
    seen = np.array([[place.action_means(a, row[a]) for a in range(K)] for row in rows]).max(axis=0).T  # (1 + M, K)
    most = place.actions.max_means(place.parameters)
    assert np.all(seen <= most)
    assert seen == pytest.approx(most, rel=0.1)


@pytest.mark.parametrize("features", ["crossed", "plain"])
@pytest.mark.parametrize("segmented", [True, False])
def test_a_description_builds_the_same_world(features: str, segmented: bool) -> None:
    told = world(features, segmented, safe=2, outcomes="gaussian", noise=[0.1, 0.2, 0.3])
    assert build_world(told.description()).description() == told.description()


def test_what_is_no_world_of_users_is_refused() -> None:
    with refused(sw.InvalidProblem, ErrorCode.WRONG_SHAPE):
        sw.ContextWorld(reward=[0.1, 0.2], cost=[[0.1, 0.2]])
    with refused(sw.InvalidProblem, ErrorCode.OUT_OF_RANGE):
        sw.ContextWorld(reward=[[0.5, 0.6]], cost=[[0.0, 0.0]])
    with refused(sw.InvalidProblem, ErrorCode.CONFLICTING_SETTINGS):
        sw.ContextWorld(reward=THETA[0], cost=THETA[1:], segments=SHARES)
    with refused(sw.InvalidProblem, ErrorCode.INVALID_PROBABILITY):
        sw.ContextWorld(reward=THETA[0], cost=THETA[1:], segments=[0.5, 0.4, 0.2], segment_offsets=OFFSETS)
    with refused(sw.InvalidProblem, ErrorCode.OUT_OF_RANGE):
        world(safe=4)
    with refused(sw.InvalidActions, ErrorCode.UNSUPPORTED):
        world("plain").means([0.0, 1.0, 0.5, 0.5, 0.0])
    with refused(sw.InvalidActions, ErrorCode.OUT_OF_RANGE):
        world("plain").action_means(0, [0.0, 1.0, 0.5, 0.5, 7.0])
    with refused(sw.InvalidActions, ErrorCode.UNKNOWN_ACTION):
        world("plain").action_means(0, [1.0, 1.0, 0.5, 0.5, 2.0])
    with refused(sw.InvalidProblem, ErrorCode.SAFE_ACTION_OVER_LIMIT):
        sw.simulate(
            sw.AlwaysSafe(safe_action=sw.SafeAction(cost=[0.1, 0.1]), threshold=[0.11, 0.11]), world(), rounds=1
        )
