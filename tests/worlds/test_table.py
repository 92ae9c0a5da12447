"""A table of actions with any means: found by their features, judged like arms."""

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.worlds.world_families import build_world

FEATURES = [[0.0, 0.0], [1.0, 0.5], [0.2, -1.0]]


def world(**changes: object) -> sw.FiniteSetWorld:
    settings = {"features": FEATURES, "reward": [0.1, 0.9, 0.4], "cost": [0.0, 0.6, 0.1], "noise": 0.1}
    return sw.FiniteSetWorld(**{**settings, **changes})


def test_means_are_found_by_features_and_minus_zero_is_zero() -> None:
    assert world().means(np.array([-0.0, 0.0])).tolist() == [0.1, 0.0]
    assert world().means([0.2, -1.0]).tolist() == [0.4, 0.1]


def test_an_action_that_is_not_in_the_table_is_refused() -> None:
    with refused(sw.InvalidActions, ErrorCode.UNKNOWN_ACTION):
        world().means([0.3, 0.3])


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"reward": [0.1, 0.9]}, ErrorCode.WRONG_SHAPE),
        ({"cost": [[0.0, 0.1]]}, ErrorCode.WRONG_SHAPE),
        ({"outcomes": "cauchy"}, ErrorCode.INVALID_CHOICE),
        ({"features": [[0.0], [0.0], [1.0]]}, ErrorCode.CONFLICTING_SETTINGS),
        ({"noise": 0.0}, ErrorCode.OUT_OF_RANGE),
    ],
)
def test_bad_tables_are_refused(changes: dict[str, object], code: ErrorCode) -> None:
    with refused(sw.InvalidProblem, code):
        world(**changes)


def test_a_run_is_judged_by_the_best_mixture_of_the_table() -> None:
    safe = sw.SafeAction(features=FEATURES[0], cost=0.0)
    result = sw.simulate(sw.AlwaysSafe(safe_action=safe, threshold=0.3), world(), rounds=10, record_points=1)
    mixed = max(0.4 + (0.3 - 0.1) / (0.6 - 0.1) * (0.9 - 0.4), 0.1 + 0.5 * 0.8)
    assert result.optimum[0, 0] == pytest.approx(mixed, abs=1e-12)
    assert result.regret[0, -1] == pytest.approx(10 * (mixed - 0.1), abs=1e-9)
    assert result.max_cost[0, 0] == 0.0


def test_outcomes_repeat_and_scatter_around_the_means() -> None:
    one = world()
    seen = np.array([one.outcome([1.0, 0.5], sw.RandomKey(1, 0, t)).reward for t in range(4000)])
    assert seen.mean() == pytest.approx(0.9, abs=0.1 * 5 / np.sqrt(4000))
    assert one.outcome([1.0, 0.5], sw.RandomKey(1, 0, 3))[0] == seen[3]


@pytest.mark.parametrize(
    "actions",
    [
        sw.BallSet(2.0),
        sw.EllipsoidSet([[2.0, 0.0], [0.0, 1.0]], center=[0.1, 0.0]),
        sw.BoxSet([-1.0, -1.0], [1.0, 2.0]),
        sw.PolytopeSet(vertices=[[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
        sw.RaySet([[1.0, 0.0]]),
        sw.RandomFiniteSet(count=3, dimension=2),
    ],
    ids=lambda actions: type(actions).__name__,
)
def test_a_linear_world_is_built_again_from_its_description(actions: object) -> None:
    described = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=actions, noise=0.1).description()
    assert build_world(described).description() == described
