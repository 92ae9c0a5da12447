"""Learning from a log: the same as learning its rows by hand, or nothing at all."""

import contextlib
import math
from typing import Any

import numpy as np
import pytest
from tests.policies.refusals import refused_with
from tests.problem.refusal import refused

from stagewise import (
    CAPS,
    LCLUCB,
    OPB,
    OPLB,
    ROFUL,
    UCB,
    Agent,
    AlwaysSafe,
    AtLeast,
    Decision,
    InvalidActions,
    InvalidOutcome,
    LinUCB,
    Outcome,
    SafeAction,
    SafeLTS,
    StagewiseError,
)
from stagewise.problem.errors import ErrorCode

NAN = math.nan
NAMED = {"spend": 0.5, "clicks": AtLeast(0.05)}
OFF_ORIGIN = SafeAction(features=[0.3, 0.4], reward=0.1, cost=[0.1, 0.2])

LINEAR = {
    kind.__name__: kind(safe_action=OFF_ORIGIN, threshold=NAMED, noise=0.1)
    for kind in (LCLUCB, ROFUL, SafeLTS, OPLB, CAPS)
}
HALF_KNOWN = LCLUCB(safe_action=SafeAction(features=[0.3, 0.4], reward=0.1), threshold=NAMED, noise=0.1)
PULLS = OPB(arms=3, safe_action=SafeAction(arm=0, reward=0.1, cost=[0.1, 0.2]), threshold=NAMED)
POLICIES = {**LINEAR, "half known": HALF_KNOWN, "OPB": PULLS, "LinUCB": LinUCB(noise=0.1), "UCB": UCB(arms=3)}

RANDOM = np.random.default_rng(11)
FEATURES, PULLED = RANDOM.uniform(-0.5, 0.5, (20, 2)), RANDOM.integers(0, 3, 20)
REWARDS, COSTS = RANDOM.uniform(size=20), RANDOM.uniform(size=(20, 2))


def actions_of(policy: Any) -> Any:
    return PULLED if isinstance(policy, OPB | UCB) else FEATURES


def by_hand(policy: Any) -> bytes:
    """Return the memory after every row was learned as a decision's outcome."""
    state = policy.start()
    for action, reward, cost in zip(actions_of(policy), REWARDS, COSTS, strict=True):
        decision = Decision(action, 0, 1.0, None, 0.0, np.empty(0), np.empty(0), None, 0)
        state = policy.learn(state, decision, Outcome(float(reward), cost))
    return state.memory.tobytes()


FORMS = {
    "table": COSTS,
    "lists": COSTS.tolist(),
    "columns": {"clicks": COSTS[:, 1], "spend": COSTS[:, 0].tolist()},
    "mappings": [{"spend": spend, "clicks": clicks} for spend, clicks in COSTS],
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("costs", FORMS.values(), ids=FORMS)
def test_a_log_is_learned_row_by_row(policy: Any, costs: Any) -> None:
    agent = Agent(policy)
    agent.learn_log(actions_of(policy), REWARDS, costs)
    assert agent.state.memory.tobytes() == by_hand(policy)
    assert (agent.round, agent.pending_count) == (0, 0)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_a_log_may_come_as_lists_and_in_parts(policy: Any) -> None:
    agent = Agent(policy)
    actions = actions_of(policy).tolist()
    agent.learn_log(actions[:7], REWARDS[:7].tolist(), COSTS[:7])
    agent.learn_log(actions[7:], REWARDS[7:].tolist(), COSTS[7:])
    assert agent.state.memory.tobytes() == by_hand(policy)


def test_one_cost_may_be_a_flat_list() -> None:
    policy = LCLUCB(safe_action=SafeAction(features=[0.0, 0.0]), threshold=0.5, noise=0.1)
    flat, column = Agent(policy), Agent(policy)
    flat.learn_log(FEATURES, REWARDS, COSTS[:, 0])
    column.learn_log(FEATURES, REWARDS, COSTS[:, :1])
    assert flat.state.memory.tobytes() == column.state.memory.tobytes()


def test_a_log_does_not_disturb_open_decisions() -> None:
    agent = Agent(LINEAR["LCLUCB"])
    decision = agent.decide(np.eye(2))
    agent.learn_log(FEATURES, REWARDS, COSTS)
    assert (agent.round, agent.pending_count) == (1, 1)
    agent.learn(decision, reward=0.5, cost=[0.1, 0.2])
    assert agent.pending_count == 0


def with_entry(table: Any, position: Any, value: Any) -> Any:
    changed = np.array(table, dtype=object if not isinstance(value, float) else float)
    changed[position] = value
    return changed


BAD_LOGS = {
    "fewer rewards": (FEATURES, REWARDS[:19], COSTS, [ErrorCode.WRONG_SHAPE]),
    "more rewards": (FEATURES[:19], REWARDS, COSTS[:19], [ErrorCode.WRONG_SHAPE]),
    "a column of rewards": (FEATURES, REWARDS[:, np.newaxis], COSTS, [ErrorCode.WRONG_SHAPE]),
    "one reward": (FEATURES, 0.5, COSTS, [ErrorCode.WRONG_SHAPE]),
    "no rewards": (FEATURES, None, COSTS, [ErrorCode.WRONG_TYPE]),
    "a late nan for a reward": (FEATURES, with_entry(REWARDS, 19, NAN), COSTS, [ErrorCode.NOT_FINITE]),
    "text for rewards": (FEATURES, ["a"] * 20, COSTS, [ErrorCode.WRONG_TYPE]),
    "ragged rewards": (FEATURES, [[0.1], [0.1, 0.2]], COSTS, [ErrorCode.WRONG_SHAPE]),
    "fewer costs": (FEATURES, REWARDS, COSTS[:19], [ErrorCode.WRONG_SHAPE]),
    "no costs": (FEATURES, REWARDS, None, [ErrorCode.INVALID_ROW]),
    "one cost for all": (FEATURES, REWARDS, 0.1, [ErrorCode.WRONG_TYPE]),
    "text for costs": (FEATURES, REWARDS, "x" * 20, [ErrorCode.WRONG_TYPE]),
    "a flat list of costs": (FEATURES, REWARDS, COSTS[:, 0], [ErrorCode.INVALID_ROW]),
    "costs too wide": (FEATURES, REWARDS, np.ones((20, 3)), [ErrorCode.INVALID_ROW]),
    "a late nan for a cost": (
        FEATURES,
        REWARDS,
        with_entry(COSTS, (19, 1), NAN),
        [ErrorCode.INVALID_ROW],
    ),
    "a late text for a cost": (
        FEATURES,
        REWARDS,
        with_entry(COSTS, (19, 0), "x"),
        [ErrorCode.INVALID_ROW],
    ),
    "ragged costs": (FEATURES, REWARDS, [*COSTS[:19].tolist(), [0.1]], [ErrorCode.INVALID_ROW]),
    "other columns": (
        FEATURES,
        REWARDS,
        {"spend": COSTS[:, 0], "wait": COSTS[:, 1]},
        [ErrorCode.INVALID_ROW],
    ),
    "a short column": (
        FEATURES,
        REWARDS,
        {"spend": COSTS[:, 0], "clicks": COSTS[:9, 1]},
        [ErrorCode.WRONG_SHAPE],
    ),
    "a number for a column": (FEATURES, REWARDS, {"spend": 0.1, "clicks": COSTS[:, 1]}, [ErrorCode.WRONG_SHAPE]),
    "no columns": (FEATURES, REWARDS, {}, [ErrorCode.INVALID_ROW]),
}
BAD_FEATURES = {
    "a late nan": (with_entry(FEATURES, (19, 1), NAN), [ErrorCode.NOT_FINITE]),
    "too wide": (np.ones((20, 3)), [ErrorCode.DIMENSION_MISMATCH]),
    "flat": (REWARDS, [ErrorCode.WRONG_SHAPE]),
    "text": ([["a", "b"]] * 20, [ErrorCode.WRONG_TYPE]),
    "ragged": ([[0.1], [0.1, 0.2]], [ErrorCode.WRONG_SHAPE]),
}


@pytest.mark.parametrize(("features", "rewards", "costs", "parts"), BAD_LOGS.values(), ids=BAD_LOGS)
@pytest.mark.parametrize("policy", [LINEAR["LCLUCB"], LINEAR["SafeLTS"]], ids=["LCLUCB", "SafeLTS"])
def test_a_bad_log_changes_nothing(policy: Any, features: Any, rewards: Any, costs: Any, parts: list[str]) -> None:
    agent = Agent(policy)
    before = agent.state.memory.tobytes()
    with refused(InvalidOutcome, *parts):
        agent.learn_log(features, rewards, costs)
    assert agent.state.memory.tobytes() == before


@pytest.mark.parametrize(("features", "parts"), BAD_FEATURES.values(), ids=BAD_FEATURES)
def test_a_log_of_bad_actions_changes_nothing(features: Any, parts: list[str]) -> None:
    agent = Agent(LINEAR["LCLUCB"])
    before = agent.state.memory.tobytes()
    with refused(InvalidActions, *parts):
        agent.learn_log(features, REWARDS, COSTS)
    assert agent.state.memory.tobytes() == before


@pytest.mark.parametrize(
    "arms",
    [[0, 3], [-1, 0], [0.0, 1.0], [True, False], ["0", "1"], [[0], [1]], [[0], [1, 2]], 0, None],
    ids=repr,
)
@pytest.mark.parametrize("policy", [PULLS, UCB(arms=3)], ids=["OPB", "UCB"])
def test_a_log_of_bad_arms_changes_nothing(policy: Any, arms: Any) -> None:
    agent = Agent(policy)
    before = agent.state.memory.tobytes()
    with refused_with(InvalidActions, ErrorCode.UNKNOWN_ACTION, ErrorCode.WRONG_SHAPE):
        agent.learn_log(arms, [0.1, 0.2], [[0.1, 0.2]] * 2)
    assert agent.state.memory.tobytes() == before


def test_opb_refuses_a_log_outside_its_range_and_says_which_row() -> None:
    agent = Agent(PULLS)
    before = agent.state.memory.tobytes()
    with refused(InvalidOutcome, ErrorCode.INVALID_ROW):
        agent.learn_log(PULLED, with_entry(REWARDS, 17, 1.5), COSTS)
    assert agent.state.memory.tobytes() == before


@pytest.mark.parametrize("policy", [*LINEAR.values(), LinUCB(noise=0.1)], ids=[*LINEAR, "LinUCB"])
def test_logged_features_too_large_to_reckon_with_do_not_spoil_the_memory(policy: Any) -> None:
    """They are finite, but their squares are not: either they are refused, or the memory stays finite."""
    agent = Agent(policy)
    with contextlib.suppress(InvalidActions):
        agent.learn_log([[1e200, 1e200]], [0.1], [[0.1, 0.2]])
    assert np.isfinite(agent.state.memory).all()


def test_linucb_refuses_a_log_of_another_dimension_than_it_has_learned() -> None:
    agent = Agent(LinUCB(noise=0.1))
    agent.learn_log(np.eye(3), [0.1, 0.2, 0.3])
    before = agent.state.memory.tobytes()
    with pytest.raises(StagewiseError):
        agent.learn_log(np.eye(2), [0.1, 0.2])
    assert agent.state.memory.tobytes() == before


@pytest.mark.parametrize(
    "policy",
    [
        LCLUCB(safe_action=SafeAction(features=[0.0, 0.0]), threshold=0.5, noise=0.1, radius="paper"),
        LinUCB(noise=0.1, radius="paper"),
    ],
    ids=["LCLUCB", "LinUCB"],
)
def test_the_papers_radius_refuses_a_log_beyond_its_bound(policy: Any) -> None:
    agent = Agent(policy)
    before = agent.state.memory.tobytes()
    with refused(InvalidActions, ErrorCode.BOUND_EXCEEDED):
        agent.learn_log([[3.0, 0.0]], [0.1], [0.1])
    assert agent.state.memory.tobytes() == before


def test_logged_actions_are_a_list_even_where_nothing_is_learned() -> None:
    agent = Agent(AlwaysSafe(safe_action=SafeAction(arm=0, cost=0.0), threshold=0.1))
    for actions in (5, None, [[1], [1, 2]], "ab", [np.nan]):
        with refused(InvalidActions, "the logged actions"):
            agent.learn_log(actions, [0.5], [0.0])
    agent.learn_log([0, 0], [0.5, 0.5], [0.0, 0.0])
