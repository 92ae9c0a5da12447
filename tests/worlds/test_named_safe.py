"""Sets that name their own safe action, in worlds: drawn, described, judged."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.worlds.world_families import build_world

SETS: list[Any] = [
    sw.RandomRaySet(count=3, dimension=2, safe=0.2),
    sw.RandomFiniteSet(count=3, dimension=2, safe=0.2),
    sw.RaySet(np.eye(2), safe=[0.1, 0.0], safe_cost=0.3, safe_reward=0.1),
    sw.FiniteSet(np.eye(2), safe=1, safe_cost=[0.6]),
    sw.FiniteSet(np.eye(2), safe=np.array([0.0, 0.1])),
]


def world(actions: Any) -> sw.LinearWorld:
    return sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=actions, noise=0.1)


@pytest.mark.parametrize("actions", SETS, ids=repr)
def test_a_world_described_and_built_again_draws_the_same(actions: Any) -> None:
    again = build_world(world(actions).description())
    assert again.description() == world(actions).description()
    for round_ in range(3):
        one, other = (place.actions_in(sw.RandomKey(1, 2, round_)) for place in (world(actions), again))
        assert np.array_equal(one.features, other.features)
        assert one.round_safe_action.safe_index == other.round_safe_action.safe_index
        assert np.array_equal(one.round_safe_action.features, other.round_safe_action.features)


@pytest.mark.parametrize("kind", [sw.RandomRaySet, sw.RandomFiniteSet])
def test_a_drawn_safe_point_has_its_length_and_leaves_the_set_as_it_was(kind: Any) -> None:
    for round_ in range(5):
        draw = sw.RandomKey(4, 1, round_)
        named, bare = kind(count=3, dimension=3, safe=0.25).draw(draw), kind(count=3, dimension=3).draw(draw)
        assert np.array_equal(named.features, bare.features)
        assert np.linalg.norm(named.round_safe_action.features) == pytest.approx(0.25, rel=1e-12)
        assert bare.round_safe_action is None


def test_a_world_whose_safe_points_may_cost_too_much_is_refused() -> None:
    policy = sw.AlwaysSafe(safe_action=sw.SafeAction(cost=0.1), threshold=0.3)
    with refused(sw.InvalidProblem, ErrorCode.SAFE_ACTION_OVER_LIMIT):
        sw.simulate(policy, world(sw.RandomRaySet(count=3, dimension=2, safe=0.4)), rounds=1)
    with refused(sw.InvalidProblem, ErrorCode.SAFE_ACTION_OVER_LIMIT):
        sw.simulate(policy, world(sw.FiniteSet(np.eye(2), safe=0)), rounds=1)


class Own:
    """A world of someone's own that offers named sets."""

    costs = 1

    def actions_in(self, draw: sw.RandomKey) -> sw.FiniteSet:
        rows = np.random.default_rng([draw.run, draw.round]).uniform(0.1, 0.3, size=(3, 2))
        return sw.FiniteSet(rows, safe=0, safe_cost=0.3)

    def means(self, action: Any) -> np.ndarray[Any, Any]:
        return np.array([action[0], 0.5 * (action[0] + action[1])])

    def outcome(self, action: Any, draw: sw.RandomKey) -> sw.Outcome:
        reward, cost = self.means(action)
        return sw.Outcome(float(reward), float(cost))

    def description(self) -> dict[str, Any]:
        return {"kind": "Own"}


def test_a_world_of_ones_own_may_name_them_too() -> None:
    policy = sw.OPLB(safe_action=sw.SafeAction(), threshold=0.4, noise=0.1, dimension=2)
    result = sw.simulate(policy, Own(), rounds=30, runs=1, record_points=30)
    assert result.violations[0] == 0
    best = [max(Own().actions_in(sw.RandomKey(0, 0, t)).features[:, 0]) for t in range(30)]
    assert result.optimum[0] == pytest.approx(best), "no limit binds there"
    assert np.all(result.reward[0] <= result.optimum[0] + 1e-12)


def test_a_policy_of_ones_own_is_judged_from_the_rounds_safe_action() -> None:
    class Stays:
        safe_action, threshold = sw.SafeAction(cost=0.3), 0.4

        def start(self) -> None:
            return None

        def decide(self, state: Any, actions: Any, draw: sw.RandomKey) -> sw.Decision:
            told = (None, 1.0, np.array([0.3]), np.array([0.4]), "as always", draw.round)
            return sw.Decision(actions.round_safe_action.features, actions.round_safe_action.safe_index, 1.0, *told)

        def learn(self, state: Any, decision: Any, outcome: Any) -> None:
            return None

    policy = sw.AlwaysSafe(safe_action=sw.SafeAction(cost=0.3), threshold=0.4)
    one, other = (sw.simulate(each, Own(), rounds=20, runs=1, record_points=20) for each in (Stays(), policy))
    assert np.array_equal(one.reward, other.reward)
    assert np.array_equal(one.regret, other.regret)


def test_a_table_whose_rows_name_the_safe_action_is_played_described_and_built_again() -> None:
    rows = sw.FiniteSet([[0.05, 0.02], [1.0, 0.0], [0.0, 1.0]], safe=0)
    table = sw.FiniteSetWorld(features=rows, reward=[0.1, 0.7, 0.3], cost=[0.05, 0.5, 0.1], noise=0.1)
    safe = sw.SafeAction(cost=0.1, reward=0.0)
    policy = sw.OPLB(dimension=2, safe_action=safe, threshold=0.3, noise=0.1)
    results = [sw.simulate(policy, table, rounds=30, backend=backend) for backend in ("cpu", "python")]
    assert np.array_equal(results[0].regret, results[1].regret)
    assert results[0].safe.tolist() == [[0.1, 0.05]]
    assert build_world(table.description()).actions.names_safe
    with refused(sw.InvalidProblem, ErrorCode.SAFE_ACTION_OVER_LIMIT):
        sw.simulate(replace(policy, threshold=0.04, safe_action=sw.SafeAction(cost=0.01)), table, rounds=5)
