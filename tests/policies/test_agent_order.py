"""In which order an agent learns: that of its decisions, whatever order their outcomes come in."""

from pathlib import Path
from typing import Any

import pytest
from tests.policies.agents import NAN, ONE, PULLS, WITH_ONE_COST, choices, remembered
from tests.policies.test_agent import ThreeVerbs
from tests.problem.refusal import refused

from stagewise import Agent, InvalidOutcome, InvalidProblem, Outcome, PolicyState
from stagewise.problem.errors import ErrorCode

SEVERAL = {"LCLUCB": ONE, "OPB": PULLS, "SafeLTS": WITH_ONE_COST["SafeLTS"], "three verbs": ThreeVerbs()}
several = pytest.mark.parametrize("policy", SEVERAL.values(), ids=SEVERAL)


def outcome_of(round_: int) -> Outcome:
    return Outcome(0.1 * round_, 0.05 * round_)


def open_agent(policy: Any, count: int = 6, **settings: Any) -> tuple[Agent, list[Any]]:
    agent = Agent(policy, seed=5, **settings)
    return agent, [agent.decide(choices(policy)) for _ in range(count)]


def tell(agent: Agent, round_: int) -> None:
    agent.learn(round_, *outcome_of(round_))


def state_after(policy: Any, decisions: list[Any], rounds: list[int]) -> bytes:
    state: PolicyState = policy.start()
    if hasattr(policy, "cache_offered"):
        state = policy.cache_offered(state, decisions[0])
    for round_ in rounds:
        state = policy.learn(state, decisions[round_], outcome_of(round_))
    return state.memory.tobytes()


@several
def test_an_outcome_waits_until_every_earlier_decision_is_answered(policy: Any) -> None:
    agent, decisions = open_agent(policy)
    learned = {4: [], 1: [], 0: [0, 1], 3: [0, 1], 2: [0, 1, 2, 3, 4], 5: [0, 1, 2, 3, 4, 5]}
    for count, (round_, known) in enumerate(learned.items(), start=1):
        tell(agent, round_)
        assert agent.state.memory.tobytes() == state_after(policy, decisions, known)
        assert (agent.pending_count, agent.buffered_count) == (6 - count, count - len(known))


@several
def test_by_arrival_an_outcome_is_learned_at_once(policy: Any) -> None:
    agent, decisions = open_agent(policy, learning_order="arrival")
    rounds = [4, 1, 0, 3]
    for count, round_ in enumerate(rounds, start=1):
        tell(agent, round_)
        assert agent.state.memory.tobytes() == state_after(policy, decisions, rounds[:count])
        assert (agent.pending_count, agent.buffered_count) == (6 - count, 0)


@several
def test_giving_up_releases_what_was_held_behind(policy: Any) -> None:
    agent, decisions = open_agent(policy)
    for round_ in (5, 3, 1):
        tell(agent, round_)
    assert agent.drop_pending(before_round=2) == 1
    assert (agent.pending_count, agent.buffered_count) == (2, 2)
    assert agent.state.memory.tobytes() == state_after(policy, decisions, [1])
    assert agent.drop_pending(before_round=5) == 2
    assert (agent.pending_count, agent.buffered_count) == (0, 0)
    assert agent.state.memory.tobytes() == state_after(policy, decisions, [1, 3, 5])


def test_a_held_outcome_stays_what_it_was() -> None:
    """A list that the caller goes on using must not change what is learned later."""

    class Costs(ThreeVerbs):
        def learn(self, state: PolicyState, decision: Any, outcome: Outcome) -> PolicyState:
            return PolicyState(state.memory + outcome.cost[0])

    for policy in (ONE, Costs()):
        agent, _ = open_agent(policy, 2)
        other, _ = open_agent(policy, 2)
        costs = [0.25]
        agent.learn(1, 0.5, costs)
        costs[0] = 0.75
        other.learn(1, 0.5, [0.25])
        for one in (agent, other):
            one.learn(0, 0.5, [0.1])
        assert agent.state.memory.tobytes() == other.state.memory.tobytes()


@pytest.mark.parametrize("order", ["", "Decision", None, True, 0, ["decision"], NAN], ids=repr)
def test_an_order_that_is_none_is_refused(order: Any) -> None:
    with refused(InvalidProblem, ErrorCode.INVALID_CHOICE):
        Agent(ONE, learning_order=order)


@pytest.mark.parametrize("policy", list(WITH_ONE_COST.values()), ids=WITH_ONE_COST)
@pytest.mark.parametrize("order", ["decision", "arrival"])
def test_a_saved_agent_keeps_its_order_and_what_it_holds(policy: Any, order: str, tmp_path: Path) -> None:
    agent, _ = open_agent(policy, learning_order=order)
    for round_ in (4, 2, 0):
        tell(agent, round_)
    agent.save(tmp_path / "agent.json")
    other = Agent.load(tmp_path / "agent.json")
    assert (other.learning_order, other.pending_count, other.buffered_count) == (
        order,
        3,
        2 if order == "decision" else 0,
    )
    with refused(InvalidOutcome, ErrorCode.OUTCOME_ALREADY_KNOWN):
        tell(other, 4)
    for one in (agent, other):
        tell(one, 1)
        one.drop_pending(before_round=4)
    assert remembered(other) == remembered(agent)
    assert (other.buffered_count, agent.buffered_count) == (0, 0)
