"""Hostile values for every verb of every agent: what is refused leaves no trace, and what is taken is learned alike."""

from random import Random
from typing import Any

import pytest
from tests.fuzz.agents import POLICIES, pulls, remembered, verbs, working
from tests.fuzz.attack import Fault, pairs, refused, replaced, singles
from tests.fuzz.hostile import HOSTILE

import stagewise as sw

VERBS = [
    "decide",
    "learn",
    "learn_log",
    "learn_log_frame",
    "learn a part",
    "learn another",
    "cancel",
    "drop_pending",
    "expire_pending",
    "register_decision",
]


@pytest.mark.long
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_hostile_calls_of_an_agent_leave_no_trace(policy: Any, verb: str) -> None:
    assert mistreated(policy, verb, 20, 1) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize("verb", ["learn", "learn_log", "learn_log_frame"])
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_two_hostile_values_in_one_call(policy: Any, verb: str, seed: int) -> None:
    assert mistreated(policy, verb, 2000, seed) == []


def mistreated(policy: Any, verb: str, count: int, seed: int) -> list[str]:
    """Return what went wrong when an agent was called with hostile values."""
    agent, found = working(policy), []
    call = verbs(agent)[verb]
    for way in [*singles(call), *pairs(call, count, seed)]:
        before = remembered(agent)
        try:
            untouched = refused(call.function, replaced(call, way))
        except Fault as fault:
            found.append(f"{way}: {fault}")
            untouched = True
        if untouched and remembered(agent) != before:
            found.append(f"{way}: refused, and the agent is another")
        if not untouched:  # what was taken changes the agent: the next attack meets a new one
            agent = working(policy)
            call = verbs(agent)[verb]
    return found


@pytest.mark.long
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_a_long_session_with_hostile_calls_is_as_one_without(policy: Any) -> None:
    session(policy, 120, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 10))
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_longer_sessions(policy: Any, seed: int) -> None:
    session(policy, 3000, seed)


def session(policy: Any, steps: int, seed: int) -> None:
    """Play by chance, every second call a hostile one; a twin that gets only what was taken must be the same."""
    chance, agent, twin = Random(seed), working(policy, seed), working(policy, seed)
    for _ in range(steps):
        verb = chance.choice(["decide", "learn", *VERBS])
        round_ = chance.randrange(max(agent.round - 5, 0), agent.round + 1)
        call, same = verbs(agent, round_)[verb], verbs(twin, round_)[verb]
        arguments = dict(call.arguments)
        if "reward" in arguments:
            arguments["reward"] = chance.random()
        if chance.random() < 0.5:
            arguments[chance.choice(list(arguments))] = HOSTILE[chance.choice(list(HOSTILE))]
        before = remembered(agent)
        if refused(call.function, arguments):
            assert remembered(agent) == before
        else:
            assert not refused(same.function, arguments)
    assert remembered(agent) == remembered(twin)
    assert agent.decide(sw.ArmSet(3) if pulls(policy) else [[1.0, 0.0]]).round == agent.round - 1
