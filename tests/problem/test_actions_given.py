"""Action sets at a policy's door: what does not fit is refused and changes nothing, odd but honest sets do no harm."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.problem.refusal import refused

from stagewise import (
    LCLUCB,
    OPB,
    OPLB,
    ROFUL,
    UCB,
    Agent,
    ArmSet,
    FiniteSet,
    InvalidActions,
    LinUCB,
    RandomKey,
    RaySet,
    SafeAction,
    SafeLTS,
    StagewiseError,
)
from stagewise.problem.errors import ErrorCode

AT_ORIGIN = {"safe_action": SafeAction(features=[0.0, 0.0]), "threshold": 0.5, "noise": 0.1}
ON_RAYS = {"LCLUCB": LCLUCB, "ROFUL": ROFUL, "SafeLTS": SafeLTS}
LINEAR = {**ON_RAYS, "OPLB": OPLB}
ON_ARMS: dict[str, Callable[[], Any]] = {
    "OPB": lambda: OPB(arms=3, safe_action=SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2),
    "UCB": lambda: UCB(arms=3),
}


def assert_refuses(agent: Agent, actions: Any, *parts: object) -> None:
    """Assert that the actions are refused, and that the agent is what it was."""
    before = agent.state.memory.tobytes(), agent.round, agent.pending_count
    with refused(InvalidActions, *parts):
        agent.decide(actions)
    assert (agent.state.memory.tobytes(), agent.round, agent.pending_count) == before


def experienced(policy: Any, actions: Any) -> Agent:
    """Return an agent that has learned from one decision and waits for another's outcome."""
    agent = Agent(policy)
    agent.learn(agent.decide(actions), reward=0.5, cost=[0.1] * len(policy.thresholds.names))
    agent.decide(actions)
    return agent


@pytest.mark.parametrize("kind", LINEAR.values(), ids=LINEAR)
@pytest.mark.parametrize(
    ("actions", "parts"),
    [
        ([[0.1, math.nan]], [ErrorCode.NOT_FINITE]),
        ([[0.1, math.inf]], [ErrorCode.NOT_FINITE]),
        ([["a", "b"]], [ErrorCode.WRONG_TYPE]),
        ([[True, True]], [ErrorCode.WRONG_TYPE]),
        ([[0.1], [0.1, 0.2]], [ErrorCode.WRONG_SHAPE]),
        ([0.1, 0.2], [ErrorCode.WRONG_SHAPE]),
        ([], [ErrorCode.WRONG_SHAPE]),
        (None, [ErrorCode.WRONG_TYPE]),
        (np.eye(3), [ErrorCode.DIMENSION_MISMATCH]),
        (np.ones((1, 1)), [ErrorCode.DIMENSION_MISMATCH]),
        (ArmSet(2), [ErrorCode.UNSUPPORTED_ACTIONS]),
    ],
    ids=["nan", "infinity", "text", "flags", "ragged", "vector", "empty", "None", "wide", "narrow", "arms"],
)
def test_linear_policies_refuse_what_does_not_fit(kind: Any, actions: Any, parts: list[object]) -> None:
    assert_refuses(experienced(kind(**AT_ORIGIN), np.eye(2)), actions, *parts)


@pytest.mark.parametrize("kind", ON_RAYS.values(), ids=ON_RAYS)
def test_policies_on_rays_refuse_a_finite_set_and_say_who_takes_it(kind: Any) -> None:
    assert_refuses(experienced(kind(**AT_ORIGIN), np.eye(2)), FiniteSet(np.eye(2)), ErrorCode.UNSUPPORTED_ACTIONS)


@pytest.mark.parametrize("make", ON_ARMS.values(), ids=ON_ARMS)
@pytest.mark.parametrize(
    ("actions", "parts"),
    [
        (ArmSet(2), [ErrorCode.UNSUPPORTED_ACTIONS]),
        (ArmSet(4).only([0]), [ErrorCode.UNSUPPORTED_ACTIONS]),
        (RaySet(np.eye(3)), [ErrorCode.UNSUPPORTED_ACTIONS]),
        (FiniteSet(np.eye(3)), [ErrorCode.UNSUPPORTED_ACTIONS]),
        (np.eye(3), [ErrorCode.UNSUPPORTED_ACTIONS]),
        (3, [ErrorCode.UNSUPPORTED_ACTIONS]),
        ("all", [ErrorCode.UNSUPPORTED_ACTIONS]),
    ],
    ids=["fewer", "more", "rays", "finite", "table", "number", "text"],
)
def test_policies_on_arms_refuse_what_does_not_fit(make: Callable[[], Any], actions: Any, parts: list[object]) -> None:
    assert_refuses(experienced(make(), ArmSet(3)), actions, *parts)


@pytest.mark.parametrize("actions", [ArmSet(2), [[math.nan, 1.0]], [[True, True]], [1.0, 2.0]], ids=repr)
def test_linucb_refuses_what_has_no_features(actions: Any) -> None:
    assert_refuses(experienced(LinUCB(noise=0.1), np.eye(2)), actions)


@pytest.mark.parametrize("features", [1, 3, 4, 5])
def test_linucb_refuses_another_dimension_than_it_has_learned(features: int) -> None:
    agent = experienced(LinUCB(noise=0.1), np.eye(2))
    assert_refuses(agent, np.eye(features), ErrorCode.DIMENSION_MISMATCH, features, 2)


def test_linucb_plays_what_is_listed_or_nothing() -> None:
    """It has no safe action to fall back on: where its bounds overflow it must refuse, not play the zero vector."""
    try:
        decision = Agent(LinUCB(noise=0.1)).decide([[1e200, 0.0]])
    except InvalidActions:
        return
    assert np.array_equal(decision.action, [1e200, 0.0])


def test_linucb_speaks_of_no_safe_action_when_the_dimension_differs() -> None:
    agent = experienced(LinUCB(noise=0.1), np.eye(2))
    with pytest.raises(InvalidActions) as caught:
        agent.decide(np.eye(4))
    assert "safe action" not in str(caught.value)


@pytest.mark.parametrize(("first", "second"), [(2, 3), (3, 2), (1, 2)])
def test_linucb_never_mixes_dimensions_in_one_memory(first: int, second: int) -> None:
    """Two decisions of different dimension are open at once: one of the calls must refuse, and nothing be mixed up."""
    agent, alone = Agent(LinUCB(noise=0.1)), Agent(LinUCB(noise=0.1))
    alone.learn(alone.decide(np.eye(first)), reward=0.5)
    decision = agent.decide(np.eye(first))

    def mix_up() -> None:
        other = agent.decide(np.eye(second))
        agent.learn(decision, reward=0.5)
        agent.learn(other, reward=0.5)

    with pytest.raises(StagewiseError):
        mix_up()
    if agent.pending_count:
        agent.learn(decision, reward=0.5)
    assert agent.state.memory.tobytes() == alone.state.memory.tobytes()


@pytest.mark.parametrize("kind", LINEAR.values(), ids=LINEAR)
def test_the_papers_radius_refuses_actions_beyond_its_bound(kind: Any) -> None:
    policy = kind(**AT_ORIGIN, radius="paper", action_bound=2.0, mean_cost_bound=None)
    agent = experienced(policy, np.eye(2))
    assert_refuses(agent, [[0.1, 0.1], [3.0, 0.0]], ErrorCode.BOUND_EXCEEDED)
    agent.decide([[2.0, 0.0]])


def test_linucb_refuses_actions_beyond_the_bound_of_the_papers_radius() -> None:
    agent = experienced(LinUCB(noise=0.1, radius="paper"), np.eye(2))
    assert_refuses(agent, [[3.0, 0.0]], ErrorCode.BOUND_EXCEEDED)


@pytest.mark.parametrize("radius", ["joint", "logdet"])
def test_other_radii_take_actions_of_any_length(radius: str) -> None:
    assert Agent(LCLUCB(**AT_ORIGIN, radius=radius, mean_cost_bound=1.0)).decide([[30.0, 0.0]]).action_index == 0


def rounds(policy: Any, table: Any, count: int = 60) -> list[Any]:
    """Return the decisions of an agent that meets the same table again and again."""
    agent, decisions = Agent(policy, seed=3), []
    random = np.random.default_rng(0)
    for _ in range(count):
        decision = agent.decide(table)
        noise = 0.1 * random.normal(size=2)
        agent.learn(decision, reward=decision.action[0] + noise[0], cost=0.4 * decision.action[1] + noise[1])
        decisions.append(decision)
    return decisions


@pytest.mark.parametrize("kind", LINEAR.values(), ids=LINEAR)
@pytest.mark.parametrize("safe", [[0.0, 0.0], [0.3, 0.2]], ids=["origin", "off origin"])
@pytest.mark.parametrize("known", [True, False])
def test_odd_targets_do_no_harm(kind: Any, safe: list[float], known: bool) -> None:
    """Duplicates, the safe action itself, the zero vector, and two that differ in the last bit."""
    reward, cost = (safe[0], 0.4 * safe[1]) if known else (None, None)
    policy = kind(safe_action=SafeAction(features=safe, reward=reward, cost=cost), threshold=0.5, noise=0.1, ridge=0.1)
    table = np.array([safe, [0.0, 0.0], [0.5, 0.7], [0.5, 0.7], [0.5, np.nextafter(0.7, 1.0)], safe])
    for decision in rounds(policy, table):
        assert np.isfinite(decision.action).all()
        assert np.isfinite(decision.optimistic_reward)
        assert decision.message or np.all(decision.pessimistic_cost <= decision.thresholds)


@pytest.mark.parametrize("kind", [LCLUCB, ROFUL])
def test_duplicates_leave_the_decisions_as_they_were(kind: Any) -> None:
    table = np.array([[0.9, 0.1], [0.2, 0.8], [-0.5, 0.5]])
    alone, doubled = rounds(kind(**AT_ORIGIN), table), rounds(kind(**AT_ORIGIN), np.vstack([table, table]))
    for one, other in zip(alone, doubled, strict=True):
        assert (one.action_index, one.step_size, one.optimistic_reward) == (
            other.action_index,
            other.step_size,
            other.optimistic_reward,
        )


@pytest.mark.parametrize("kind", LINEAR.values(), ids=LINEAR)
def test_only_zero_vectors_are_played_without_fear(kind: Any) -> None:
    decision = Agent(kind(**AT_ORIGIN)).decide(np.zeros((3, 2)))
    assert np.array_equal(decision.action, [0.0, 0.0])
    assert np.all(decision.pessimistic_cost == 0.0)


@pytest.mark.long
@pytest.mark.parametrize("kind", LINEAR.values(), ids=LINEAR)
@pytest.mark.parametrize("known", [True, False])
def test_any_finite_targets_are_met_with_a_safe_and_finite_decision(kind: Any, known: bool) -> None:
    safe = SafeAction(features=[0.3, 0.2], reward=0.1, cost=0.1) if known else SafeAction(features=[0.3, 0.2])
    policy = kind(safe_action=safe, threshold=0.5, noise=0.1, ridge=0.1, mean_cost_bound=1.0)
    learner = Agent(policy)
    learner.learn_log([[0.3, 0.2], [0.5, -0.1]] * 200, [0.1, 0.2] * 200, [0.1, 0.3] * 200)
    state = learner.state
    table = st.lists(st.lists(st.floats(-1e99, 1e99), min_size=2, max_size=2), min_size=1, max_size=4)

    @settings(max_examples=200)
    @given(table, st.integers(0, 1000))
    def check(targets: list[list[float]], seed: int) -> None:
        try:
            decision = policy.decide(state, np.array(targets), RandomKey(seed, 0, 0))
        except InvalidActions:
            assert np.abs(targets).max() > 1e5
            return
        assert np.isfinite(decision.action).all()
        assert decision.message or np.all(decision.pessimistic_cost <= decision.thresholds)
        if decision.message:
            assert np.array_equal(decision.action, [0.3, 0.2])

    check()


def test_a_table_is_looked_at_and_not_kept() -> None:
    """The agent's decision, its table and what it learns stay as they were when the caller reuses the array."""
    table, agent, other = np.eye(2), Agent(LCLUCB(**AT_ORIGIN)), Agent(LCLUCB(**AT_ORIGIN))
    decision, same = agent.decide(table), other.decide(np.eye(2))
    text = decision.explain()
    table[:] = 9.0
    assert decision.explain() == text
    agent.learn(decision, reward=0.5, cost=0.1)
    other.learn(same, reward=0.5, cost=0.1)
    assert agent.state.memory.tobytes() == other.state.memory.tobytes()


def test_more_candidates_than_are_shown_are_counted() -> None:
    text = Agent(LCLUCB(**AT_ORIGIN)).decide(0.1 * np.random.default_rng(0).normal(size=(12, 2))).explain()
    assert "... and 7 more" in text
