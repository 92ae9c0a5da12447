"""A decision that was not carried out: nothing is learned of it, nothing waits for it, and no report counts it."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refuses

import stagewise as sw
from stagewise.problem.errors import ErrorCode


def problem(window: str | None = "7d", safe: float | None = 0.1) -> sw.Problem:
    return sw.Problem(
        action_names=["nothing", "digest", "offer"],
        safe_name="nothing",
        reward=sw.Reward("click", window=window),
        limits={"opt_out": sw.Limit(0.5, safe_bound=safe, window=window, model="rates")},
    )


def test_it_does_not_count_as_one_that_nobody_answered() -> None:
    """Half of all messages cannot be sent, and of those sent all opt out: the rate is 1, and not 1/2."""
    agents = [sw.Agent(problem(safe=None), seed=1) for _ in range(2)]
    for agent in agents:
        for round_ in range(40):
            decision = agent.decide(now=float(round_))
            if round_ % 2 == 0:
                agent.learn(decision.id, click=False, opt_out=True, now=float(round_))
            elif agent is agents[0]:
                agent.cancel(decision.id)
        agent.expire_pending(now=1e9)
    found = [agent.health()["safe cost of opt_out"].details for agent in agents]
    assert [(details["count"], round(details["mean"], 9)) for details in found] == [(20, 1.0), (40, 0.5)]


def test_what_was_held_behind_it_is_learned_and_nothing_waits() -> None:
    agent = sw.Agent(problem(None), seed=1)
    first, second = agent.decide(), agent.decide()
    agent.learn(second, 0.0, 0.0)
    assert (agent.pending_count, agent.buffered_count) == (1, 1)
    agent.cancel(first)
    assert (agent.pending_count, agent.buffered_count) == (0, 0)
    alone = sw.Agent(problem(None), seed=1)
    alone.learn(alone.decide(), 0.0, 0.0)
    assert np.array_equal(agent.state.memory, alone.state.memory)
    refuses(lambda: agent.learn(first, 0.0, 0.0), sw.InvalidOutcome, ErrorCode.OUTCOME_ALREADY_KNOWN)
    refuses(lambda: agent.cancel(first), sw.InvalidOutcome, ErrorCode.OUTCOME_ALREADY_KNOWN)
    refuses(lambda: agent.cancel("offer"), sw.InvalidOutcome, ErrorCode.UNKNOWN_DECISION)


def test_one_of_which_something_came_was_carried_out() -> None:
    agent = sw.Agent(problem(), seed=1)
    decision = agent.decide(now=0.0)
    agent.learn(decision.id, click=True, now=1.0)
    refuses(lambda: agent.cancel(decision.id), sw.InvalidOutcome, ErrorCode.OUTCOME_ALREADY_KNOWN)
    assert agent.pending_count == 1


def test_reports_count_what_was_carried_out(tmp_path: Path) -> None:
    agent = sw.Agent(problem(None), seed=1)
    for round_ in range(30):
        decision = agent.decide(only=["offer"] if round_ < 10 else None)
        if round_ < 10:
            agent.cancel(decision.id)
        else:
            agent.learn(decision, 0.0, 0.0)
    report = agent.report()
    assert (report.rounds, report.cancelled, report.recent_rounds) == (30, 10, 20)
    assert sum(action.share for action in report.actions) == pytest.approx(1.0)
    assert "30 rounds decided" in str(report)
    assert "10 not carried out" in str(report)
    agent.save(tmp_path / "agent.json")
    assert sw.Agent.load(tmp_path / "agent.json").report().cancelled == 10


def test_registered_decisions_are_cancelled_by_their_ids() -> None:
    agent = sw.Agent(problem(None), seed=1)
    made = sw.Replica(agent.replica_snapshot(), name="pod").decide()
    agent.register_decision(made)
    agent.cancel(made.id)
    assert (agent.pending_count, agent.report().cancelled) == (0, 0)


def test_the_first_decision_of_rays_can_be_withdrawn() -> None:
    agent = sw.Agent(sw.LCLUCB(safe_action=sw.SafeAction(features=[0.0, 0.0]), threshold=0.3, noise=0.1))
    agent.cancel(agent.decide(np.eye(2)).id)
    assert (agent.pending_count, agent.report().cancelled, agent.report().rounds) == (0, 1, 1)


def logged(rows: int) -> Any:
    """Return what is reported of an action after a log of which 6 % left, under a limit of 10 %."""
    said = sw.Problem(
        action_names=["nothing", "offer"], safe_name="nothing", reward=sw.Reward("click"),
        limits={"opt_out": sw.Limit(0.1, safe_bound=0.01, model="rates")},
    )  # fmt: skip
    agent, left = sw.Agent(said, seed=1), np.arange(rows) < round(0.06 * rows)
    agent.learn_log_frame({"action": ["offer"] * rows, "click": np.arange(rows) % 2, "opt_out": left})
    agent.decide()
    return agent.report().actions[0]


def test_what_an_action_needs_counts_what_was_learned_of_it_and_not_what_was_decided() -> None:
    """Nothing of it was decided: about as many rows as are said to be missing certify it; a quarter do not."""
    offer = logged(300)
    assert offer.certified is False
    more = int(re.findall(r"not played at present; about (\d+) more plays would do", offer.certification_note)[0])
    assert logged(300 + more // 4).certified is False
    assert logged(300 + round(1.1 * more)).certified is True
