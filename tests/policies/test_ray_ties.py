"""Rays that are as good as each other, that lead nowhere, or that the safe action beats."""

from itertools import islice
from typing import Any

import numpy as np
import pytest
from tests.policies.reading import BASELINES, Problem, decided, random_problem, reading_of

from stagewise import LCLUCB, ROFUL, RandomKey, RaySet, SafeAction
from stagewise.policies.policy import PlayedAction
from stagewise.records.decision import Decision
from stagewise.records.reason import FallbackReason

SAFE_IS_BETTER = FallbackReason.NO_BETTER_ACTION


@pytest.mark.parametrize("kind", [LCLUCB, ROFUL])
@pytest.mark.parametrize("baseline", ["origin", "known"])
def test_in_the_first_round_equal_rays_tie_and_the_first_is_played(baseline: str, kind: Any) -> None:
    problem = random_problem(0, baseline)._replace(actions=np.empty((0, 4)), values=np.empty((0, 2)))
    policy, state = problem.ready(kind, mean_cost_bound=1.0)
    random = np.random.default_rng(5)
    safe = problem.settings["safe_action"].features
    basis = np.linalg.svd(np.vstack([safe, np.eye(4)]))[2] if safe.any() else np.eye(4)
    for _ in range(20):
        ring = random.normal(size=(50, 3)) @ basis[1:]
        ring *= 0.7 / np.linalg.norm(ring, axis=1, keepdims=True)
        assert policy.decide(state, 0.1 * safe + ring, RandomKey()).action_index == 0


def test_in_the_first_round_unclipped_rays_of_any_length_tie() -> None:
    """Each is cut where β‖x‖ meets the limit, so that all hope for the same: without a rule rounding decides."""
    policy = LCLUCB(safe_action=SafeAction(features=np.zeros(4)), threshold=0.1, noise=1.0, mean_cost_bound=None)
    random = np.random.default_rng(6)
    for _ in range(20):
        targets = random.normal(size=(50, 4))
        assert policy.decide(policy.start(), targets, RandomKey()).action_index == 0


def better_than_safe(kind: Any, baseline: str, count: int) -> list[tuple[Problem, Decision]]:
    """Return problems with data from their rays, in which a ray is played, with the decision."""
    tried = (random_problem(seed, baseline, 3) for seed in range(60))
    played = ((problem, decided(kind, problem)) for problem in tried if len(np.unique(problem.actions, axis=0)) > 30)
    return list(
        islice(((problem, decision) for problem, decision in played if decision.action_index is not None), count)
    )


@pytest.mark.long
@pytest.mark.parametrize("kind", [LCLUCB, ROFUL])
@pytest.mark.parametrize("baseline", BASELINES)
def test_the_order_of_rays_does_not_matter_and_the_first_of_equal_ones_is_played(baseline: str, kind: Any) -> None:
    random = np.random.default_rng(7)
    cases = better_than_safe(kind, baseline, 5)
    assert cases
    for problem, decision in cases:
        order = random.permutation(np.repeat(np.arange(len(problem.targets)), 2))
        shuffled = decided(kind, problem, problem.targets[order])
        assert shuffled.action_index == int(np.argmax(order == decision.action_index))
        np.testing.assert_array_equal(shuffled.action, decision.action)
        assert shuffled.optimistic_reward == decision.optimistic_reward


@pytest.mark.long
@pytest.mark.parametrize("kind", [LCLUCB, ROFUL])
@pytest.mark.parametrize("baseline", BASELINES)
def test_rays_that_lead_nowhere_do_no_harm(baseline: str, kind: Any) -> None:
    cases = better_than_safe(kind, baseline, 5)
    assert cases
    for problem, decision in cases:
        safe = problem.settings["safe_action"].features
        more = decided(kind, problem, np.vstack([safe, problem.targets, safe]))
        assert more.action_index == decision.action_index + 1
        np.testing.assert_array_equal(more.action, decision.action)


@pytest.mark.parametrize("kind", [LCLUCB, ROFUL])
@pytest.mark.parametrize("baseline", ["known", "cost unknown", "unknown"])
def test_the_safe_action_beside_the_list_is_played_only_where_it_is_strictly_better(baseline: str, kind: Any) -> None:
    problem = random_problem(2, baseline)
    safe = problem.settings["safe_action"].features
    decision = decided(kind, problem, safe[np.newaxis])
    assert decision.action_index == 0
    assert decision.message is None
    np.testing.assert_allclose(decision.action, safe, rtol=1e-15)
    poor = -safe / np.linalg.norm(safe)  # the safe reward is positive, so this direction's is negative
    policy, state = problem.ready(kind, check_assumptions=False)  # the data are made up
    for _ in range(300):
        state = policy.learn_in_place(state, PlayedAction(poor), np.array([-0.9, 0.0]))
    assert policy.decide(state, poor[np.newaxis], RandomKey()).reason is SAFE_IS_BETTER
    assert policy.decide(state, poor[np.newaxis], RandomKey()).action_index is None


def test_where_the_safe_action_is_preferred_its_shown_bounds_say_so() -> None:
    problem = random_problem(2, "unknown")
    safe = problem.settings["safe_action"].features
    poor = -safe / np.linalg.norm(safe)
    seen = problem._replace(
        actions=np.vstack([problem.actions, np.tile(poor, (300, 1))]),
        values=np.vstack([problem.values, np.tile([-0.05, 0.0], (300, 1))]),
    )
    decision = decided(LCLUCB, seen, poor[np.newaxis])
    ray, beside = decision._table().rows
    assert decision.reason is SAFE_IS_BETTER
    assert beside.optimistic_reward > ray.optimistic_reward
    assert decision.optimistic_reward == pytest.approx(float(reading_of(seen).optimistic_reward(safe)), rel=1e-9)
    assert beside.pessimistic_cost == tuple(decision.pessimistic_cost)


@pytest.mark.parametrize("kind", [LCLUCB, ROFUL])
@pytest.mark.parametrize("baseline", BASELINES)
def test_a_mask_is_as_good_as_a_shorter_list(baseline: str, kind: Any) -> None:
    for problem, decision in better_than_safe(kind, baseline, 5):
        rest = [ray for ray in range(len(problem.targets)) if ray != decision.action_index]
        masked = decided(kind, problem, RaySet(problem.targets).only(rest))
        shorter = decided(kind, problem, problem.targets[rest])
        assert masked.action_index == (rest[shorter.action_index] if shorter.action_index is not None else None)
        assert (masked.step_size, masked.optimistic_reward, masked.message) == (
            shorter.step_size,
            shorter.optimistic_reward,
            shorter.message,
        )
        flags = np.arange(len(problem.targets)) != decision.action_index
        assert decided(kind, problem, RaySet(problem.targets).only(flags)).action_index == masked.action_index
