"""Outcomes signal by signal: named, in parts, each once, each in the order of the decisions."""

import copy
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.policies.agents import NAMED, NAN, ONE, ORIGIN, TWO, remembered
from tests.policies.test_agent import ThreeVerbs
from tests.problem.refusal import refused

from stagewise import (
    LCLUCB,
    OPB,
    OPLB,
    Agent,
    ArmSet,
    BallSet,
    InvalidActions,
    InvalidOutcome,
    InvalidProblem,
    SafeAction,
    SafeArmPosteriorSampling,
    SafeLTS,
    SafePosteriorSampling,
)
from stagewise.problem.errors import ErrorCode

SAFE_ARM = SafeAction(arm=0, reward=0.1, cost={"spend": 0.0, "wait": 0.1})
TOLD: dict[str, Any] = {"safe_action": ORIGIN, "threshold": NAMED, "noise": 0.1}
APART = {
    "LCLUCB": LCLUCB(**TOLD, separate_models=True),
    "SafeLTS": SafeLTS(**TOLD, separate_models=True),
    "OPLB": OPLB(**TOLD, separate_models=True),
    "CAPS": SafePosteriorSampling(**TOLD, separate_models=True),
    "CAPS of mixtures": SafePosteriorSampling(**TOLD, separate_models=True, mixtures=True, bounded_outcomes=True),
    "OPB": OPB(arms=3, interval="hoeffding", safe_action=SAFE_ARM, threshold=NAMED, separate_models=True),
    "SafeArmPosteriorSampling": SafeArmPosteriorSampling(
        arms=3, safe_action=SAFE_ARM, threshold=NAMED, separate_models=True
    ),
}
TOGETHER = {
    "OPLB": TWO,
    "CAPS": SafePosteriorSampling(**TOLD),
    "OPB": OPB(arms=3, safe_action=SAFE_ARM, threshold=NAMED, interval="kl"),
}
apart = pytest.mark.parametrize("policy", APART.values(), ids=APART)
together = pytest.mark.parametrize("policy", TOGETHER.values(), ids=TOGETHER)
EVERY = APART | {f"{name} together": policy for name, policy in TOGETHER.items()}
every = pytest.mark.parametrize("policy", EVERY.values(), ids=EVERY)

COUNT, SIGNALS = 5, ("reward", "spend", "wait")


def value_of(round_: int, signal: str) -> float:
    return 0.1 + 0.07 * round_ + 0.01 * SIGNALS.index(signal)


def started(policy: Any, **settings: Any) -> tuple[Agent, list[Any]]:
    agent = Agent(policy, seed=5, **settings)
    actions = ArmSet(3) if hasattr(policy, "arms") else np.eye(2)
    return agent, [agent.decide(actions) for _ in range(COUNT)]


def tell(agent: Agent, decision: Any, *signals: str) -> None:
    agent.learn(decision, **{signal: value_of(decision.round, signal) for signal in signals})


def whole(policy: Any) -> bytes:
    """Return the memory after whole outcomes in the order of the decisions."""
    agent, decisions = started(policy)
    for decision in decisions:
        costs = [value_of(decision.round, signal) for signal in SIGNALS[1:]]
        agent.learn(decision, reward=value_of(decision.round, "reward"), cost=costs)
    return agent.state.memory.tobytes()


ORDERS = {
    "forwards": list(itertools.product(range(COUNT), SIGNALS)),
    "backwards": list(itertools.product(range(COUNT - 1, -1, -1), SIGNALS)),
    "two now and the third later": [
        *itertools.product(range(COUNT), ("wait", "reward")),
        *((r, "spend") for r in range(COUNT)[::-1]),
    ],
    "signal by signal": [(r, s) for s in ("wait", "reward", "spend") for r in (3, 1, 4, 0, 2)],
    "mixed": [tuple(p) for p in np.random.default_rng(4).permutation(list(itertools.product(range(COUNT), SIGNALS)))],
}


@every
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_in_parts_and_in_any_order_the_same_is_learned_to_the_bit(policy: Any, order: Any) -> None:
    agent, decisions = started(policy)
    for round_, signal in order:
        tell(agent, decisions[int(round_)], str(signal))
    assert (agent.pending_count, agent.buffered_count) == (0, 0)
    assert agent.state.memory.tobytes() == whole(policy)


@together
def test_where_signals_share_a_matrix_a_row_waits_for_all_of_them(policy: Any) -> None:
    agent, decisions = started(policy)
    before = agent.state.memory.tobytes()
    tell(agent, decisions[0], "reward", "spend")
    assert agent.state.memory.tobytes() == before
    tell(agent, decisions[0], "wait")
    assert agent.state.memory.tobytes() != before


@apart
def test_apart_a_signal_is_learned_when_its_own_turn_has_come(policy: Any) -> None:
    agent, decisions = started(policy)
    before = agent.state.memory.tobytes()
    tell(agent, decisions[1], "reward")
    assert (agent.state.memory.tobytes(), agent.buffered_count) == (before, 1)
    tell(agent, decisions[0], "reward")
    after = agent.state.memory.tobytes()
    assert (after != before, agent.buffered_count, agent.pending_count) == (True, 0, COUNT)
    tell(agent, decisions[1], "wait")
    assert (agent.state.memory.tobytes(), agent.buffered_count) == (after, 1)


def test_apart_with_whole_outcomes_decides_as_together_to_the_bit() -> None:
    chance = np.random.default_rng(8)
    for kind in (LCLUCB, OPLB, SafeLTS):
        agents = [Agent(kind(**TOLD, separate_models=switch), seed=3) for switch in (False, True)]
        for _ in range(20):
            made = [agent.decide(np.eye(2)) for agent in agents]
            assert made[0].to_dict() == made[1].to_dict()
            outcome = chance.normal(0.2, 0.1, 3)
            for agent, decision in zip(agents, made, strict=True):
                agent.learn(decision, reward=outcome[0], cost=outcome[1:])


@apart
def test_by_arrival_every_signal_is_learned_at_once(policy: Any) -> None:
    agent, decisions = started(policy, learning_order="arrival")
    memory = agent.state.memory.tobytes()
    for round_, signal in ((3, "wait"), (1, "reward"), (3, "spend"), (0, "wait")):
        tell(agent, decisions[round_], signal)
        assert (agent.state.memory.tobytes() != memory, agent.buffered_count) == (True, 0)
        memory = agent.state.memory.tobytes()


def test_by_arrival_a_shared_row_waits_for_its_own_signals_only() -> None:
    agent, decisions = started(TWO, learning_order="arrival")
    tell(agent, decisions[3], "reward", "wait")
    assert (agent.buffered_count, agent.pending_count) == (1, COUNT)
    tell(agent, decisions[3], "spend")
    assert (agent.buffered_count, agent.pending_count) == (0, COUNT - 1)
    by_hand, same = started(TWO, learning_order="arrival")
    by_hand.learn(same[3], value_of(3, "reward"), [value_of(3, "spend"), value_of(3, "wait")])
    assert agent.state.memory.tobytes() == by_hand.state.memory.tobytes()


@every
def test_giving_up_lets_the_rest_be_learned(policy: Any) -> None:
    agent, decisions = started(policy)
    for decision in decisions[1:]:
        tell(agent, decision, *SIGNALS)
    tell(agent, decisions[0], "reward", "spend")
    assert (agent.pending_count, agent.buffered_count) == (
        1,
        COUNT if not policy.separate_models else COUNT - 1,
    )
    assert agent.drop_pending(before_round=1) == 1
    assert (agent.pending_count, agent.buffered_count) == (0, 0)
    with refused(InvalidOutcome, ErrorCode.OUTCOME_ALREADY_KNOWN):
        tell(agent, decisions[0], "wait")


# What is refused, and changes nothing.


def test_names_are_those_of_the_policy_and_truths_are_welcome() -> None:
    class Clicks(OPB):
        reward_name = "click"

    policy = Clicks(arms=3, safe_action=SafeAction(arm=0, reward=0.1, cost=0.0), threshold={"opt_out": 0.2})
    agent, by_hand = Agent(policy), Agent(policy)
    first, second = agent.decide(ArmSet(3)), by_hand.decide(ArmSet(3))
    agent.learn(first.id, click=True)
    agent.learn(first.id, opt_out=np.False_)
    by_hand.learn(second, reward=1.0, cost=0.0)
    assert agent.state.memory.tobytes() == by_hand.state.memory.tobytes()
    with refused(InvalidOutcome, ErrorCode.UNKNOWN_SIGNAL):
        agent.learn(agent.decide(ArmSet(3)), clik=True)


WRONG: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a name that is near": ({"wiat": 0.1}, [ErrorCode.UNKNOWN_SIGNAL]),
    "a name that is far": ({"zzz": 0.1}, [ErrorCode.UNKNOWN_SIGNAL]),
    "one of two unknown": ({"spend": 0.1, "x": 0.1}, [ErrorCode.UNKNOWN_SIGNAL]),
    "no number": ({"spend": "much"}, [ErrorCode.WRONG_TYPE]),
    "nothing": ({"spend": None}, [ErrorCode.WRONG_TYPE]),
    "not finite": ({"wait": NAN}, [ErrorCode.NOT_FINITE]),
    "no outcome": ({}, [ErrorCode.OUTCOME_MISSING]),
    "twice": ({"cost": [0.1, 0.2], "wait": 0.2}, [ErrorCode.DUPLICATE_NAME]),
    "a part of the costs as cost": (
        {"cost": {"spend": 0.1}},
        [ErrorCode.UNKNOWN_NAME],
    ),
    "a missing reward": ({"reward": None, "spend": 0.1}, [ErrorCode.WRONG_TYPE]),
}


@pytest.mark.parametrize(("outcome", "parts"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("policy", [TWO, APART["LCLUCB"]], ids=["together", "apart"])
def test_a_part_that_is_wrong_changes_nothing(policy: Any, outcome: dict[str, Any], parts: list[str]) -> None:
    agent, decisions = started(policy)
    tell(agent, decisions[0], "reward")
    before = remembered(agent), agent.buffered_count
    with refused(InvalidOutcome, *parts):
        agent.learn(decisions[1], **outcome)
    assert (remembered(agent), agent.buffered_count) == before


@every
def test_a_signal_counts_once(policy: Any) -> None:
    agent, decisions = started(policy)
    for round_ in (0, 2):
        tell(agent, decisions[round_], "reward", "wait")
        before = remembered(agent), agent.buffered_count
        for again in (value_of(round_, "reward"), 0.9):
            for outcome in ({"reward": again}, {"reward": again, "spend": 0.1}):
                with refused(InvalidOutcome, ErrorCode.OUTCOME_ALREADY_KNOWN):
                    agent.learn(decisions[round_], **outcome)
        assert (remembered(agent), agent.buffered_count) == before
    tell(agent, decisions[0], "spend")
    with refused(InvalidOutcome, ErrorCode.OUTCOME_ALREADY_KNOWN):
        tell(agent, decisions[0], "spend")


def test_a_policy_of_three_verbs_has_no_names() -> None:
    agent = Agent(ThreeVerbs())
    decision = agent.decide(None)
    for outcome in ({"click": 1.0}, {"cost": 1.0}, {}):
        with refused(InvalidOutcome, ErrorCode.UNSUPPORTED):
            agent.learn(decision, **outcome)
    agent.learn(decision.id, reward=1.0)
    assert agent.state.memory.tolist() == [1.0]


# What waits, told.


def test_what_waits_is_told_by_signal() -> None:
    agent, decisions = started(APART["LCLUCB"])
    for decision in decisions[1:]:
        tell(agent, decision, "reward")
    tell(agent, decisions[0], "spend")
    pending = agent.pending_summary()
    assert pending["reward"][1:4] == (1, decisions[0].id, COUNT - 1)  # missing, oldest, buffered
    assert pending["spend"][1:4] == (COUNT - 1, decisions[1].id, 0)
    assert decisions[0].id in pending["reward"].why
    assert "wait" in pending["wait"].why
    assert [line["signal"] for line in pending.to_dict()] == list(SIGNALS)
    assert len(str(pending).splitlines()) == 1 + len(SIGNALS)
    with pytest.raises(KeyError):
        pending["clicks"]


def test_where_signals_are_together_the_missing_one_is_named() -> None:
    agent, decisions = started(TWO)
    tell(agent, decisions[0], "reward", "wait")
    tell(agent, decisions[1], *SIGNALS)
    for signal in ("reward", "wait"):
        line = agent.pending_summary()[signal]
        assert line[1:4] == (COUNT - 2, decisions[2].id, 2)  # missing, oldest, buffered
        assert decisions[0].id in line.why
        assert "spend" in line.why
    for decision in decisions:
        for signal in SIGNALS:
            if decision.round > 1 or (decision.round == 0 and signal == "spend"):
                tell(agent, decision, signal)
    assert all(line[1:] == (0, None, 0, 0, "") for line in agent.pending_summary())


# Copies and files.


@every
def test_what_is_partly_known_survives_copies_and_files(policy: Any, tmp_path: Path) -> None:
    agent, decisions = started(policy)
    for round_, signal in ((0, "reward"), (2, "reward"), (2, "spend"), (1, "wait"), (3, "reward"), (3, "wait")):
        tell(agent, decisions[round_], signal)
    tell(agent, decisions[3], "spend")
    agent.save(tmp_path / "agent.json")
    others = [Agent.load(tmp_path / "agent.json"), copy.deepcopy(agent)]
    for other in others:
        assert (remembered(other), other.buffered_count) == (remembered(agent), agent.buffered_count)
        assert other.pending_summary().to_dict() == agent.pending_summary().to_dict()
        with refused(InvalidOutcome, ErrorCode.OUTCOME_ALREADY_KNOWN):
            other.learn(decisions[0].id, reward=0.3)
    rest = [(4, signal) for signal in SIGNALS]
    rest += [(0, "spend"), (0, "wait"), (1, "reward"), (1, "spend"), (2, "wait")]
    for other in (agent, *others):
        for round_, signal in reversed(rest):
            tell(other, decisions[round_], signal)
        assert (other.pending_count, other.buffered_count) == (0, 0)
        assert other.state.memory.tobytes() == whole(policy)


def test_one_matrix_for_all_costs_is_refused_where_they_are_apart() -> None:
    with refused(InvalidProblem, ErrorCode.CONFLICTING_SETTINGS):
        OPLB(**TOLD, separate_models=True, method="socp")
    with refused(InvalidActions, ErrorCode.UNSUPPORTED_ACTIONS):
        Agent(APART["LCLUCB"]).decide(BallSet(0.5))
    one = LCLUCB(safe_action=ORIGIN, threshold=0.5, noise=0.1, separate_models=True)
    assert np.array_equal(Agent(one).decide(BallSet(0.5)).action, Agent(ONE).decide(BallSet(0.5)).action)
