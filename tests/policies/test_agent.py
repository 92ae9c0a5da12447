"""An agent and its outcomes: late, out of order, never, twice, and bad ones that must change nothing."""

import contextlib
import copy
import math
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

from stagewise import (
    LCLUCB,
    OPB,
    OPLB,
    ROFUL,
    UCB,
    Agent,
    AlwaysSafe,
    Arms,
    AtLeast,
    Decision,
    Draw,
    InvalidOutcome,
    InvalidProblem,
    LinUCB,
    Outcome,
    SafeAction,
    SafeLTS,
    State,
)

NAN, INF = math.nan, math.inf

ORIGIN = SafeAction(features=[0.0, 0.0])
SAFE_ARM = SafeAction(arm=0, reward=0.1, cost=0.0)
NAMED = {"spend": 0.5, "wait": 0.4}

ONE = LCLUCB(safe_action=ORIGIN, threshold=0.5, noise=0.1)
TWO = OPLB(safe_action=ORIGIN, threshold=NAMED, noise=0.1)
PULLS = OPB(arms=3, safe_action=SAFE_ARM, threshold=0.2)

WITH_ONE_COST = {
    "LCLUCB": ONE,
    "ROFUL": ROFUL(safe_action=ORIGIN, threshold=0.5, noise=0.1),
    "SafeLTS": SafeLTS(safe_action=ORIGIN, threshold=0.5, noise=0.1),
    "OPLB": OPLB(safe_action=ORIGIN, threshold=0.5, noise=0.1),
    "OPB": PULLS,
    "AlwaysSafe": AlwaysSafe(safe_action=SAFE_ARM, threshold=0.2),
}
WITHOUT_COST = {"LinUCB": LinUCB(noise=0.1), "UCB": UCB(arms=3)}


def choices(policy: Any) -> Any:
    return Arms(3) if isinstance(policy, OPB | UCB) else np.eye(2)


def remembered(agent: Agent) -> tuple[bytes, int, int]:
    return agent.state.memory.tobytes(), agent.waiting, agent.round


# Late, out of order, never, twice.


@pytest.mark.parametrize("policy", [ONE, PULLS, WITH_ONE_COST["SafeLTS"]], ids=["LCLUCB", "OPB", "SafeLTS"])
@pytest.mark.parametrize("by_number", [False, True])
def test_outcomes_may_come_late_in_any_order_or_never(policy: Any, by_number: bool) -> None:
    agent, state = Agent(policy, seed=5), policy.start()
    decisions = [agent.decide(choices(policy)) for _ in range(10)]
    order = [7, 2, 9, 0, 4, 3]
    for count, round_ in enumerate(order):
        assert agent.waiting == 10 - count
        outcome = Outcome(0.1 * round_, 0.05 * round_)
        agent.learn(round_ if by_number else decisions[round_], reward=outcome.reward, cost=outcome.cost)
        state = policy.learn(state, decisions[round_], outcome)
        assert agent.state.memory.tobytes() == state.memory.tobytes()
    assert agent.waiting == 4
    assert agent.decide(choices(policy)).round == 10


def test_a_decision_uses_all_that_was_learned_and_nothing_else() -> None:
    agent, state = Agent(ONE, seed=5), ONE.start()
    first, second = agent.decide(np.eye(2)), agent.decide(np.eye(2))
    assert np.array_equal(first.action, second.action)
    agent.learn(second, reward=1.0, cost=0.0)
    state = ONE.learn(state, second, Outcome(1.0, 0.0))
    third, by_hand = agent.decide(np.eye(2)), ONE.decide(state, np.eye(2), Draw(5, 0, 2))
    assert np.array_equal(third.action, by_hand.action)
    assert not np.array_equal(third.action, first.action)


def test_an_outcome_counts_once() -> None:
    agent = Agent(ONE)
    decision = agent.decide(np.eye(2))
    agent.learn(decision, reward=0.5, cost=0.1)
    before = remembered(agent)
    for again in (decision, 0):
        with refused(InvalidOutcome, "round 0", "learned already"):
            agent.learn(again, reward=0.5, cost=0.1)
    assert remembered(agent) == before


def test_outcomes_that_never_come_can_be_given_up() -> None:
    agent = Agent(ONE)
    decisions = [agent.decide(np.eye(2)) for _ in range(4)]
    agent.learn(decisions[1], reward=0.5, cost=0.1)
    before = remembered(agent)[0]
    assert agent.forget(before=3) == 2
    assert agent.waiting == 1
    assert remembered(agent)[0] == before
    with refused(InvalidOutcome, "round 0", "forgotten"):
        agent.learn(decisions[0], reward=0.5, cost=0.1)
    agent.learn(3, reward=0.5, cost=0.1)
    assert agent.forget(agent.round) == 0


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
    assert (agent.round, agent.waiting) == (1200, 0)


@pytest.mark.parametrize(
    "again", [lambda agent: pickle.loads(pickle.dumps(agent)), copy.deepcopy], ids=["pickle", "copy"]
)
def test_an_agent_that_was_copied_goes_on(again: Any) -> None:
    agent = Agent(ONE, seed=4)
    agent.learn(agent.decide(np.eye(2)), reward=0.5, cost=0.1)
    late = agent.decide(np.eye(2))
    other = again(agent)
    for one in (agent, other):
        one.learn(late.round, reward=0.2, cost=0.3)
    assert remembered(other) == remembered(agent)
    assert np.array_equal(other.decide(np.eye(2)).action, agent.decide(np.eye(2)).action)


@pytest.mark.parametrize("before", [-1, 2, 0.5, None, True, "1"], ids=repr)
def test_rounds_that_were_not_yet_cannot_be_given_up(before: Any) -> None:
    agent = Agent(ONE)
    agent.decide(np.eye(2))
    with refused(InvalidOutcome, "before is", "from 0 to 1"):
        agent.forget(before)
    assert agent.waiting == 1


@pytest.mark.parametrize("unknown", [2, -1, 10**30, None, "0", 0.5, (0,), True, [0], np.zeros(1)], ids=repr)
def test_an_outcome_of_no_decision_is_refused(unknown: Any) -> None:
    agent = Agent(ONE)
    agent.decide(np.eye(2))
    agent.decide(np.eye(2))
    before = remembered(agent)
    with refused(InvalidOutcome, "round", "did not make it"):
        agent.learn(unknown, reward=0.5, cost=0.1)
    assert remembered(agent) == before


def test_a_round_may_be_a_number_of_numpy() -> None:
    agent = Agent(ONE)
    agent.decide(np.eye(2))
    agent.learn(np.int64(0), reward=0.5, cost=0.1)
    assert agent.waiting == 0


def test_another_agents_decision_is_refused() -> None:
    agent, other = Agent(ONE), Agent(ONE)
    agent.decide(np.eye(2))
    before = remembered(agent)
    with refused(InvalidOutcome, "round 0", "another action"):
        agent.learn(other.decide([[0.1, 0.7]]), reward=0.5, cost=0.1)
    other.decide(np.eye(2))
    with refused(InvalidOutcome, "round 2", "did not make it"):
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


# Bad outcomes.

BAD_NUMBERS = {
    "nan": NAN,
    "infinity": INF,
    "minus infinity": -INF,
    "text": "0.1",
    "bytes": b"0.1",
    "truth value": True,
    "truth value of numpy": np.True_,
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
    with refused(InvalidOutcome, "the reward"):
        agent.learn(decision, reward=reward, cost=0.1)
    assert remembered(agent) == before
    agent.learn(decision, reward=0.5, cost=0.1)
    assert agent.waiting == 0


@pytest.mark.parametrize("policy", WITH_ONE_COST.values(), ids=WITH_ONE_COST)
@pytest.mark.parametrize("cost", BAD_NUMBERS.values(), ids=BAD_NUMBERS)
def test_a_bad_cost_changes_nothing(policy: Any, cost: Any) -> None:
    agent = Agent(policy)
    decision = agent.decide(choices(policy))
    before = remembered(agent)
    for given in (cost, [cost], {"cost": cost}):
        with refused(InvalidOutcome, "the cost"):
            agent.learn(decision, reward=0.5, cost=given)
    assert remembered(agent) == before


def test_a_complex_number_of_numpy_is_not_stripped_to_its_real_part() -> None:
    agent = Agent(ONE)
    decision = agent.decide(np.eye(2))
    for outcome in ({"reward": np.complex128(0.1 + 1j), "cost": 0.1}, {"reward": 0.1, "cost": np.complex128(0.1 + 1j)}):
        with refused(InvalidOutcome, "0.1+1j", "a number"):
            agent.learn(decision, **outcome)


BAD_COSTS = {
    "missing": (None, ["missing", "spend, wait"]),
    "empty": ((), ["spend, wait"]),
    "one number": (0.1, ["0.1", "spend, wait"]),
    "too few": ([0.1], ["[0.1]", "spend, wait"]),
    "too many": ([0.1, 0.2, 0.3], ["[0.1, 0.2, 0.3]", "spend, wait"]),
    "a table": ([[0.1, 0.2]], ["spend, wait"]),
    "ragged": ([[0.1], [0.1, 0.2]], ["'spend'", "[0.1]", "a number"]),
    "text": ("ab", ["'ab'", "spend, wait"]),
    "nan": ([0.1, NAN], ["'wait'", "nan", "finite"]),
    "a truth value": ([True, 0.1], ["'spend'", "True", "a number"]),
    "nothing in it": ([0.1, None], ["'wait'", "None", "a number"]),
    "a name missing": ({"spend": 0.1}, ["['spend']", "['spend', 'wait']"]),
    "a name too many": (dict(NAMED, more=0.1), ["'more'", "['spend', 'wait']"]),
    "another name": ({"spend": 0.1, "Wait": 0.1}, ["'Wait'", "['spend', 'wait']"]),
    "no names": ({}, ["[]", "['spend', 'wait']"]),
    "numbers for names": ({0: 0.1, 1: 0.1}, ["['0', '1']", "['spend', 'wait']"]),
    "nan by name": ({"spend": 0.1, "wait": NAN}, ["'wait'", "nan", "finite"]),
}


@pytest.mark.parametrize(("cost", "parts"), BAD_COSTS.values(), ids=BAD_COSTS)
def test_costs_that_do_not_fit_change_nothing(cost: Any, parts: list[str]) -> None:
    agent = Agent(TWO)
    decision = agent.decide(np.eye(2))
    before = remembered(agent)
    with refused(InvalidOutcome, "the cost", *parts):
        agent.learn(decision, reward=0.5, cost=cost)
    with refused(InvalidOutcome, "the cost", *parts):
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
    with refused(InvalidOutcome, what, value, "[0, 1]", "noise"):
        agent.learn(decision, **{"reward": 0.5, "cost": 0.5, what: value})
    assert remembered(agent) == before
    agent.learn(decision, **{"reward": 0.5, "cost": 0.5, what: float(value > 0)})


def test_opb_speaks_of_a_limit_from_below_in_the_users_units() -> None:
    policy = OPB(arms=3, safe_action=SafeAction(arm=0, reward=0.1, cost=0.5), threshold={"clicks": AtLeast(0.2)})
    agent = Agent(policy)
    with refused(InvalidOutcome, "'clicks' is 1.5", "[0, 1]"):
        agent.learn(agent.decide(Arms(3)), reward=0.5, cost=1.5)


@pytest.mark.parametrize("more", [{"noise": 0.5}, {"radius": "paper"}], ids=["noise", "paper"])
def test_opb_takes_any_outcome_where_no_range_was_promised(more: dict[str, Any]) -> None:
    agent = Agent(OPB(arms=3, safe_action=SAFE_ARM, threshold=0.2, **more))
    agent.learn(agent.decide(Arms(3)), reward=-5.0, cost=7.0)
    assert agent.waiting == 0


def test_ucb_refuses_rewards_outside_the_range_its_radius_rests_on() -> None:
    agent = Agent(UCB(arms=3))
    decision = agent.decide(Arms(3))
    before = remembered(agent)
    with refused(InvalidOutcome, "3.0", "[0, 1]", "noise"):
        agent.learn(decision, reward=3.0)
    assert remembered(agent) == before


# Seeds, and what an agent is made of.


@pytest.mark.parametrize("seed", [-1, 2**64, 10**30, 0.0, 1.5, True, False, "7", None, NAN, [1]], ids=repr)
def test_a_seed_that_is_none_is_refused(seed: Any) -> None:
    with refused(InvalidProblem, "seed", repr(seed), "2**64 - 1"):
        Agent(PULLS, seed=seed)


@pytest.mark.parametrize("seed", [0, 2**32, 2**63 - 1, 2**63, 2**64 - 1, np.int64(7), np.uint64(2**64 - 1)], ids=repr)
def test_any_64_bits_are_a_seed(seed: Any) -> None:
    assert Agent(PULLS, seed=seed).seed == int(seed)
    agents = [Agent(PULLS, seed=seed), Agent(PULLS, seed=int(seed))]
    actions = [[agent.decide(Arms(3)).action for _ in range(50)] for agent in agents]
    assert actions[0] == actions[1]
    assert len(set(actions[0])) > 1


def test_large_seeds_are_not_folded_together() -> None:
    seeds = [0, 1, 2**32, 2**63, 2**63 + 1, 2**64 - 1]
    agents = [Agent(PULLS, seed=seed) for seed in seeds]
    assert len({tuple(agent.decide(Arms(3)).action for _ in range(60)) for agent in agents}) == len(seeds)


def test_a_generator_gives_a_seed_and_moves_on() -> None:
    random = np.random.default_rng(3)
    first, second = Agent(PULLS, seed=random), Agent(PULLS, seed=random)
    assert first.seed == Agent(PULLS, seed=np.random.default_rng(3)).seed
    assert first.seed != second.seed


class ThreeVerbs:
    """All that the refusal of a policy asks for."""

    def start(self) -> State:
        return State(np.zeros(1))

    def decide(self, state: State, actions: Any, draw: Draw) -> Decision:
        return Decision(0, 0, 1.0, None, 0.0, np.empty(0), np.empty(0), None, draw.round)

    def learn(self, state: State, decision: Decision, outcome: Outcome) -> State:
        return State(state.memory + outcome.reward)


@pytest.mark.parametrize(
    "policy",
    [None, "LCLUCB", 3, object(), LCLUCB, OPB],
    ids=lambda p: type(p).__name__ if type(p) is object else repr(p),
)
def test_what_is_no_policy_is_refused(policy: Any) -> None:
    with refused(InvalidProblem, "policy", "start, decide"):
        Agent(policy)


def test_a_policy_with_the_verbs_asked_for_is_enough() -> None:
    agent = Agent(ThreeVerbs())
    agent.learn(agent.decide(None), reward=1.0)
    assert agent.state.memory.tolist() == [1.0]
