"""KernelOPLB: with the linear kernel it is OPLB, and what it refuses."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.policies.kernel_reading import read_bounds, read_sums
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.agent.storage import compute_digest
from stagewise.engine.layout import CACHED, CAPACITY, FIRST_OFFSET
from stagewise.problem.errors import ErrorCode

SAFE = [0.4, -0.3, 0.2]
LIMITS, FAR_LIMITS = [0.6, 0.5, sw.AtLeast(-0.5)], [1.2, 1.1, sw.AtLeast(-1.2)]
NOISE = [0.1, 0.2, 0.1, 0.15]


def truths(m: int) -> np.ndarray:
    rows = np.random.default_rng(4).normal(size=(1 + m, 3))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def baseline(position: str, known: str, m: int) -> sw.SafeAction:
    if position == "origin":
        return sw.SafeAction(features=[0.0, 0.0, 0.0])
    reward, *costs = (truths(m) @ SAFE).tolist()
    told = {"known": {"reward": reward, "cost": costs}, "reward unknown": {"cost": costs}, "unknown": {}}
    return sw.SafeAction(features=SAFE, **told[known])


@pytest.mark.long
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("optimism", ["inflated", "directional"])
@pytest.mark.parametrize(
    ("position", "known"),
    [("origin", "known"), ("off origin", "known"), ("off origin", "reward unknown"), ("off origin", "unknown")],
)
def test_the_linear_kernel_is_oplb(position: str, known: str, optimism: str, m: int, fixed: bool) -> None:
    """For 120 rounds both make the same decisions with the same bounds."""
    settings = {
        "threshold": (FAR_LIMITS if known == "unknown" else LIMITS)[:m],
        "noise": NOISE[: 1 + m],
        "ridge": 0.5,
        "mean_cost_bound": 2.0,
        "optimism": optimism,
        "safe_action": baseline(position, known, m),
    }
    linear = sw.OPLB(**settings, norm_bound=1.0)
    kernel = sw.KernelOPLB(**settings, norm_bound=1.0, kernel=sw.LinearKernel())
    agents, random = [sw.Agent(policy, seed=3) for policy in (linear, kernel)], np.random.default_rng(6)
    listed, dared = random.normal(size=(8, 3)) / 2.0, 0
    for _ in range(120):
        actions = listed if fixed else random.normal(size=(8, 3)) / 2.0
        one, other = [agent.decide(actions) for agent in agents]
        assert one.action_index == other.action_index
        assert one.message == other.message
        assert other.optimistic_reward == pytest.approx(one.optimistic_reward, abs=1e-9, rel=1e-9)
        assert np.allclose(other.pessimistic_cost, one.pessimistic_cost, atol=1e-9)
        assert np.allclose(other.probabilities, one.probabilities, atol=1e-9)
        seen = truths(m) @ one.action + random.normal(size=1 + m) * settings["noise"]
        for agent, decision in zip(agents, (one, other), strict=True):
            agent.learn(decision, reward=seen[0], cost=seen[1:])
        dared += one.message is None
    assert dared > 20


def rbf(**changed: Any) -> sw.KernelOPLB:
    settings: dict[str, Any] = {
        "kernel": sw.RBF(lengthscale=0.5),
        "safe_action": sw.SafeAction(features=[0.0, 0.0], reward=0.1, cost=0.2),
        "threshold": 0.5,
        "noise": 0.1,
        "norm_bound": 1.0,
    }
    return sw.KernelOPLB(**{**settings, **changed})


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kernel": sw.RBF}, ErrorCode.WRONG_TYPE),
        ({"kernel": "rbf"}, ErrorCode.WRONG_TYPE),
        ({"norm_bound": 0.19}, ErrorCode.BOUND_EXCEEDED),
        ({"norm_bound": [1.0, 0.1]}, ErrorCode.BOUND_EXCEEDED),
        ({"norm_bound": 0.0}, ErrorCode.OUT_OF_RANGE),
        ({"norm_bound": float("nan")}, ErrorCode.NOT_FINITE),
        ({"norm_bound": [1.0, 1.0, 1.0]}, ErrorCode.WRONG_SHAPE),
        ({"noise": -1.0}, ErrorCode.OUT_OF_RANGE),
        ({"ridge": 0.0}, ErrorCode.OUT_OF_RANGE),
        ({"delta": 1.0}, ErrorCode.OUT_OF_RANGE),
        ({"novelty_threshold": 0.0}, ErrorCode.OUT_OF_RANGE),
        ({"novelty_threshold": 1.0}, ErrorCode.OUT_OF_RANGE),
        ({"max_points": 0}, ErrorCode.OUT_OF_RANGE),
        ({"max_points": 2.5}, ErrorCode.WRONG_TYPE),
        ({"max_points": True}, ErrorCode.WRONG_TYPE),
        ({"optimism": "blind"}, ErrorCode.INVALID_CHOICE),
        ({"cost_confidence_scale": 0.5}, ErrorCode.OUT_OF_RANGE),
        ({"safe_action": sw.SafeAction(arm=0)}, ErrorCode.SAFE_ACTION_INVALID),
        ({"safe_action": None}, ErrorCode.WRONG_TYPE),
        ({"safe_action": sw.SafeAction(features=[0.0], reward=0.0, cost=0.6)}, ErrorCode.SAFE_ACTION_OVER_LIMIT),
        (
            {"kernel": sw.LinearKernel(), "safe_action": sw.SafeAction(features=[0.0], cost=0.1)},
            ErrorCode.SAFE_ACTION_INVALID,
        ),
        (
            {"kernel": sw.LinearKernel(), "safe_action": sw.SafeAction(features=[0.0], reward=0.1)},
            ErrorCode.SAFE_ACTION_INVALID,
        ),
    ],
    ids=str,
)
def test_settings_that_promise_nothing_are_refused(changed: dict[str, Any], words: str) -> None:
    with refused(sw.InvalidProblem, words):
        rbf(**changed)


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        (sw.RaySet([[1.0, 0.0]]), ErrorCode.UNSUPPORTED_ACTIONS),
        (sw.ArmSet(3), ErrorCode.UNSUPPORTED_ACTIONS),
        ([[1.0, 0.0, 0.0]], ErrorCode.DIMENSION_MISMATCH),
        ([[float("nan"), 0.0]], ErrorCode.NOT_FINITE),
        ([[float("inf"), 0.0]], ErrorCode.NOT_FINITE),
        ([], ErrorCode.WRONG_SHAPE),
        ([["a", "b"]], ErrorCode.WRONG_TYPE),
    ],
    ids=str,
)
def test_actions_it_cannot_choose_from_are_refused(actions: Any, words: str) -> None:
    policy = rbf()
    with refused(sw.InvalidActions, words):
        policy.decide(policy.start(), actions)


@pytest.mark.parametrize(("reward", "cost"), [(float("nan"), 0.1), (0.1, None), (0.1, [0.1, 0.2]), ("much", 0.1)])
def test_outcomes_that_are_none_change_nothing(reward: Any, cost: Any) -> None:
    agent = sw.Agent(rbf())
    decision = agent.decide([[0.2, 0.2]])
    before = agent.state.memory.tobytes()
    with pytest.raises(sw.InvalidOutcome):
        agent.learn(decision, reward=reward, cost=cost)
    assert agent.state.memory.tobytes() == before
    assert agent.pending_count == 1


def test_the_zero_vector_may_cost_something_unless_the_kernel_is_linear() -> None:
    policy = rbf()
    seen = read_bounds(policy, policy.start(), np.zeros((1, 2)))
    assert np.array_equal(seen.estimates[:, 0], [0.1, 0.2])
    assert np.array_equal(seen.start, [0.1, 0.2])


def test_duplicates_and_the_safe_action_in_the_list_share_their_bounds() -> None:
    policy, random = rbf(), np.random.default_rng(2)
    listed = np.array([[0.3, 0.1], [0.3, 0.1], [0.0, 0.0], [-0.0, 0.0]])
    agent = sw.Agent(policy)
    for _ in range(30):
        decision = agent.decide(listed)
        agent.learn(decision, reward=random.normal() / 10, cost=random.normal() / 10)
    seen = read_bounds(policy, agent.state, listed)
    assert np.array_equal(seen.estimates[:, 0], seen.estimates[:, 1])
    assert np.array_equal(seen.halves[:, 2:], np.zeros((2, 2)))
    assert read_sums(policy, agent.state)[0] == 1, "one point was seen, however often"


def test_memory_does_not_grow_where_points_repeat_and_stops_at_the_capacity() -> None:
    random = np.random.default_rng(2)
    agent, sparse = sw.Agent(rbf()), sw.Agent(rbf(max_points=5))
    listed = random.uniform(size=(6, 2))
    sizes = []
    for _ in range(60):
        for one, actions in ((agent, listed), (sparse, random.uniform(size=(6, 2)))):
            decision = one.decide(actions)
            one.learn(decision, reward=0.1, cost=0.1)
        sizes.append(agent.state.memory.size)
        assert read_sums(sparse.policy, sparse.state)[0] <= sparse.state.memory[CAPACITY] <= 5
    assert len(set(sizes[15:])) == 1
    used, neglected = read_sums(sparse.policy, sparse.state)
    assert used == 5
    assert neglected > 0.0, "what is neglected is kept account of"


@pytest.mark.parametrize(
    ("part", "position", "value"),
    [
        *(("head", CACHED, value) for value in (-2.0, 0.5, 3.0, 1e9, math.nan)),
        *(("head", CAPACITY, value) for value in (0.0, 15.0, 2000.0, math.nan)),
        ("head", FIRST_OFFSET, 4.0),
        *(("sums", 0, value) for value in (99.0, -1.0, 1.5, math.nan)),
        *(("sums", 1, value) for value in (-1.0, math.nan)),
    ],
)
def test_a_memory_that_cannot_be_its_own_is_refused(part: str, position: int, value: float) -> None:
    agent, random = sw.Agent(rbf()), np.random.default_rng(1)
    for _ in range(12):
        agent.learn(agent.decide(random.uniform(size=(4, 2))), reward=0.1, cost=0.1)
    state = sw.PolicyState(agent.state.memory.copy())
    assert agent.policy.fits(state.memory)
    assert not agent.policy.fits(state.memory[:-1])
    told = state.memory if part == "head" else read_sums(agent.policy, state)
    told[position] = value
    assert not agent.policy.fits(state.memory)


def test_a_file_with_another_memory_is_refused(tmp_path: Path) -> None:
    agent = sw.Agent(rbf())
    agent.learn(agent.decide([[0.2, 0.2]]), reward=0.1, cost=0.1)
    agent.save(tmp_path / "agent.json")
    content = json.loads((tmp_path / "agent.json").read_text())
    content["memory"].pop()
    content["digest"] = compute_digest(content)
    (tmp_path / "other.json").write_text(json.dumps(content))
    with refused(sw.InvalidFile, ErrorCode.STATE_MISMATCH):
        sw.Agent.load(tmp_path / "other.json")
