"""Candidates that come back are followed: the same decisions to rounding, for a fraction of the work."""

from typing import Any

import numpy as np
import pytest
from tests.policies.reading import BASELINES, random_problem

import stagewise as sw
from stagewise.engine.layout import CACHE_DISABLED, CACHED
from stagewise.policies.policy import PolicyState

KINDS = [sw.LCLUCB, sw.ROFUL, sw.OPLB]


def wandering(policy: Any) -> PolicyState:
    """Return a memory that has met other candidates already, and will follow none."""
    state = policy.start()
    for targets in (np.eye(policy.dimension), 2.0 * np.eye(policy.dimension)):
        decision = policy.decide(state, targets)
        state = policy.cache_offered(state, decision)
    assert state.memory[CACHED] == CACHE_DISABLED
    return state


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("constraints", [1, 3])
def test_a_followed_ray_has_the_bounds_of_a_ray_looked_at(kind: Any, baseline: str, constraints: int) -> None:
    problem = random_problem(3, baseline, constraints=constraints, dimension=4, rays=9)
    policy, _ = problem.ready(kind)
    followed, free, rng = policy.start(), wandering(policy), np.random.default_rng(0)
    for t in range(40):
        draw = sw.RandomKey(1, 0, t)
        one, other = policy.decide(followed, problem.targets, draw), policy.decide(free, problem.targets, draw)
        assert one.action_index == other.action_index
        assert one.optimistic_reward == pytest.approx(other.optimistic_reward, rel=1e-9, abs=1e-11)
        np.testing.assert_allclose(one.pessimistic_cost, other.pessimistic_cost, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(one.action, other.action, rtol=1e-9, atol=1e-11)
        outcome = sw.Outcome(rng.normal() * 0.1, rng.normal(size=constraints) * 0.1)
        followed, free = policy.learn(followed, one, outcome), policy.learn(free, other, outcome)
    assert followed.memory[CACHED] == len(problem.targets)
    assert free.memory[CACHED] == CACHE_DISABLED


def test_other_candidates_end_the_following_and_change_nothing_else() -> None:
    problem = random_problem(4, BASELINES[0], constraints=1, dimension=3, rays=5)
    policy, _ = problem.ready(sw.LCLUCB)
    agent = sw.Agent(policy)
    for _ in range(20):
        agent.learn(agent.decide(problem.targets), reward=0.1, cost=0.0)
    assert agent.state.memory[CACHED] == 5.0
    before = agent.state
    others = problem.targets[::-1].copy()
    decision = agent.decide(others)
    assert agent.state.memory[CACHED] == CACHE_DISABLED
    same = policy.decide(before, others, sw.RandomKey(0, 0, 20))
    assert decision.optimistic_reward == same.optimistic_reward
    assert np.array_equal(decision.action, same.action)


def test_a_changed_array_is_noticed() -> None:
    """A table of numbers is borrowed for one decision; its owner may write into it before the next."""
    targets = np.array([[1.0, 0.0], [0.0, 1.0]])
    policy = sw.LCLUCB(safe_action=sw.SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
    agent = sw.Agent(policy)
    agent.learn(agent.decide(targets), reward=1.0, cost=0.0)
    targets[0] = [0.0, 0.5]
    decision, fresh = agent.decide(targets), policy.decide(PolicyState(agent.state.memory), targets.copy())
    assert decision.optimistic_reward == fresh.optimistic_reward
    assert agent.state.memory[CACHED] == CACHE_DISABLED


@pytest.mark.parametrize("kind", [*KINDS, sw.SafeLTS, sw.SafePosteriorSampling, sw.LinUCB])
def test_a_followed_memory_is_saved_and_loaded_to_the_bit(kind: Any, tmp_path: Any) -> None:
    safe = {} if kind is sw.LinUCB else {"safe_action": sw.SafeAction(features=np.zeros(3)), "threshold": 0.5}
    agent, targets = sw.Agent(kind(noise=0.1, **safe), seed=3), np.eye(3)
    for t in range(15):
        decision = agent.decide(targets)
        if t % 4:
            agent.learn(decision, reward=0.3, cost=0.2)
    agent.save(tmp_path / "agent.json")
    loaded = sw.Agent.load(tmp_path / "agent.json")
    assert loaded.pending_count == agent.pending_count == 4
    for one in (agent, loaded):
        one.learn(4, reward=0.2, cost=0.1)
    assert loaded.state.memory.tobytes() == agent.state.memory.tobytes()
    assert np.array_equal(loaded.decide(targets).action, agent.decide(targets).action)
