"""One learner, many deciders: ids, streams of random numbers, snapshots, registration, and restarts."""

import copy
import json
import math
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.policies.agents import NAMED, ONE, ORIGIN, PULLS, TWO, WITH_ONE_COST, choices, remembered
from tests.policies.refusals import refused_with
from tests.policies.test_agent import ThreeVerbs
from tests.problem.refusal import refused

from stagewise import (
    LCLUCB,
    OPB,
    RBF,
    Agent,
    ArmSet,
    InvalidActions,
    InvalidFile,
    InvalidOutcome,
    InvalidProblem,
    KernelOPLB,
    Limit,
    OutcomeWindow,
    Problem,
    RandomKey,
    Replica,
    Reward,
    SafeAction,
    SafePosteriorSampling,
    Snapshot,
)
from stagewise.agent.identity import derive_stream
from stagewise.engine.layout import CACHED
from stagewise.policies.policy import PlayedAction
from stagewise.problem.errors import ErrorCode

OWN = SafePosteriorSampling(safe_action=ORIGIN, threshold=0.5, noise=0.1)
SPACE = KernelOPLB(
    safe_action=SafeAction(features=[0.0, 0.0], reward=0.0, cost=0.0), threshold=0.5, noise=0.1, norm_bound=1.0,
    kernel=RBF(lengthscale=1.0),
)  # fmt: skip
EVERY = WITH_ONE_COST | {"CAPS": OWN, "KernelOPLB": SPACE}
every = pytest.mark.parametrize("policy", EVERY.values(), ids=EVERY)


def through(decision: Any) -> Any:
    """Return a decision as it is after a trip as JSON."""
    return json.loads(json.dumps(decision.to_dict(), allow_nan=False))


def taught(policy: Any, rounds: int = 5, **settings: Any) -> Agent:
    agent = Agent(policy, seed=7, **settings)
    for round_ in range(rounds):
        agent.learn(agent.decide(choices(policy)), reward=0.1 * round_, cost=0.05)
    return agent


# Ids.


def test_an_id_follows_from_seed_name_and_round() -> None:
    made = {
        (seed, name, round_): decision.id
        for seed in (0, 1, 2**64 - 1)
        for name in ("", "a", "b")
        for agent in [Agent(PULLS, seed=seed, name=name)]
        for round_, decision in enumerate(agent.decide(ArmSet(3)) for _ in range(3))
    }
    assert len(set(made.values())) == len(made)
    assert Agent(PULLS, seed=1, name="a").decide(ArmSet(3)).id == made[1, "a", 0]
    assert made[0, "", 2] == "24c4050f5ca52e7f-000000000002"  # once and for all: outcomes may come years later


def test_a_decision_is_answered_by_its_id_after_a_restart(tmp_path: Path) -> None:
    agent = Agent(ONE, seed=4)
    ids = [agent.decide(np.eye(2)).id for _ in range(3)]
    agent.save(tmp_path / "agent.json")
    other = Agent.load(tmp_path / "agent.json")
    for id_ in ids:
        other.learn(id_, reward=0.5, cost=0.1)
    assert other.pending_count == 0
    assert other.decide(np.eye(2)).id == agent.decide(np.eye(2)).id
    with refused(InvalidOutcome, ErrorCode.OUTCOME_ALREADY_KNOWN):
        other.learn(ids[0], reward=0.5, cost=0.1)


@pytest.mark.parametrize(
    "id_", ["", "-", "0", "x-000000000000", "24c4050f5ca52e7f-0", "24c4050f5ca52e7f-000000000009", "a" * 500], ids=str
)
def test_an_id_that_is_none_of_its_own_is_refused(id_: str) -> None:
    agent = Agent(ONE)
    assert agent.decide(np.eye(2)).id.startswith("24c4050f5ca52e7f-")
    before = remembered(agent)
    with refused(InvalidOutcome, ErrorCode.UNKNOWN_DECISION):
        agent.learn(id_, reward=0.5, cost=0.1)
    assert remembered(agent) == before


def test_another_agents_decision_is_told_by_its_id() -> None:
    agent, other = Agent(ONE, seed=1), Agent(ONE, seed=2)
    agent.decide(np.eye(2))
    with refused(InvalidOutcome, ErrorCode.UNKNOWN_DECISION):
        agent.learn(other.decide(np.eye(2)), reward=0.5, cost=0.1)


def test_a_name_changes_the_draws_and_without_one_they_are_the_seeds() -> None:
    def drawn(agent: Any) -> list[int]:
        return [agent.decide(ArmSet(3)).action for _ in range(60)]

    seed = 2**63 + 5
    by_hand = [PULLS.decide(PULLS.start(), ArmSet(3), RandomKey(seed - 2**64, 0, r)).action for r in range(60)]
    assert drawn(Agent(PULLS, seed=seed)) == by_hand
    assert drawn(Agent(PULLS, seed=seed, name="a")) == drawn(Agent(PULLS, seed=seed, name="a"))
    others = [drawn(Agent(PULLS, seed=seed, name=name)) for name in ("", "a", "b")]
    snapshot = Agent(PULLS, seed=seed).replica_snapshot()
    others += [drawn(Replica(snapshot, name=name)) for name in ("a", "b")]
    assert len({tuple(one) for one in others}) == 5


def test_many_names_have_streams_of_their_own() -> None:
    streams = {derive_stream(seed, "", f"pod-{i}") for seed in range(10) for i in range(500)}
    streams |= {derive_stream(seed, "") for seed in range(10)}
    assert len(streams) == 5010
    assert all(-(2**63) <= key < 2**63 and 0 <= run < 2**32 for key, run in streams)
    assert {key for key, run in streams if run == 0} == set(range(10))


@pytest.mark.parametrize("name", [None, 3, b"a", "x" * 201, ["a"]], ids=lambda value: repr(value)[:20])
def test_a_name_that_is_none_is_refused(name: Any) -> None:
    snapshot = Agent(ONE).replica_snapshot()
    for make in (lambda: Agent(ONE, name=name), lambda: Replica(snapshot, name=name)):
        with refused(InvalidProblem, ErrorCode.INVALID_NAME):
            make()
    with refused(InvalidProblem, ErrorCode.INVALID_NAME):
        Replica(snapshot, name="")


def test_after_a_crash_a_new_name_gives_no_id_and_no_draw_again(tmp_path: Path) -> None:
    agent = Agent(PULLS, seed=5)
    kept = [agent.decide(ArmSet(3)) for _ in range(20)]
    agent.save(tmp_path / "agent.json")
    lost = [agent.decide(ArmSet(3)) for _ in range(20)]  # and then the process dies
    again = Agent.load(tmp_path / "agent.json", name="second life")
    fresh = [again.decide(ArmSet(3)) for _ in range(20)]
    assert {one.id for one in lost} & {one.id for one in fresh} == set()
    assert [one.action for one in lost] != [one.action for one in fresh]
    with refused(InvalidOutcome, ErrorCode.UNKNOWN_DECISION):
        again.learn(lost[0].id, reward=0.5, cost=0.1)
    again.save(tmp_path / "agent.json")
    third = Agent.load(tmp_path / "agent.json")
    assert third.name == "second life"
    for decision in [*kept, *fresh]:
        third.learn(decision.id, reward=0.5, cost=0.1)
    assert (third.pending_count, third.buffered_count) == (0, 0)
    with refused(InvalidProblem, ErrorCode.DUPLICATE_NAME):
        Agent.load(tmp_path / "agent.json", name="")


# Snapshots.


@every
def test_a_snapshot_survives_bytes_and_plain_values_to_the_bit(policy: Any) -> None:
    snapshot = taught(policy).replica_snapshot()
    for again in (
        Snapshot.from_bytes(bytes(snapshot)),
        Snapshot.from_dict(json.loads(json.dumps(snapshot.to_dict()))),
        pickle.loads(pickle.dumps(snapshot)),
        copy.deepcopy(snapshot),
    ):
        assert (again, hash(again)) == (snapshot, hash(snapshot))
        first, second = Replica(again, name="a"), Replica(snapshot, name="a")
        for _ in range(5):
            assert first.decide(choices(policy)).to_dict() == second.decide(choices(policy)).to_dict()


@every
def test_a_snapshot_does_not_change(policy: Any) -> None:
    agent = taught(policy)
    snapshot = agent.replica_snapshot()
    before = bytes(snapshot)
    replica = Replica(snapshot, name="a")
    for _ in range(3):
        replica.decide(choices(policy))
        agent.learn(agent.decide(choices(policy)), reward=0.9, cost=0.0)
    snapshot.state.memory[:] = 0.0
    assert bytes(snapshot) == before
    assert agent.replica_snapshot().version > snapshot.version


def test_the_version_tells_how_much_was_learned(tmp_path: Path) -> None:
    agent = taught(ONE)
    first = agent.replica_snapshot()
    late = agent.decide(np.eye(2))
    assert agent.replica_snapshot().version == first.version
    agent.learn(late, reward=0.1)
    assert agent.replica_snapshot().version == first.version
    agent.learn(late, cost=0.1)
    assert agent.replica_snapshot().version == first.version + 1
    agent.save(tmp_path / "agent.json")
    assert Agent.load(tmp_path / "agent.json").replica_snapshot() == agent.replica_snapshot()
    agent.learn_log(np.eye(2), [0.1, 0.2], [0.1, 0.2])
    assert agent.replica_snapshot().version > first.version + 1


SPOILED: dict[str, Any] = {
    "nothing": lambda told: None,
    "a list": lambda told: [told],
    "another format": lambda told: {**told, "format": "stagewise-agent"},
    "another version": lambda told: {**told, "version": 2},
    "no memory": lambda told: {k: v for k, v in told.items() if k != "memory"},
    "a memory cut short": lambda told: {**told, "memory": told["memory"][:-1]},
    "a memory that is not finite": lambda told: {**told, "memory": [float("nan"), *told["memory"][1:]]},
    "a policy of text": lambda told: {**told, "policy": "LCLUCB"},
    "a refused setting": lambda told: {**told, "policy": {"kind": "OPB", "settings": {"arms": -1}}},
    "a seed of text": lambda told: {**told, "seed": "7"},
    "a name of nothing": lambda told: {**told, "agent_name": None},
    "a negative count": lambda told: {**told, "learned": -1},
}


@pytest.mark.parametrize("change", SPOILED.values(), ids=SPOILED)
def test_a_spoiled_snapshot_is_refused(change: Any) -> None:
    told = taught(ONE).replica_snapshot().to_dict()
    codes = ErrorCode.FILE_CORRUPT, ErrorCode.FILE_INVALID, ErrorCode.STATE_MISMATCH, ErrorCode.WRONG_TYPE
    with refused_with(InvalidFile, *codes):
        Snapshot.from_dict(change(told))
    assert Snapshot.from_dict(told) == taught(ONE).replica_snapshot()


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", 3, None], ids=repr)
def test_bytes_that_are_none_of_a_snapshot_are_refused(content: Any) -> None:
    with refused(InvalidFile, ErrorCode.WRONG_TYPE):
        Snapshot.from_bytes(content)


def test_what_a_file_cannot_name_has_no_snapshot() -> None:
    with refused(InvalidProblem, ErrorCode.NOT_SERIALIZABLE):
        Agent(ThreeVerbs()).replica_snapshot()


# Replicas.

WAYS = {"plain": through, "itself": lambda decision: decision, "pickle": lambda one: pickle.loads(pickle.dumps(one))}


@every
@pytest.mark.parametrize("sent", WAYS.values(), ids=WAYS)
def test_what_replicas_did_is_learned_as_if_the_learner_had(policy: Any, sent: Any) -> None:
    """A learner that makes the same decisions itself, answered in the same order, has the same memory to the bit."""
    agent, witness = taught(policy), taught(policy)
    replicas = [Replica(agent.replica_snapshot(), name=name) for name in ("a", "b")]
    made = [replica.decide(choices(policy)) for _ in range(4) for replica in replicas]
    state = witness.state
    for place, decision in enumerate(made):
        assert agent.register_decision(sent(decision)) == 5 + place
    for place in (6, 1, 0, 7, 3, 2, 5, 4):
        agent.learn(made[place].id, reward=0.02 * place, cost=0.01 * place)
    for decision in made:
        state = policy.cache_offered(state, decision)
    for place, decision in enumerate(made):
        state = policy.learn_in_place(
            state, PlayedAction.from_decision(decision), policy.values(0.02 * place, 0.01 * place)
        )
    assert (agent.pending_count, agent.buffered_count, agent.round) == (0, 0, 13)
    assert agent.state.memory.tobytes() == state.memory.tobytes()


def test_a_replica_decides_by_what_its_snapshot_knows() -> None:
    agent = taught(ONE)
    replica = Replica(agent.replica_snapshot(), name="a")
    before = replica.decide(np.eye(2)).optimistic_reward
    for _ in range(20):
        agent.learn(agent.decide(np.eye(2)), reward=0.1, cost=0.01)
    assert replica.decide(np.eye(2)).optimistic_reward == before
    old, new = replica._snapshot, agent.replica_snapshot()
    assert replica.update(new)
    assert replica.version == new.version
    assert replica.decide(np.eye(2)).optimistic_reward == agent.decide(np.eye(2)).optimistic_reward != before
    assert not replica.update(old), "one that knows less is left"
    assert replica.version == new.version
    assert replica.update(Snapshot.from_bytes(bytes(new)))
    with refused(InvalidProblem, ErrorCode.STATE_MISMATCH):
        replica.update(taught(LCLUCB(safe_action=ORIGIN, threshold=0.4, noise=0.1)).replica_snapshot())
    with refused(InvalidProblem, ErrorCode.STATE_MISMATCH):
        replica.update(Agent(ONE, seed=8).replica_snapshot())
    with refused(InvalidProblem, ErrorCode.WRONG_TYPE):
        replica.update("snapshot")  # type: ignore[arg-type]


def test_a_snapshot_from_before_an_alert_that_comes_late_is_not_used() -> None:
    """Reported costs raise an alert before they are learned, so both snapshots have one number of updates."""
    reward, limits = Reward("click"), {"opt_out": Limit(0.02, safe_bound=0.0)}
    problem = Problem(action_names=["nothing", "offer"], safe_name="nothing", reward=reward, limits=limits)
    agent = Agent(problem, seed=7)
    agent.learn_log_frame({"action": ["offer"] * 2000, "click": [1.0] * 2000, "opt_out": [0.0] * 2000})
    made = [agent.decide(propose="offer") for _ in range(60)]
    early = agent.replica_snapshot()
    for decision in made[1:]:  # the first has no outcome, so nothing is learned
        agent.learn(decision, click=1.0, opt_out=1.0)
    alerted = agent.replica_snapshot()
    assert early.version == alerted.version
    replica = Replica(early, name="pod")
    assert [replica.update(one) for one in (alerted, early, alerted)] == [True, False, True]
    assert replica.decide(propose="offer").action == "nothing"
    agent.acknowledge_alert("limit of opt_out", "Ana: a broken feed")
    acknowledged = agent.replica_snapshot()
    assert [replica.update(one) for one in (acknowledged, alerted)] == [True, False]
    assert replica.decide(propose="offer").action == "offer"


def test_candidates_that_come_back_are_followed_for_replicas_too() -> None:
    """CAPS keeps sets of their own for them: without, replicas would learn slower than the learner itself."""
    agent, alone = Agent(OWN, seed=1), Agent(OWN, seed=1)
    for round_ in range(30):
        replica = Replica(Snapshot.from_bytes(bytes(agent.replica_snapshot())), name=f"pod-{round_}")
        decision = replica.decide(np.eye(2))
        assert ("offered" in decision.to_dict()) == (round_ == 0)
        agent.register_decision(through(decision))
        agent.learn(decision.id, reward=0.3, cost=0.1)
        alone.learn(alone.decide(np.eye(2)), reward=0.3, cost=0.1)
    assert agent.state.memory[CACHED] == alone.state.memory[CACHED] == 2.0
    assert agent.state.memory.shape == alone.state.memory.shape


def test_a_replica_is_told_the_time_as_an_agent_is() -> None:
    agent, other = Agent(PULLS, seed=3), Agent(PULLS, seed=3)
    replica, silent = Replica(agent.replica_snapshot(), name="a"), Replica(other.replica_snapshot(), name="a")
    for now in (math.nan, "soon", True):
        with refused_with(InvalidOutcome, ErrorCode.NOT_FINITE, ErrorCode.WRONG_TYPE, names="now"):
            replica.decide(choices(PULLS), now=now)
    assert replica.round == 0
    assert replica.decide(choices(PULLS), now=12.5).to_dict() == silent.decide(choices(PULLS)).to_dict()


def test_a_replica_that_goes_on_gives_no_id_again() -> None:
    snapshot = Agent(PULLS).replica_snapshot()
    first, whole = Replica(snapshot, name="a"), Replica(snapshot, name="a")
    made = [first.decide(ArmSet(3)) for _ in range(5)]
    second = Replica(snapshot, name="a", round=first.round)
    made += [second.decide(ArmSet(3)) for _ in range(5)]
    assert [one.to_dict() for one in made] == [whole.decide(ArmSet(3)).to_dict() for _ in range(10)]


def test_threads_may_share_a_replica() -> None:
    replica = Replica(Agent(PULLS).replica_snapshot(), name="a")
    replica.decide(ArmSet(3))
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            ids = list(threads.map(lambda _: replica.decide(ArmSet(3)).id, range(400)))
    finally:
        sys.setswitchinterval(before)
    assert len(set(ids)) == 400


# Registration.


def test_the_learners_own_decisions_and_registered_ones_are_in_one_order() -> None:
    agent = Agent(ONE, seed=3)
    replica = Replica(agent.replica_snapshot(), name="a")
    one, other = agent.decide(np.eye(2)), replica.decide(np.eye(2))
    assert agent.register_decision(other) == 1
    last = agent.decide(np.eye(2))
    assert (one.round, last.round, agent.round, agent.pending_count) == (0, 2, 3, 3)
    agent.learn(other.id, reward=0.1, cost=0.1)
    agent.learn(last, reward=0.1, cost=0.1)
    assert agent.buffered_count == 2
    assert agent.pending_summary()["cost"].oldest == one.id
    agent.learn(one.id, reward=0.1, cost=0.1)
    assert (agent.buffered_count, agent.pending_count) == (0, 0)


def test_an_id_of_ones_own_that_a_crash_lost_does_not_answer_what_was_registered_in_its_place(tmp_path: Path) -> None:
    agent = Agent(ONE, seed=3)
    agent.save(tmp_path / "agent.json")
    lost = agent.decide(np.eye(2))
    again = Agent.load(tmp_path / "agent.json")
    again.register_decision(Replica(again.replica_snapshot(), name="a").decide(np.eye(2)))
    again.save(tmp_path / "agent.json")
    for one in (again, Agent.load(tmp_path / "agent.json")):
        for given in (lost, lost.id):
            with refused(InvalidOutcome, ErrorCode.UNKNOWN_DECISION):
                one.learn(given, reward=0.1, cost=0.1)
        one.learn(0, reward=0.1, cost=0.1)


def test_outcomes_of_a_decision_that_was_not_registered_are_refused() -> None:
    agent = Agent(ONE)
    decision = Replica(agent.replica_snapshot(), name="a").decide(np.eye(2))
    before = remembered(agent)
    for given in (decision, decision.id):
        with refused(InvalidOutcome, ErrorCode.UNKNOWN_DECISION):
            agent.learn(given, reward=0.1, cost=0.1)
    assert remembered(agent) == before


def test_a_decision_is_registered_once_and_answered_once() -> None:
    agent = Agent(ONE)
    replica = Replica(agent.replica_snapshot(), name="a")
    made = [replica.decide(np.eye(2)) for _ in range(300)]
    for decision in made:
        agent.register_decision(decision)
        with refused(InvalidOutcome, ErrorCode.OUTCOME_ALREADY_KNOWN):
            agent.register_decision(decision)
        agent.learn(decision.id, reward=0.1, cost=0.1)
    for decision in made:
        with refused(InvalidOutcome, ErrorCode.OUTCOME_ALREADY_KNOWN):
            agent.register_decision(through(decision))
        with refused_with(InvalidOutcome, ErrorCode.OUTCOME_ALREADY_KNOWN, ErrorCode.UNKNOWN_DECISION):
            agent.learn(decision, reward=0.1, cost=0.1)
    assert (agent.round, agent.pending_count) == (300, 0)
    assert len(pickle.dumps(agent)) < len(pickle.dumps(Agent(ONE))) + 10_000, "what is answered is let go"


def test_decisions_may_be_registered_in_any_order_and_some_never() -> None:
    agent = Agent(ONE)
    replica = Replica(agent.replica_snapshot(), name="a")
    made = [replica.decide(np.eye(2)) for _ in range(12)]
    for place in (5, 0, 1, 9, 3, 2, 11):
        agent.register_decision(made[place])
    for place in (2, 11, 3, 0, 5, 1, 9):
        agent.learn(made[place].id, reward=0.1, cost=0.1)
    assert agent.pending_count == 0


BAD: dict[str, Any] = {
    "nothing": (lambda told: None, InvalidOutcome, ErrorCode.WRONG_TYPE),
    "an id alone": (lambda told: told["id"], InvalidOutcome, ErrorCode.WRONG_TYPE),
    "no action": (lambda told: {k: v for k, v in told.items() if k != "action"}, InvalidOutcome, ErrorCode.WRONG_TYPE),
    "an id of nothing": (lambda told: {**told, "id": None}, InvalidOutcome, ErrorCode.UNKNOWN_DECISION),
    "an id of no decision": (lambda told: {**told, "id": "a"}, InvalidOutcome, ErrorCode.UNKNOWN_DECISION),
    "another agents id": (
        lambda told: {**told, "id": f"0{told['id'][1:]}"},
        InvalidOutcome,
        ErrorCode.UNKNOWN_DECISION,
    ),
    "the learners own id": (
        lambda told: {**told, "id": told["id"][:16] + told["id"][33:]},
        InvalidOutcome,
        ErrorCode.UNKNOWN_DECISION,
    ),
    "an action of text": (lambda told: {**told, "action": "x"}, InvalidOutcome, ErrorCode.UNKNOWN_ACTION),
    "an action too short": (lambda told: {**told, "action": [0.1]}, InvalidOutcome, ErrorCode.UNKNOWN_ACTION),
    "an action that is not finite": (
        lambda told: {**told, "action": [0.1, None]},
        InvalidOutcome,
        ErrorCode.UNKNOWN_ACTION,
    ),
    "an index of text": (lambda told: {**told, "action_index": "x"}, InvalidOutcome, ErrorCode.WRONG_TYPE),
    "a step of nothing": (lambda told: {**told, "step_size": None}, InvalidOutcome, ErrorCode.WRONG_TYPE),
    "offered numbers": (lambda told: {**told, "offered": 3}, InvalidActions, ErrorCode.WRONG_SHAPE),
    "offered too little": (lambda told: {**told, "offered": [[0.1]]}, InvalidActions, ErrorCode.DIMENSION_MISMATCH),
}


@pytest.mark.parametrize(("change", "kind", "part"), BAD.values(), ids=BAD)
def test_a_decision_that_cannot_be_is_not_registered(change: Any, kind: Any, part: str) -> None:
    agent = Agent(ONE, seed=2)
    told = through(Replica(agent.replica_snapshot(), name="a").decide(np.eye(2)))
    if "offered" not in told:
        told["offered"] = np.eye(2).tolist()
    before = remembered(agent)
    with refused(kind, part):
        agent.register_decision(change(told))
    assert remembered(agent) == before
    agent.register_decision(told)


def test_a_policy_of_three_verbs_registers_nothing() -> None:
    decision = Replica(Agent(ONE).replica_snapshot(), name="a").decide(np.eye(2))
    with refused(InvalidProblem, ErrorCode.UNSUPPORTED):
        Agent(ThreeVerbs()).register_decision(decision)


def test_a_registered_decision_is_as_old_as_its_registration() -> None:
    agent = Agent(PULLS, seed=2, windows={"cost": OutcomeWindow("1h", missing=0.0)})
    replica = Replica(agent.replica_snapshot(), name="a")
    decision = replica.decide(ArmSet(3))
    agent.register_decision(decision, now=100.0)
    agent.learn(decision.id, reward=0.5, now=200.0)
    assert (agent.expire_pending(3699.0), agent.expire_pending(3700.0), agent.pending_count) == (0, 1, 0)


# Restarts.


@pytest.mark.parametrize("policy", [ONE, OWN, PULLS, TWO], ids=["LCLUCB", "CAPS", "OPB", "OPLB"])
def test_a_learner_that_is_killed_goes_on_from_its_file_and_the_log(policy: Any, tmp_path: Path) -> None:
    """Whatever was logged after the last save is given again, and the memory is the same to the bit."""
    costs = [0.05] * len(policy.thresholds.names)

    def play(agent: Agent, log: list[Any], first: int) -> None:
        for kind, content in log[first:]:
            if kind == "decision":
                agent.register_decision(content)
            else:
                agent.learn(content, reward=0.3, cost=costs)

    learner = Agent(policy, seed=9)
    replicas, log = [Replica(learner.replica_snapshot(), name=name) for name in ("a", "b")], []
    for step in range(12):
        decision = replicas[step % 2].decide(choices(policy))
        log.append(("decision", through(decision)))
        if step >= 3:
            log.append(("outcome", log[0][1]["id"] if step == 3 else decision.id))
    ids = [content["id"] for kind, content in log if kind == "decision"]
    answered = {content for kind, content in log if kind == "outcome"}
    log += [("outcome", id_) for id_ in reversed(ids) if id_ not in answered]
    play(learner, log, 0)
    for cut in (3, 8, 15, len(log)):
        first = Agent(policy, seed=9)
        play(first, log[:cut], 0)
        first.save(tmp_path / f"{cut}.json")
        again = Agent.load(tmp_path / f"{cut}.json")
        with refused(InvalidOutcome, ErrorCode.OUTCOME_ALREADY_KNOWN):
            play(again, log, 0)
        play(again, log, cut)
        assert remembered(again) == remembered(learner)
        assert (again.pending_count, again.buffered_count) == (0, 0)


def test_a_copy_registers_by_itself() -> None:
    agent = Agent(ONE, seed=2)
    decision = Replica(agent.replica_snapshot(), name="a").decide(np.eye(2))
    other = copy.deepcopy(agent)
    other.register_decision(decision)
    assert (agent.pending_count, other.pending_count) == (0, 1)
    agent.register_decision(decision)


def test_names_that_are_apart_go_through_replicas_too() -> None:
    policy = OPB(arms=3, safe_action=SafeAction(arm=0, cost=[0.0, 0.0]), threshold=NAMED, separate_models=True)
    agent = Agent(policy, seed=2)
    made = [Replica(agent.replica_snapshot(), name=name).decide(ArmSet(3)) for name in "ab"]
    for decision in made:
        agent.register_decision(through(decision))
    agent.learn(made[1].id, wait=True)
    agent.learn(made[0].id, wait=False)
    assert (agent.buffered_count, agent.pending_count) == (0, 2)
