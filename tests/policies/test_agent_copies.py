"""Copies of an agent: whole and on their own, also while the agent is in use."""

import copy
import pickle
import sys
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from tests.policies.agents import ONE, PULLS, TWO, choices, remembered

from stagewise import Agent, Decision, Outcome, PolicyState, RandomKey

OPEN = 300
AGAIN = {"pickle": lambda agent: pickle.loads(pickle.dumps(agent)), "copy": copy.copy, "deepcopy": copy.deepcopy}


@pytest.mark.parametrize("again", AGAIN.values(), ids=AGAIN)
def test_a_copy_is_on_its_own(again: Any) -> None:
    agent = Agent(ONE, seed=4)
    agent.learn(agent.decide(np.eye(2)), reward=0.5, cost=0.1)
    agent.decide(np.eye(2))
    other, before = again(agent), remembered(agent)
    assert remembered(other) == before
    other.learn(1, reward=0.2, cost=0.3)
    other.decide(np.eye(2))
    assert remembered(agent) == before
    after = remembered(other)
    agent.learn(1, reward=0.1, cost=0.1)
    agent.drop_pending(2)
    assert remembered(other) == after


class Summing:
    """A policy of three verbs that adds in place, which it should not."""

    def start(self) -> PolicyState:
        return PolicyState(np.zeros(1))

    def decide(self, state: PolicyState, actions: Any, draw: RandomKey) -> Decision:
        return Decision(0, 0, 1.0, None, 0.0, np.empty(0), np.empty(0), None, draw.round)

    def learn(self, state: PolicyState, decision: Decision, outcome: Outcome) -> PolicyState:
        state.memory[0] += outcome.reward
        return state


def test_a_copy_of_ones_own_policys_agent_is_on_its_own() -> None:
    agent = Agent(Summing())
    agent.decide(None)
    other = copy.copy(agent)
    agent.learn(0, reward=1.0)
    assert (agent.state.memory[0], other.state.memory[0], other.pending_count) == (1.0, 0.0, 1)


@pytest.mark.long
@pytest.mark.parametrize("policy", [ONE, PULLS, TWO], ids=["LCLUCB", "OPB", "OPLB"])
@pytest.mark.parametrize("again", AGAIN.values(), ids=AGAIN)
def test_an_agent_in_use_is_copied_whole(policy: Any, again: Any) -> None:
    """What a thread does to the agent, one after the other, is done again by hand; each copy is one of the moments."""
    agent, witness = (Agent(policy, learning_order="arrival") for _ in range(2))  # in order all would be held back
    stop, troubles = Event(), []
    costs, actions = [0.1] * len(policy.thresholds.names), choices(policy)
    for _ in range(OPEN):  # they stay open, so that a copy takes its time
        agent.decide(actions)
        witness.decide(actions)

    def work() -> None:
        try:
            while not stop.is_set():
                agent.learn(agent.decide(actions), reward=0.5, cost=costs)
        except BaseException as error:
            troubles.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = Thread(target=work)
    try:
        thread.start()
        copies = [again(agent) for _ in range(20)]
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(before)
    assert troubles == []
    for other in copies:
        while witness.round < other.round:
            if witness.pending_count > OPEN:
                witness.learn(witness.round - 1, reward=0.5, cost=costs)
            witness.decide(actions)
        if other.pending_count == OPEN < witness.pending_count:
            witness.learn(witness.round - 1, reward=0.5, cost=costs)
        assert remembered(other) == remembered(witness)
