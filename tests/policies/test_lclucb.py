"""LC-LUCB plays what a search over all rays and steps finds, within the limits to the bit."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policies.reading import BASELINES, Reading, decided, longest, random_problem, reading_of
from tests.problem.refusal import refused
from tests.sizes import sized

from stagewise import LCLUCB, ROFUL, AtLeast, InvalidActions, InvalidProblem, Outcome, RandomKey, RaySet, SafeAction
from stagewise.engine.compile import Floats
from stagewise.policies.policy import PlayedAction
from stagewise.problem.errors import ErrorCode
from stagewise.records.reason import FallbackReason

SEEDS = range(10)
UNKNOWN_COST = ["cost unknown", "unknown"]
SAFE_IS_BETTER = FallbackReason.NO_BETTER_ACTION


# The best of all rays and steps


def best_by_search(reading: Reading, targets: Floats) -> float:
    """Return the largest hoped reward at the safe action and at all safe steps of a fine grid on all rays."""
    best = float(reading.optimistic_reward(reading.safe))
    for target in targets:
        last = longest(reading.is_safe, target)
        grid = np.linspace(0.0, 1.0, 2001)
        steps = np.append(grid[grid <= last], last)
        assert reading.is_safe(target, steps).all()
        best = max(best, float(reading.optimistic_reward(reading.along(target, steps)).max()))
    return best


@pytest.mark.long
@sized(4, 40)
@pytest.mark.parametrize("mean_cost_bound", [None, 0.85])
@pytest.mark.parametrize("constraints", [1, 3])
@pytest.mark.parametrize("baseline", BASELINES)
def test_no_point_on_any_ray_is_better(
    baseline: str, constraints: int, mean_cost_bound: float | None, size: int
) -> None:
    for seed in range(size):
        problem = random_problem(seed, baseline, constraints)
        reading = reading_of(problem, mean_cost_bound=mean_cost_bound)
        decision = decided(LCLUCB, problem, mean_cost_bound=mean_cost_bound)
        value = float(reading.optimistic_reward(decision.action))
        assert value == pytest.approx(best_by_search(reading, problem.targets), rel=1e-9, abs=1e-9)
        if decision.action_index is not None:
            assert decision.optimistic_reward == pytest.approx(value, rel=1e-9)


@pytest.mark.long
@sized(4, 40)
@pytest.mark.parametrize(
    "settings", [{"radius": "logdet"}, {"radius": "paper"}, {"cost_confidence_scale": 2.0}, {"delta": 1e-6}]
)
@pytest.mark.parametrize("baseline", BASELINES)
def test_the_bounds_follow_the_settings(baseline: str, settings: dict[str, Any], size: int) -> None:
    for seed in range(size):
        problem = random_problem(seed, baseline, 3)
        reading, decision = reading_of(problem, **settings), decided(LCLUCB, problem, **settings)
        if decision.action_index is not None:
            target = problem.targets[decision.action_index]
            assert decision.optimistic_reward == pytest.approx(
                float(reading.optimistic_reward(decision.action)), rel=1e-9
            )
            np.testing.assert_allclose(
                decision.pessimistic_cost, reading.dearest_along(target, decision.step_size)[:, 0], rtol=1e-9
            )


def test_delta_may_be_given_to_every_signal_whole() -> None:
    problem = random_problem(3, "known", 3)
    shared, whole = decided(LCLUCB, problem), decided(LCLUCB, problem, split_delta=False)
    assert whole.step_size > shared.step_size
    assert whole.optimistic_reward == pytest.approx(
        float(reading_of(problem, split_delta=False).optimistic_reward(whole.action)), rel=1e-9
    )


def test_a_given_scale_replaces_the_theorems() -> None:
    problem = random_problem(3, "known", 3)
    reading, decision = reading_of(problem), decided(LCLUCB, problem, reward_confidence_scale=1.5)
    hoped = reading.optimistic_reward(decision.action, lift=0.5 * float(reading.radii[1:].max()))
    assert decision.optimistic_reward == pytest.approx(float(hoped), rel=1e-9)


# Within the limits


@pytest.mark.compiled
@settings(max_examples=150)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(BASELINES),
    st.sampled_from([1, 3]),
    st.integers(2, 5),
    st.sampled_from([1e-9, 1e-3, 1.0, 1e6]),
    st.sampled_from([LCLUCB, ROFUL]),
    st.booleans(),
)
def test_the_pessimistic_cost_is_within_its_limit_to_the_bit_at_every_size(
    seed: int, baseline: str, constraints: int, dimension: int, scale: float, kind: Any, clipped: bool
) -> None:
    problem = random_problem(seed, baseline, constraints, dimension, scale=scale)
    bound = max(0.85 * scale, 1.05 * float(np.max(problem.settings["threshold"])))
    decision = decided(kind, problem, mean_cost_bound=bound if clipped else None)
    assert decision.reason is not FallbackReason.NO_CERTIFIED_ACTION
    if decision.action_index is not None:
        assert decision.step_size > 0.0
        assert (decision.pessimistic_cost <= decision.thresholds).all()


def test_a_limit_from_below_is_a_limit_from_above_turned_around() -> None:
    problem = random_problem(3, "known", 1)
    safe, threshold = problem.settings["safe_action"], problem.settings["threshold"]
    turned = SafeAction(features=safe.features, reward=safe.reward, cost=-safe.cost)
    policy, state = problem.ready(LCLUCB, safe_action=turned, threshold=[AtLeast(float(-threshold[0]))])
    above, below = decided(LCLUCB, problem), policy.decide(state, problem.targets, RandomKey())
    np.testing.assert_array_equal(below.action, above.action)
    assert below.pessimistic_cost[0] == -above.pessimistic_cost[0] >= below.thresholds[0]
    assert policy.values(0.5, 0.2).tolist() == [0.5, -0.2]


def test_the_safe_action_costs_what_is_known_of_it() -> None:
    safe = SafeAction(features=[0.3, 0.4], reward=0.4, cost=[0.1, 0.3])
    policy = LCLUCB(safe_action=safe, threshold=[0.7, 0.4], noise=0.01)
    state = policy.start()
    for _ in range(2000):  # where the rewards are known to be poor, nothing is better than the safe action
        state = policy.learn_in_place(state, PlayedAction(np.array([0.4, -0.3])), np.array([-0.8, 0.0, 0.0]))
    decision = policy.decide(state, [[0.4, -0.3]], RandomKey())
    assert (decision.action_index, decision.step_size, decision.reason) == (None, 0.0, SAFE_IS_BETTER)
    assert decision.action.tolist() == [0.3, 0.4]
    assert decision.pessimistic_cost.tolist() == [0.1, 0.3]
    assert decision.optimistic_reward == 0.4


@pytest.mark.parametrize("cost", [0.0, 0.1])
def test_in_one_dimension_beside_a_known_safe_action_nothing_is_left_to_learn(cost: float) -> None:
    safe = SafeAction(features=[0.5], reward=0.1, cost=cost)
    policy = LCLUCB(safe_action=safe, threshold=0.3, noise=0.1, mean_cost_bound=2.0)
    decision = policy.decide(policy.start(), [[-1.0], [2.0]], RandomKey())
    assert decision.action_index == 1
    assert decision.step_size == pytest.approx(1.0 if cost == 0.0 else 2.0 / 3.0, rel=1e-12)
    assert decision.pessimistic_cost[0] == pytest.approx(cost * (decision.action[0] / 0.5), abs=1e-13)


# Clipping by what is known a priori


@pytest.mark.parametrize("baseline", BASELINES)
def test_a_bound_on_mean_costs_lengthens_steps(baseline: str) -> None:
    longer = 0
    for seed in SEEDS:
        problem = random_problem(seed, baseline, 3)
        ready = [problem.ready(LCLUCB, mean_cost_bound=bound) for bound in (0.85, None)]
        for ray in range(len(problem.targets)):
            only = RaySet(problem.targets).only([ray])
            clipped, bare = (policy.decide(state, only, RandomKey()) for policy, state in ready)
            if clipped.action_index == bare.action_index == ray:
                assert clipped.step_size >= bare.step_size
                longer += clipped.step_size > bare.step_size
    assert longer > 0


@pytest.mark.parametrize(("safe", "cost"), [([0.0, 0.0, 0.0], 0.0), ([0.6, 0.0, 0.0], 0.3), ([0.6, 0.0, 0.0], -0.3)])
def test_the_first_step_is_as_long_as_the_bound_on_mean_costs_allows(safe: list[float], cost: float) -> None:
    safe_action = SafeAction(features=safe, reward=0.0, cost=cost)
    policy = LCLUCB(safe_action=safe_action, threshold=0.5, noise=1.0, mean_cost_bound=1.0)
    decision = policy.decide(policy.start(), [[0.0, 1.0, 0.0]], RandomKey())
    assert decision.step_size == pytest.approx((0.5 - cost) / (1.0 - cost), rel=1e-12)
    assert decision.pessimistic_cost[0] == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize(("more", "ridge"), [({"ridge": 1.0}, 1.0), ({}, 2 * 1.0**2 / 0.8**2)])
def test_without_a_bound_the_first_step_is_as_long_as_the_radius_allows(more: Any, ridge: float) -> None:
    told: dict[str, Any] = {"threshold": 0.5, "noise": 1.0, "norm_bound": 0.8, "mean_cost_bound": None, **more}
    policy = LCLUCB(safe_action=SafeAction(features=[0.0, 0.0]), **told)
    radius = math.sqrt((2.0 * math.log(2.0 / 0.05) + ridge * 0.8**2) / ridge)  # of ‖x‖ = 1 where V = λI
    assert policy.decide(policy.start(), [[0.0, 1.0]], RandomKey()).step_size == pytest.approx(0.5 / radius, rel=1e-12)


@pytest.mark.parametrize("noise", [(0.1, 0.1, 0.1), (0.1, 0.2, 0.4), (0.4, 0.2, 0.1)])
def test_the_ridge_of_signals_with_several_noises_is_that_of_the_loudest(noise: Any) -> None:
    safe = SafeAction(features=[0.0, 0.0, 0.0])
    policy = LCLUCB(safe_action=safe, threshold=[0.5, 0.5], noise=noise, norm_bound=0.5)
    assert policy.model.ridge == pytest.approx(3 * max(noise) ** 2 / 0.5**2, rel=1e-12)


# Rounds


@pytest.mark.parametrize("baseline", UNKNOWN_COST)
def test_where_the_safe_cost_is_unknown_the_safe_action_is_played_until_it_is_certain(baseline: str) -> None:
    problem = random_problem(2, baseline)
    policy, state = problem._replace(actions=problem.actions[:0], values=problem.values[:0]).ready(LCLUCB)
    fallbacks = []
    for round_ in range(900):
        decision = policy.decide(state, problem.targets, RandomKey(0, 0, round_))
        fallbacks.append(decision.reason)
        if decision.message is None:
            break
        np.testing.assert_array_equal(decision.action, problem.settings["safe_action"].features)
        state = policy.learn(state, decision, Outcome(*problem.values[round_].tolist()))
    seen = problem._replace(actions=problem.actions[: round_ + 1], values=problem.values[: round_ + 1])
    before = problem._replace(actions=problem.actions[: round_ - 1], values=problem.values[: round_ - 1])
    assert 10 < round_ < 899
    assert all(reason is FallbackReason.SAFE_ACTION_COST_UNCERTAIN for reason in fallbacks[:-1])
    assert is_certified(reading_of(seen))
    assert not is_certified(reading_of(before))


def is_certified(reading: Reading) -> bool:
    """Whether (1 + α_c) β ‖x₀‖ ≤ τ − (ĉ₀ + α_c β ‖x₀‖), for every cost."""
    doubts = np.array([beta * float(fit.widths(reading.safe)) for fit, beta in reading.each_cost()])
    return bool(((1.0 + reading.scale) * doubts <= reading.slack).all())


# At the door


def test_the_papers_radius_refuses_longer_actions_than_it_holds_for() -> None:
    policy = LCLUCB(safe_action=SafeAction(features=np.zeros(3)), threshold=0.5, noise=0.1, radius="paper")
    with refused(InvalidActions, ErrorCode.BOUND_EXCEEDED):
        policy.decide(policy.start(), [[0.0, 0.0, 1.1]], RandomKey())
    with refused(InvalidActions, ErrorCode.BOUND_EXCEEDED):
        policy.check_logged_actions([[0.0, 0.0, 1.1]])


def test_the_papers_radius_refuses_a_longer_safe_action_than_it_holds_for() -> None:
    with refused(InvalidProblem, ErrorCode.BOUND_EXCEEDED):
        LCLUCB(safe_action=SafeAction(features=[3.0, 0.0, 0.0]), threshold=0.5, noise=0.1, radius="paper")


def test_steps_shown_while_the_safe_cost_is_uncertain_lie_on_the_ray() -> None:
    policy = LCLUCB(safe_action=SafeAction(features=[0.5, 0.0, 0.0]), threshold=0.3, noise=0.1, mean_cost_bound=None)
    decision = policy.decide(policy.start(), np.vstack([np.eye(3), -np.eye(3)]), RandomKey())
    assert decision.reason is FallbackReason.SAFE_ACTION_COST_UNCERTAIN
    assert all(0.0 <= row.weight <= 1.0 for row in decision._table().rows)
