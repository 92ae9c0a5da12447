"""An agent and its outcomes: late, out of order, never, twice; shared, copied, seeded."""

import contextlib
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.policies.agents import (
    NAN,
    ONE,
    PULLS,
    TWO,
    WITH_ONE_COST,
    choices,
    remembered,
)
from tests.problem.refusal import refused

from stagewise import (
    LCLUCB,
    OPB,
    Agent,
    ArmSet,
    Decision,
    InvalidOutcome,
    InvalidProblem,
    LinUCB,
    Outcome,
    PolicyState,
    RandomKey,
)
from stagewise.problem.errors import ErrorCode

# Late, out of order, never, twice.


def test_a_decision_uses_all_that_was_learned_and_nothing_else() -> None:
    agent, state = Agent(ONE, seed=5, learning_order="arrival"), ONE.start()
    first, second = agent.decide(np.eye(2)), agent.decide(np.eye(2))
    assert np.array_equal(first.action, second.action)
    agent.learn(second, reward=1.0, cost=0.0)
    state = ONE.learn(state, second, Outcome(1.0, 0.0))
    third, by_hand = agent.decide(np.eye(2)), ONE.decide(state, np.eye(2), RandomKey(5, 0, 2))
    assert np.array_equal(third.action, by_hand.action)
    assert not np.array_equal(third.action, first.action)


@pytest.mark.long
@pytest.mark.parametrize("policy", [ONE, PULLS, WITH_ONE_COST["OPLB"]], ids=["LCLUCB", "OPB", "OPLB"])
def test_threads_may_share_an_agent(policy: Any) -> None:
    """Without a lock two threads decide in the same round, on the same random numbers."""
    agent, actions, rounds = Agent(policy), choices(policy), []
    policy.decide(policy.start(), actions)  # compiled before the threads meet

    def work(_: int) -> None:
        for _ in range(300):
            decision = agent.decide(actions)
            rounds.append(decision.round)
            agent.learn(decision, reward=0.5, cost=0.1)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(4)))
    finally:
        sys.setswitchinterval(before)
    assert sorted(rounds) == list(range(1200))
    assert (agent.round, agent.pending_count) == (1200, 0)


@pytest.mark.parametrize("before", [-1, 2, 0.5, None, True, "1"], ids=repr)
def test_rounds_that_were_not_yet_cannot_be_given_up(before: Any) -> None:
    agent = Agent(ONE)
    agent.decide(np.eye(2))
    with refused(InvalidOutcome, ErrorCode.OUT_OF_RANGE):
        agent.drop_pending(before)
    assert agent.pending_count == 1


@pytest.mark.parametrize("unknown", [2, -1, 10**30, None, "0", 0.5, (0,), True, [0], np.zeros(1)], ids=repr)
def test_an_outcome_of_no_decision_is_refused(unknown: Any) -> None:
    agent = Agent(ONE)
    agent.decide(np.eye(2))
    agent.decide(np.eye(2))
    before = remembered(agent)
    with refused(InvalidOutcome, ErrorCode.UNKNOWN_DECISION):
        agent.learn(unknown, reward=0.5, cost=0.1)
    assert remembered(agent) == before


def test_another_agents_decision_is_refused() -> None:
    agent, other = Agent(ONE), Agent(ONE)
    agent.decide(np.eye(2))
    before = remembered(agent)
    with refused(InvalidOutcome, ErrorCode.UNKNOWN_DECISION):
        agent.learn(other.decide([[0.1, 0.7]]), reward=0.5, cost=0.1)
    other.decide(np.eye(2))
    with refused(InvalidOutcome, ErrorCode.UNKNOWN_DECISION):
        agent.learn(other.decide(np.eye(2)), reward=0.5, cost=0.1)
    assert remembered(agent) == before


@pytest.mark.parametrize("policy", [ONE, TWO, LinUCB(noise=0.1)], ids=["LCLUCB", "OPLB", "LinUCB"])
def test_what_was_played_cannot_be_rewritten_by_writing_on_the_decision(policy: Any) -> None:
    """A user who scales `decision.action` for display must not change what the agent believes it played."""
    agent, untouched = Agent(policy), Agent(policy)
    decision = agent.decide(np.eye(2))
    untouched.decide(np.eye(2))
    with contextlib.suppress(ValueError):
        decision.action[:] = 100.0
    costs = [0.1] * len(policy.thresholds.names)
    for one in (agent, untouched):
        one.learn(0, reward=0.5, cost=costs)
    assert agent.state.memory.tobytes() == untouched.state.memory.tobytes()


def test_the_state_is_a_copy() -> None:
    agent = Agent(ONE)
    before = remembered(agent)
    agent.state.memory[:] = 0.0
    assert remembered(agent) == before


# Seeds, and what an agent is made of.


@pytest.mark.parametrize("seed", [-1, 2**64, 10**30, 0.0, 1.5, True, False, "7", None, NAN, [1]], ids=repr)
def test_a_seed_that_is_none_is_refused(seed: Any) -> None:
    code = ErrorCode.OUT_OF_RANGE if type(seed) is int else ErrorCode.WRONG_TYPE
    with refused(InvalidProblem, code, repr(seed)):
        Agent(PULLS, seed=seed)


@pytest.mark.parametrize("seed", [0, 2**32, 2**63 - 1, 2**63, 2**64 - 1, np.int64(7), np.uint64(2**64 - 1)], ids=repr)
def test_any_64_bits_are_a_seed(seed: Any) -> None:
    assert Agent(PULLS, seed=seed).seed == int(seed)
    agents = [Agent(PULLS, seed=seed), Agent(PULLS, seed=int(seed))]
    actions = [[agent.decide(ArmSet(3)).action for _ in range(50)] for agent in agents]
    assert actions[0] == actions[1]
    assert len(set(actions[0])) > 1


def test_a_generator_gives_a_seed_and_moves_on() -> None:
    random = np.random.default_rng(3)
    first, second = Agent(PULLS, seed=random), Agent(PULLS, seed=random)
    assert first.seed == Agent(PULLS, seed=np.random.default_rng(3)).seed
    assert first.seed != second.seed


class ThreeVerbs:
    """All that the refusal of a policy asks for."""

    def start(self) -> PolicyState:
        return PolicyState(np.zeros(1))

    def decide(self, state: PolicyState, actions: Any, draw: RandomKey) -> Decision:
        return Decision(0, 0, 1.0, None, 0.0, np.empty(0), np.empty(0), None, draw.round)

    def learn(self, state: PolicyState, decision: Decision, outcome: Outcome) -> PolicyState:
        return PolicyState(state.memory + outcome.reward)


@pytest.mark.parametrize(
    "policy",
    [None, "LCLUCB", 3, object(), LCLUCB, OPB],
    ids=lambda p: type(p).__name__ if type(p) is object else repr(p),
)
def test_what_is_no_policy_is_refused(policy: Any) -> None:
    with refused(InvalidProblem, ErrorCode.WRONG_TYPE):
        Agent(policy)
