"""Outcomes as an agent takes them: bad ones change nothing, good ones may come in many forms."""

import contextlib
from typing import Any

import numpy as np
import pytest
from tests.policies.agents import (
    INF,
    NAMED,
    NAN,
    ONE,
    PULLS,
    SAFE_ARM,
    TWO,
    WITH_ONE_COST,
    WITHOUT_COST,
    choices,
    remembered,
)
from tests.policies.refusals import refused_with
from tests.problem.refusal import refused

from stagewise import (
    OPB,
    UCB,
    Agent,
    Arms,
    AtLeast,
    InvalidOutcome,
    Outcome,
    SafeAction,
)
from stagewise.problem.errors import ErrorCode

BAD_NUMBERS = {
    "nan": NAN,
    "infinity": INF,
    "minus infinity": -INF,
    "text": "0.1",
    "bytes": b"0.1",
    "complex": 0.1j,
    "object": object(),
    "list": [0.1, 0.2],
    "array of one": np.array([[0.1]]),
}


@pytest.mark.parametrize("policy", (WITH_ONE_COST | WITHOUT_COST).values(), ids=WITH_ONE_COST | WITHOUT_COST)
@pytest.mark.parametrize("reward", [*BAD_NUMBERS.values(), None], ids=[*BAD_NUMBERS, "nothing"])
def test_a_bad_reward_changes_nothing(policy: Any, reward: Any) -> None:
    agent = Agent(policy)
    decision = agent.decide(choices(policy))
    before = remembered(agent)
    with refused_with(InvalidOutcome, ErrorCode.NOT_FINITE, ErrorCode.OUT_OF_RANGE, ErrorCode.WRONG_TYPE):
        agent.learn(decision, reward=reward, cost=0.1)
    assert remembered(agent) == before
    agent.learn(decision, reward=0.5, cost=0.1)
    assert agent.pending_count == 0


@pytest.mark.parametrize("policy", WITH_ONE_COST.values(), ids=WITH_ONE_COST)
@pytest.mark.parametrize("cost", BAD_NUMBERS.values(), ids=BAD_NUMBERS)
def test_a_bad_cost_changes_nothing(policy: Any, cost: Any) -> None:
    agent = Agent(policy)
    decision = agent.decide(choices(policy))
    before = remembered(agent)
    for given in (cost, [cost], {"cost": cost}):
        codes = ErrorCode.NOT_FINITE, ErrorCode.OUT_OF_RANGE, ErrorCode.WRONG_TYPE, ErrorCode.WRONG_SHAPE
        with refused_with(InvalidOutcome, *codes):
            agent.learn(decision, reward=0.5, cost=given)
    assert remembered(agent) == before


def test_a_complex_number_of_numpy_is_not_stripped_to_its_real_part() -> None:
    agent = Agent(ONE)
    decision = agent.decide(np.eye(2))
    for outcome in ({"reward": np.complex128(0.1 + 1j), "cost": 0.1}, {"reward": 0.1, "cost": np.complex128(0.1 + 1j)}):
        with refused(InvalidOutcome, ErrorCode.WRONG_TYPE):
            agent.learn(decision, **outcome)


BAD_COSTS = {
    "missing": (None, [ErrorCode.OUTCOME_MISSING]),
    "empty": ((), [ErrorCode.WRONG_SHAPE]),
    "one number": (0.1, [ErrorCode.WRONG_SHAPE]),
    "too few": ([0.1], [ErrorCode.WRONG_SHAPE]),
    "too many": ([0.1, 0.2, 0.3], [ErrorCode.WRONG_SHAPE]),
    "a table": ([[0.1, 0.2]], [ErrorCode.WRONG_SHAPE]),
    "ragged": ([[0.1], [0.1, 0.2]], [ErrorCode.WRONG_TYPE]),
    "text": ("ab", [ErrorCode.WRONG_SHAPE]),
    "nan": ([0.1, NAN], [ErrorCode.NOT_FINITE]),
    "nothing in it": ([0.1, None], [ErrorCode.WRONG_TYPE]),
    "a name missing": ({"spend": 0.1}, [ErrorCode.UNKNOWN_NAME]),
    "a name too many": (dict(NAMED, more=0.1), [ErrorCode.UNKNOWN_NAME]),
    "another name": ({"spend": 0.1, "Wait": 0.1}, [ErrorCode.UNKNOWN_NAME]),
    "no names": ({}, [ErrorCode.UNKNOWN_NAME]),
    "numbers for names": ({0: 0.1, 1: 0.1}, [ErrorCode.UNKNOWN_NAME]),
    "nan by name": ({"spend": 0.1, "wait": NAN}, [ErrorCode.NOT_FINITE]),
}


@pytest.mark.parametrize(("cost", "parts"), BAD_COSTS.values(), ids=BAD_COSTS)
def test_costs_that_do_not_fit_change_nothing(cost: Any, parts: list[str]) -> None:
    agent = Agent(TWO)
    decision = agent.decide(np.eye(2))
    before = remembered(agent)
    with refused(InvalidOutcome, *parts):
        agent.learn(decision, reward=0.5, cost=cost)
    with refused(InvalidOutcome, *parts):
        TWO.learn(TWO.start(), decision, Outcome(0.5, cost))
    assert remembered(agent) == before


@pytest.mark.parametrize(
    "cost",
    [[0.1, 0.2], (0.1, 0.2), np.array([0.1, 0.2]), {"wait": 0.2, "spend": 0.1}, [np.float64(0.1), np.float64(0.2)]],
    ids=["list", "tuple", "array", "mapping", "numpy"],
)
def test_costs_may_come_in_many_forms(cost: Any) -> None:
    agent, by_hand = Agent(TWO), Agent(TWO)
    agent.learn(agent.decide(np.eye(2)), reward=0.5, cost=cost)
    by_hand.learn(by_hand.decide(np.eye(2)), reward=0.5, cost=[0.1, 0.2])
    assert agent.state.memory.tobytes() == by_hand.state.memory.tobytes()


@pytest.mark.parametrize("reward", [1, np.float32(1.0), np.int8(1), np.array(1.0)], ids=repr)
def test_numbers_may_be_of_many_types(reward: Any) -> None:
    agent, by_hand = Agent(ONE), Agent(ONE)
    agent.learn(agent.decide(np.eye(2)), reward=reward, cost=np.int64(0))
    by_hand.learn(by_hand.decide(np.eye(2)), reward=1.0, cost=0.0)
    assert agent.state.memory.tobytes() == by_hand.state.memory.tobytes()


@pytest.mark.parametrize(
    "policy", [ONE, OPB(arms=3, safe_action=SAFE_ARM, threshold=0.2, noise=1.0)], ids=["LCLUCB", "OPB"]
)
def test_outcomes_too_large_to_reckon_with_do_not_spoil_the_memory(policy: Any) -> None:
    """They are finite, but their difference is not: either they are refused, or the memory stays finite."""
    agent = Agent(policy)
    with contextlib.suppress(InvalidOutcome):
        for value in (1.7e308, -1.7e308, 1.7e308, -1.7e308):
            agent.learn(agent.decide(choices(policy)), reward=value, cost=-abs(value))
    assert np.isfinite(agent.state.memory).all()


@pytest.mark.parametrize("value", [-0.001, 1.001, 5, -1])
@pytest.mark.parametrize("what", ["reward", "cost"])
def test_opb_refuses_outcomes_outside_the_range_its_radius_rests_on(what: str, value: float) -> None:
    agent = Agent(PULLS)
    decision = agent.decide(Arms(3))
    before = remembered(agent)
    with refused(InvalidOutcome, ErrorCode.OUTCOME_OUT_OF_RANGE, what, value):
        agent.learn(decision, **{"reward": 0.5, "cost": 0.5, what: value})
    assert remembered(agent) == before
    agent.learn(decision, **{"reward": 0.5, "cost": 0.5, what: float(value > 0)})


def test_opb_speaks_of_a_limit_from_below_in_the_users_units() -> None:
    policy = OPB(arms=3, safe_action=SafeAction(arm=0, reward=0.1, cost=0.5), threshold={"clicks": AtLeast(0.2)})
    agent = Agent(policy)
    with refused(InvalidOutcome, ErrorCode.OUTCOME_OUT_OF_RANGE):
        agent.learn(agent.decide(Arms(3)), reward=0.5, cost=1.5)


@pytest.mark.parametrize("more", [{"noise": 0.5}, {"radius": "paper"}], ids=["noise", "paper"])
def test_opb_takes_any_outcome_where_no_range_was_promised(more: dict[str, Any]) -> None:
    agent = Agent(OPB(arms=3, safe_action=SAFE_ARM, threshold=0.2, **more))
    agent.learn(agent.decide(Arms(3)), reward=-5.0, cost=7.0)
    assert agent.pending_count == 0


def test_ucb_refuses_rewards_outside_the_range_its_radius_rests_on() -> None:
    agent = Agent(UCB(arms=3))
    decision = agent.decide(Arms(3))
    before = remembered(agent)
    with refused(InvalidOutcome, ErrorCode.OUTCOME_OUT_OF_RANGE):
        agent.learn(decision, reward=3.0)
    assert remembered(agent) == before
