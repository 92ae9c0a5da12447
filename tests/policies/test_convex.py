"""Decisions in convex sets: as good as dense rays, within the certified gap, safe to the bit."""

import math
from typing import Any

import numpy as np
import pytest
from tests.policies.convex_instances import CASES, KINDS, SHAPES, dense_rays, instance_of, learned, set_around
from tests.problem.refusal import refused
from tests.sizes import listed

from stagewise import (
    LCLUCB,
    OPLB,
    ROFUL,
    Agent,
    AtLeast,
    BallSet,
    BoxSet,
    Decision,
    EllipsoidSet,
    FiniteSet,
    InvalidActions,
    LinUCB,
    PolytopeSet,
    SafeAction,
    SafeLTS,
)
from stagewise.problem.errors import ErrorCode
from stagewise.rules.relaxation import compute_best_value

AT_ZERO = SafeAction(features=np.zeros(3))


ALL = [(name, kind, shape) for name in CASES for kind in KINDS for shape in SHAPES]
SOME = ALL[::3]  # every case, both policies and all sets


@pytest.mark.long
@listed("name, kind, shape", ALL, SOME)
def test_dense_rays_find_nothing_better_and_nothing_above_the_bound(name: str, kind: Any, shape: str) -> None:
    instance = instance_of(name, 1)
    policy, state = learned(kind, instance)
    actions = set_around(shape, instance.safe, 1)
    decision = policy.decide(state, actions)
    rays = policy.decide(state, dense_rays(actions, instance.safe, 200))
    slack = 1e-6 if instance.safe.size == 2 else 1e-4
    assert decision.solver_gap >= 0.0
    assert decision.optimistic_reward >= rays.optimistic_reward - slack * max(1.0, abs(rays.optimistic_reward))
    assert decision.optimistic_reward + decision.solver_gap >= rays.optimistic_reward
    if decision.message is None:
        assert np.all(decision.pessimistic_cost <= decision.thresholds)
        assert actions.contains(decision.action)
        assert decision.action_index == 0


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [2, 3])
def test_a_very_dense_search_stays_within_the_gap(d: int, kind: Any, shape: str) -> None:
    rng = np.random.default_rng([d, len(shape)])
    safe = SafeAction(features=np.zeros(d))
    policy = kind(safe_action=safe, threshold=[0.3, 0.2], noise=0.1, mean_cost_bound=1.0)  # 1e-6 beyond the unit ball
    agent, truth = Agent(policy), rng.normal(size=(3, d))
    truth /= 1.2 * np.linalg.norm(truth, axis=1, keepdims=True)
    actions = set_around(shape, np.zeros(d), 5)
    for round_ in range(60):
        decision = agent.decide(actions)
        reward, *costs = truth @ decision.action + 0.1 * rng.normal(size=3)
        if round_ % 20 == 19:
            rays = policy.decide(agent.state, dense_rays(actions, np.zeros(d), 20_000, round_))
            assert decision.optimistic_reward >= rays.optimistic_reward - (1e-7 if d == 2 else 1e-5)
            assert decision.optimistic_reward + decision.solver_gap >= rays.optimistic_reward
        agent.learn(decision, reward, costs)


@pytest.mark.long
@listed("name, kind, shape", ALL, SOME)
def test_optimism_on_the_event_up_to_the_gap(name: str, kind: Any, shape: str) -> None:
    """Where every confidence set holds the truth, hoped + gap is at least the best over the whole set."""
    instance = instance_of(name, 10)
    assert instance.on_event()
    policy, state = learned(kind, instance)
    actions = set_around(shape, instance.safe, 10)
    decision = policy.decide(state, actions)
    best = compute_best_value(actions, instance.signals[0].truth, instance.costs, instance.thresholds)
    if decision.message is None or CASES[name].cost_known:
        assert decision.optimistic_reward + decision.solver_gap >= best - 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_of_roful_in_a_ball_is_nothing_and_that_of_lc_lucb_moderate(kind: Any) -> None:
    instance = instance_of("zero safe action", 3)
    policy, state = learned(kind, instance)
    decision = policy.decide(state, BallSet(1.0))
    assert decision.solver_gap <= (1e-6 if kind is ROFUL else 0.5 * decision.optimistic_reward)


def test_the_first_decision_takes_the_longest_safe_step() -> None:
    policy = LCLUCB(safe_action=AT_ZERO, threshold=0.5, noise=0.1)
    decision = policy.decide(policy.start(), BallSet(1.0))
    assert decision.step_size == pytest.approx(0.5)
    assert np.linalg.norm(decision.action) == pytest.approx(0.5)
    assert decision.solver_gap == pytest.approx(0.0, abs=1e-6)


def test_without_a_certificate_the_gap_is_endless_and_the_decision_as_good() -> None:
    instance = instance_of("safe action elsewhere", 1)
    certain, state = learned(LCLUCB, instance)
    quick, _ = learned(LCLUCB, instance, bounds_solver_gap=False)
    actions = set_around("ellipsoid", instance.safe, 1)
    assert quick.decide(state, actions).solver_gap == math.inf
    assert quick.decide(state, actions).optimistic_reward == pytest.approx(
        certain.decide(state, actions).optimistic_reward, rel=1e-4
    )


def test_a_polytope_beside_rays_to_its_vertices_hopes_for_no_less() -> None:
    for seed in range(5):
        instance = instance_of("three constraints", seed)
        policy, state = learned(LCLUCB, instance)
        actions = set_around("polytope", instance.safe, seed)
        assert (
            policy.decide(state, actions).optimistic_reward
            >= policy.decide(state, actions.vertices).optimistic_reward - 1e-9
        )


def test_sets_and_rays_may_alternate() -> None:
    agent = Agent(LCLUCB(safe_action=AT_ZERO, threshold=0.5, noise=0.1, mean_cost_bound=1.0))
    rng = np.random.default_rng(0)
    for round_ in range(30):
        decision = agent.decide(
            [np.eye(3), BallSet(1.0), BoxSet(-np.ones(3), np.ones(3)) if round_ else np.eye(3)][round_ % 3]
        )
        agent.learn(decision, float(decision.action[0] + 0.1 * rng.normal()), float(decision.action[1]))
    assert agent.round == 30


def test_the_safe_action_on_the_edge_of_the_set_is_in_it() -> None:
    safe = SafeAction(features=[1.0, 0.0], reward=0.2, cost=0.1)
    policy = LCLUCB(safe_action=safe, threshold=0.4, noise=0.1, mean_cost_bound=1.0)
    for actions in (BallSet(1.0), BoxSet([0.0, 0.0], [1.0, 1.0]), PolytopeSet([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])):
        decision = policy.decide(policy.start(), actions)
        assert decision.message is None
        assert decision.pessimistic_cost[0] <= 0.4
        assert actions.contains(decision.action)


def test_a_simplex_is_played_in_its_plane() -> None:
    safe = SafeAction(features=[1.0, 0.0, 0.0], reward=0.2, cost=0.1)
    agent = Agent(ROFUL(safe_action=safe, threshold=[0.4], noise=0.1))
    for _ in range(20):
        decision = agent.decide(PolytopeSet(np.eye(3)))
        assert decision.action.sum() == pytest.approx(1.0)
        assert decision.action.min() >= -1e-9
        agent.learn(decision, float(decision.action @ [0.2, 0.9, 0.1]), float(decision.action @ [0.1, 0.5, 0.1]))
    assert decision.message is None


def test_limits_from_below_work_too() -> None:
    safe = SafeAction(features=[0.5, 0.5], reward=0.2, cost={"clicks": 0.4})
    policy = LCLUCB(safe_action=safe, threshold={"clicks": AtLeast(0.2)}, noise=0.1)
    decision = policy.decide(policy.start(), BallSet(1.0))
    assert decision.message is None
    assert decision.pessimistic_cost[0] >= 0.2


def test_a_policy_that_still_warms_up_plays_the_safe_action() -> None:
    policy = LCLUCB(safe_action=SafeAction(features=[0.5, 0.5]), threshold=0.5, noise=0.1)
    decision = policy.decide(policy.start(), BallSet(1.0))
    assert decision.message is not None
    assert decision.solver_gap == 0.0
    assert np.array_equal(decision.action, [0.5, 0.5])


@pytest.mark.parametrize("actions", [BoxSet(-np.ones(3), np.ones(3)), PolytopeSet(np.vstack([np.eye(3), -np.eye(3)]))])
def test_mixtures_take_a_polytope_by_its_vertices(actions: Any) -> None:
    for policy in (OPLB(safe_action=AT_ZERO, threshold=0.5, noise=0.1, mean_cost_bound=1.0), LinUCB(noise=0.1)):
        ours = policy.decide(policy.start(), actions)
        listed = policy.decide(policy.start(), FiniteSet(actions.vertices))
        assert ours.optimistic_reward == listed.optimistic_reward
        assert np.array_equal(ours.action, listed.action)


def decided(kind: Any, actions: Any, **settings: Any) -> Decision:
    policy = kind(**{"safe_action": AT_ZERO, "threshold": 0.5, "noise": 0.1, **settings})
    return policy.decide(policy.start(), actions)


@pytest.mark.parametrize("actions", [BallSet(1.0), EllipsoidSet(np.eye(3))])
def test_mixtures_refuse_infinitely_many_extreme_points(actions: Any) -> None:
    with refused(InvalidActions, ErrorCode.UNSUPPORTED_ACTIONS, type(actions).__name__):
        decided(OPLB, actions)


def test_a_sampler_refuses_a_convex_set() -> None:
    with refused(InvalidActions, ErrorCode.UNSUPPORTED_ACTIONS):
        decided(SafeLTS, BallSet(1.0))


OUTSIDE: dict[str, Any] = {
    "ball": BallSet(1.0, [2.0, 0.0, 0.0]),
    "ellipsoid": EllipsoidSet(np.eye(3), [0.0, 1.1, 0.0]),
    "box": BoxSet(np.ones(3), 2.0 * np.ones(3)),
    "polytope": PolytopeSet(np.eye(3)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("actions", OUTSIDE.values(), ids=OUTSIDE)
def test_a_set_without_the_safe_action_is_refused(kind: Any, actions: Any) -> None:
    with refused(InvalidActions, ErrorCode.SAFE_ACTION_INVALID):
        decided(kind, actions)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("actions", [BallSet(1.0, np.zeros(2)), BoxSet([-1.0], [1.0]), EllipsoidSet(np.eye(4))])
def test_a_set_of_another_dimension_is_refused(kind: Any, actions: Any) -> None:
    with refused(InvalidActions, ErrorCode.DIMENSION_MISMATCH, actions.dimension):
        decided(kind, actions)


def test_the_papers_radius_refuses_actions_that_are_too_long() -> None:
    assert decided(LCLUCB, BallSet(1.0), radius="paper").message is None
    with refused(InvalidActions, ErrorCode.BOUND_EXCEEDED):
        decided(LCLUCB, BallSet(2.0), radius="paper")


@pytest.mark.parametrize("kind", [LCLUCB, ROFUL])
@pytest.mark.parametrize("reward", [0.1, None])
def test_on_a_line_with_a_known_cost_nothing_is_left_to_learn_and_the_limit_is_met(
    kind: Any, reward: float | None
) -> None:
    safe = SafeAction(features=[1.0], reward=reward, cost=0.2)
    for actions in (BallSet(4.0), BoxSet([-1.0], [4.0])):
        agent = Agent(kind(safe_action=safe, threshold=0.5, noise=0.1, mean_cost_bound=4.0))
        for _ in range(5):
            decision = agent.decide(actions)
            agent.learn(decision, reward=0.1 * decision.action[0], cost=0.2 * decision.action[0])
            assert 0.2 * decision.action[0] <= 0.5
