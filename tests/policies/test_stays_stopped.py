"""What stops a problem's agent stops it everywhere, and what would select outcomes by what they are is refused."""

from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refuses

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.records.reason import Contradiction


def problem(**changes: Any) -> sw.Problem:
    told: dict[str, Any] = {
        "action_names": ["today", "new"],
        "safe_name": "today",
        "reward": sw.Reward("click"),
        "limits": {
            "a": sw.Limit(0.3, safe_bound=0.01, model="rates"),
            "b": sw.Limit(0.3, safe_bound=0.01, model="rates"),
        },
    }
    return sw.Problem(**told | changes)


def contradicted(agent: sw.Agent, **rates: float) -> None:
    """Learn a log of what is done today, with these rates."""
    frame: dict[str, Any] = {"action": ["today"] * 400, "click": [0.1] * 400}
    frame |= {name: [1.0] * int(400 * rate) + [0.0] * (400 - int(400 * rate)) for name, rate in rates.items()}
    agent.learn_log_frame(frame)


def limit_at_fault(decision: sw.Decision) -> str | None:
    """Return the limit whose declared safe cost the data contradict."""
    cause = decision.reason_details
    if cause is None or cause.reason is not sw.FallbackReason.ASSUMPTION_CONTRADICTED:
        return None
    assert (cause.details["found"], cause.details["declared"]) == (Contradiction.SAFE_COST_OF_A_USER, 0.01)
    return str(cause.details["limit"])


def test_acknowledging_one_contradiction_leaves_the_others() -> None:
    agent = sw.Agent(problem(), seed=1)
    contradicted(agent, a=0.1, b=0.1)
    assert limit_at_fault(agent.decide()) == "a"
    agent.acknowledge_alert("safe cost of a", "seen, and fine")
    assert limit_at_fault(agent.decide()) == "b"
    agent.acknowledge_alert("safe cost of b", "this too")
    assert limit_at_fault(agent.decide()) is None


def test_a_replica_stays_safe_while_its_learner_is_in_doubt() -> None:
    segmented = problem(limits={"a": sw.Limit(0.3, safe_bound=0.01, by="country")})
    agent = sw.Agent(segmented, seed=1)
    frame = {"action": ["today"] * 400, "click": [0.1] * 400, "a": [1.0] * 40 + [0.0] * 360, "country": ["NZ"] * 400}
    agent.learn_log_frame(frame)
    assert limit_at_fault(agent.decide({"country": "NZ"})) == "a"
    replica = sw.Replica(agent.replica_snapshot(), name="pod")
    decision = replica.decide({"country": "AU"})
    assert decision.action == "today"
    assert limit_at_fault(decision) == "a"
    again = sw.Snapshot.from_bytes(bytes(agent.replica_snapshot()))
    assert limit_at_fault(sw.Replica(again, name="other").decide({"country": "AU"})) == "a"


def test_what_comes_in_time_is_taken_beside_what_comes_late() -> None:
    windowed = problem(
        reward=sw.Reward("click", window="12h"),
        limits={"a": sw.Limit(0.3, safe_bound=0.01, window="7d", model="rates")},
    )
    agent = sw.Agent(windowed, seed=1)
    decision = agent.decide(now=0.0)
    refuses(lambda: agent.learn(decision.id, click=1, a=1, now=86400.0), sw.InvalidOutcome, ErrorCode.OUTCOME_TOO_LATE)
    assert (agent.pending_count, agent.buffered_count) == (0, 0)
    details = agent.health()["safe cost of a"].details
    assert (details["declared"], details["at_most"], details["count"], details["mean"]) == (0.01, True, 1, 1.0)


def test_when_an_outcome_is_learned_may_not_depend_on_what_it_is() -> None:
    windowed = problem(limits={"a": sw.Limit(0.3, safe_bound=0.01, window="7d", model="rates")})
    refuses(lambda: sw.Agent(windowed, learning_order="arrival"), sw.InvalidProblem, ErrorCode.CONFLICTING_SETTINGS)
    agent = sw.Agent(windowed, seed=1)
    agent.decide(now=0.0)
    refuses(lambda: agent.drop_pending(1), sw.InvalidOutcome, ErrorCode.UNSUPPORTED)
    refuses(lambda: agent.decide(now=1.7e12), sw.InvalidOutcome, ErrorCode.INVALID_TIME)
    assert agent.pending_count == 1


def test_windows_of_an_agent_stand_beside_those_of_its_problem() -> None:
    windowed = problem(limits={"a": sw.Limit(0.3, safe_bound=0.01, window="7d", model="rates")})
    agent = sw.Agent(windowed, seed=1, windows={"click": sw.OutcomeWindow("1d", missing=0.0)})
    agent.decide(now=0.0)
    agent.expire_pending(now=8 * 86400.0)
    assert agent.pending_count == 0


@pytest.mark.parametrize("name", ["cost", "reward", "now", "decision", "action"])
def test_names_of_arguments_are_no_names_of_signals(name: str) -> None:
    refuses(lambda: problem(limits={name: sw.Limit(0.1, model="rates")}), sw.InvalidProblem, ErrorCode.INVALID_NAME)


def test_a_confidence_is_no_delta() -> None:
    refuses(lambda: problem(delta=0.95), sw.InvalidProblem, ErrorCode.OUT_OF_RANGE)


def test_a_memory_that_could_not_be_is_refused() -> None:
    segmented = problem(limits={"a": sw.Limit(0.3, safe_bound=0.01, by="country")})
    agent = sw.Agent(segmented, seed=1)
    agent.learn(agent.decide({"country": "NZ"}).id, click=0, a=0)
    snapshot = agent.replica_snapshot()
    refuses(
        lambda: sw.Replica(sw.Snapshot(snapshot.policy, b"", 0, 1), name="x"),
        sw.InvalidProblem,
        ErrorCode.STATE_MISMATCH,
    )
    memory = np.frombuffer(snapshot.memory).copy()
    policy: Any = snapshot.policy
    assert policy.fits(memory)
    fits = []
    for place in np.flatnonzero(memory == 1.0):
        changed = memory.copy()
        changed[place] = 5.0
        fits.append(policy.fits(changed))
    assert fits.count(False) == 2  # segments met, and which of them this one was


def test_a_report_needs_no_decision_yet() -> None:
    agent = sw.Agent(problem(), seed=1)
    assert [action.name for action in agent.report().actions]
    agent.add_action("more")
    assert len(agent.report().actions) >= 1
