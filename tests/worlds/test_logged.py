"""Users out of a table: what a round offers, what its actions come to, and what is refused."""

from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.engine.world_draws import fill_row_indices
from stagewise.problem.errors import ErrorCode

USERS = np.array([[0.1, 7.0], [-0.2, 9.0], [0.3, 7.0]])
REWARD = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
COST = REWARD / 10


def world(**settings: Any) -> sw.UserTableWorld:
    told: dict[str, Any] = {"users": USERS, "reward": REWARD, "cost": COST, "segment_columns": 1}
    return sw.UserTableWorld(**told | settings)


def test_every_row_comes_as_often_with_its_own_means() -> None:
    place, rows = world(), np.empty(3000, dtype=np.int64)
    fill_row_indices(rows, 3, 5, 1, 0)
    assert np.bincount(rows) / 3000 == pytest.approx([1 / 3] * 3, abs=0.04)
    for t in range(20):
        offered = place.actions_in(sw.RandomKey(5, 1, t))
        for action in range(2):
            assert offered.features[action].tolist() == [action, 1.0, *USERS[rows[t]]]
            means = place.action_means(action, offered.features[action])
            assert means.tolist() == [REWARD[rows[t], action], COST[rows[t], action]]


@pytest.mark.parametrize("noise", [1.0, 0.3])
def test_outcomes_have_their_mean_stay_in_range_and_vary_as_told(noise: float) -> None:
    place = world(noise=[noise, 1.0])
    seen = np.array([place.action_outcome(1, [1.0, 1.0, 0.3, 7.0], sw.RandomKey(1, 0, t)).reward for t in range(4000)])
    assert seen.mean() == pytest.approx(0.6, abs=0.03)
    assert seen.std() == pytest.approx(noise * np.sqrt(0.24), rel=0.05)
    assert set(seen) == ({0.0, 1.0} if noise == 1.0 else set(seen))
    assert seen.min() >= 0.0
    assert seen.max() <= 1.0


def test_a_description_tells_tables_apart_without_listing_them() -> None:
    one, other = world().description(), world(reward=REWARD + 0.01).description()
    assert one == world().description()
    assert one != other
    assert len(str(one)) < 400


def test_a_safe_action_over_its_limit_is_counted_and_not_refused() -> None:
    limits = {"opt_out": sw.Limit(0.04, safe_bound=0.01, by="country")}
    problem = sw.Problem(
        action_names=["a", "b"], safe_name="a", context=["x"], reward=sw.Reward("click"), limits=limits
    )
    result = sw.simulate(problem, world(), rounds=50, record_points=50)
    assert 0 < result.violations[0] < 50


def test_what_is_no_table_of_users_is_refused() -> None:
    with refused(sw.InvalidProblem, ErrorCode.WRONG_SHAPE):
        world(reward=[0.1, 0.2])
    with refused(sw.InvalidProblem, ErrorCode.WRONG_SHAPE):
        world(users=USERS[:2])
    with refused(sw.InvalidProblem, ErrorCode.OUT_OF_RANGE):
        world(reward=REWARD + 1.0)
    with refused(sw.InvalidProblem, ErrorCode.CONTEXT_OUT_OF_RANGE):
        world(users=20.0 * USERS, segment_columns=0)
    with refused(sw.InvalidProblem, ErrorCode.OUT_OF_RANGE):
        world(noise=1.5)
    with refused(sw.InvalidActions, ErrorCode.UNSUPPORTED):
        world().means([0.0, 1.0])
    with refused(sw.InvalidActions, ErrorCode.UNKNOWN_ACTION):
        world().action_means(0, [0.0, 1.0, 0.5, 7.0])
    with refused(sw.InvalidProblem, ErrorCode.CONFLICTING_SETTINGS):
        world(users=USERS[[0, 0, 1]]).action_means(0, [0.0, 1.0, 0.1, 7.0])
