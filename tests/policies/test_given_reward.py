"""A problem without a reward: only its limits are learned, by hand, from a log, in replicas and from files."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.agent.decision_analysis import ABOVE_LIMIT
from stagewise.problem.errors import ErrorCode

USER = {"age": 30.0, "country": "NZ"}
LIMITS = {
    "opt_out": sw.Limit(0.02, safe_bound=0.0, model="rates"),
    "spam": sw.Limit(0.1, safe_bound=0.01, by="country"),
}


def guard(**changes: Any) -> sw.Problem:
    settings: dict[str, Any] = {
        "action_names": ["nothing", "digest", "offer"],
        "safe_name": "nothing",
        "limits": LIMITS,
    }
    return sw.Problem(**settings | {"context": {"age": (18, 99)}} | changes)


def build_log(rows: int = 300) -> dict[str, Any]:
    names, chance = ["nothing", "digest", "offer"], np.random.default_rng(1)
    columns = {"action": chance.choice(names, rows), "age": chance.uniform(18, 99, rows), "country": ["NZ"] * rows}
    sent = columns["action"] != "nothing"
    return columns | {"opt_out": sent & (chance.random(rows) < 0.004), "spam": sent & (chance.random(rows) < 0.01)}


def test_every_decision_needs_a_proposal_or_scores() -> None:
    agent = sw.Agent(guard(), seed=1)
    for decider in (agent, sw.Replica(agent.replica_snapshot(), name="pod")):
        for call in ({}, {"only": ["offer"]}):
            with pytest.raises(sw.InvalidActions) as caught:
                decider.decide(USER, **call)
            assert caught.value.code is ErrorCode.MISSING_VALUE
        assert decider.round == 0
    decision: Any = agent.decide(USER, propose="offer")
    assert decision.probabilities["offer"] == pytest.approx(0.02)
    scored: Any = agent.decide(USER, scores={"digest": 0.2, "offer": 1.0})
    assert all(status.pessimistic_cost <= status.threshold for status in scored.limits.values())


def test_outcomes_of_the_limits_are_learned_in_parts_and_at_once_to_the_same_bit() -> None:
    whole, parts, plain = sw.Agent(guard(), seed=2), sw.Agent(guard(), seed=2), sw.Agent(guard(), seed=2)
    costs = [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0)]
    ids = [[agent.decide(USER, propose="offer").id for _ in costs] for agent in (whole, parts, plain)]
    for (opt_out, spam), a, b, c in zip(costs, *ids, strict=True):
        whole.learn(a, opt_out=opt_out, spam=spam)
        plain.learn(c, cost=[opt_out, spam])
        parts.learn(b, spam=spam)
    for (opt_out, _), b in reversed(list(zip(costs, ids[1], strict=True))):
        parts.learn(b, opt_out=opt_out)
    assert (parts.pending_count, parts.buffered_count, whole.pending_count) == (0, 0, 0)
    assert parts.state.memory.tobytes() == whole.state.memory.tobytes() == plain.state.memory.tobytes()
    assert [signal.signal for signal in whole.pending_summary()] == ["opt_out", "spam"]


@pytest.mark.parametrize("outcome", [{"reward": 1.0}, {"reward": 1.0, "cost": [0.0, 0.0]}, {"click": 1.0}])
def test_a_reward_cannot_be_reported(outcome: dict[str, Any]) -> None:
    agent = sw.Agent(guard(), seed=1)
    decision, before = agent.decide(USER, propose="offer"), agent.state.memory.tobytes()
    with pytest.raises(sw.InvalidOutcome) as caught:
        agent.learn(decision.id, **outcome)
    assert caught.value.code is ErrorCode.UNKNOWN_SIGNAL
    assert (agent.pending_count, agent.state.memory.tobytes()) == (1, before)


def test_a_log_needs_no_reward_and_is_learned_once() -> None:
    agent = sw.Agent(guard(), seed=1)
    agent.learn_log_frame(build_log())
    with pytest.raises(sw.InvalidOutcome) as caught:
        agent.learn_log_frame(build_log())
    assert caught.value.code is ErrorCode.LOG_ALREADY_LEARNED
    with pytest.raises(sw.InvalidOutcome) as caught:
        agent.learn_log_frame(build_log(20), reward="click")
    assert caught.value.code is ErrorCode.UNUSED_SETTING
    assert all(finding.signal != "reward" for finding in agent.health())
    report = sw.check_log(build_log(), guard())
    assert not [finding for finding in report.findings if finding.verdict == "contradicts"]


def test_an_agent_continues_from_a_file(tmp_path: Path) -> None:
    agent = sw.Agent(guard(limits={"opt_out": sw.Limit(0.02, safe_bound=0.0, model="rates", window="7d")}), seed=4)
    ids = [agent.decide({"age": 30.0}, propose="offer", now=1.0).id for _ in range(3)]
    agent.learn(ids[1], opt_out=1.0, now=2.0)
    agent.save(tmp_path / "agent.json")
    loaded = sw.Agent.load(tmp_path / "agent.json")
    for one in (agent, loaded):
        one.learn(ids[0], opt_out=0.0, now=3.0)
        assert one.expire_pending(now=1e9) == 1
    assert loaded.state.memory.tobytes() == agent.state.memory.tobytes()
    assert (
        loaded.decide({"age": 30.0}, propose="offer", now=1e9).probabilities
        == agent.decide({"age": 30.0}, propose="offer", now=1e9).probabilities
    )


def test_files_and_text_have_no_reward_and_scores_may_have_a_range() -> None:
    problem = guard()
    assert "reward" not in problem.to_dict()
    assert sw.Problem.from_dict(problem.to_dict()).to_dict() == problem.to_dict()
    assert list(problem.reported) == ["opt_out", "spam"]
    euros = guard(reward=sw.Reward("euros", low=-5.0, high=50.0, model="given"))
    assert sw.Problem.from_dict(euros.to_dict()).reward == euros.reward
    decision: Any = sw.Agent(euros, seed=1).decide(USER, scores={"digest": -5.0, "offer": 30.0})
    assert decision.proposal.scores["offer"] == pytest.approx(30.0)


def test_a_given_reward_has_nothing_to_learn_from() -> None:
    for setting in ({"safe_bound": 0.1}, {"window": "7d"}, {"by": "country"}):
        with pytest.raises(sw.InvalidProblem) as caught:
            sw.Reward("score", model="given", **setting)  # type: ignore[arg-type]
        assert caught.value.code is ErrorCode.CONFLICTING_SETTINGS
    with pytest.raises(sw.InvalidProblem) as caught:
        guard().build_indexed_policy()
    assert caught.value.code is ErrorCode.UNSUPPORTED


def test_the_report_shows_proposals_and_no_reward() -> None:
    agent = sw.Agent(guard(limits={"opt_out": sw.Limit(0.02, safe_bound=0.0, model="rates")}), seed=3)
    report = agent.report()
    assert (report.proposals, report.reward) == ((), None)
    for round_ in range(40):
        decision = agent.decide({"age": 30.0}, propose="offer" if round_ % 4 else {"offer": 0.5, "digest": 0.5})
        agent.learn(decision.id, opt_out=0.0)
    report = agent.report()
    offer, digest = sorted(report.proposals, key=lambda one: -one.proposed)
    assert (offer.action, digest.action) == ("offer", "digest")
    assert (offer.proposed, digest.proposed) == (pytest.approx(0.875), pytest.approx(0.125))
    assert 0.0 < offer.overlap < 0.1
    assert report.reward is None
    assert report.to_dict()["proposals"][0]["action"] in ("offer", "digest")
    assert "proposed" in str(report)
    for one in (offer, digest):
        assert one.plays_until_whole is not None
        assert one.decisions_until_whole is not None
        assert one.decisions_until_whole > one.plays_until_whole / one.proposed
    agent.learn_log_frame({"action": ["offer"] * 2_000, "age": [30.0] * 2_000, "opt_out": [0.0] * 2_000})
    agent.decide({"age": 30.0}, propose="offer")
    offer = next(one for one in agent.report().proposals if one.action == "offer")
    assert (offer.plays_until_whole, offer.decisions_until_whole, offer.note) == (0, 0, "whole")


def test_the_forecast_counts_the_plays_until_the_limit_is_certain() -> None:
    """The forecast is compared with the share that a log of as many plays gives."""
    limits = {"opt_out": sw.Limit(0.02, safe_bound=0.0, model="rates")}
    agent = sw.Agent(guard(context=(), limits=limits), seed=3)
    agent.learn_log_frame({"action": ["offer"] * 400, "opt_out": [1.0] * 4 + [0.0] * 396})
    agent.decide(propose="offer")
    (forecast,) = agent.report().proposals
    assert forecast.plays_until_whole is not None
    shares = []
    for more in (0.9, 1.1):
        plays = round((400 + more * forecast.plays_until_whole) / 100.0) * 100
        other = sw.Agent(guard(context=(), limits=limits), seed=3)
        other.learn_log_frame(
            {"action": ["offer"] * plays, "opt_out": [1.0] * (plays // 100) + [0.0] * (99 * plays // 100)}
        )
        status: Any = other.decide(propose="offer")
        shares.append(status.proposal.overlap)
    assert shares[0] < 1.0 == shares[1]
    above = sw.Agent(guard(context=(), limits=limits), seed=3)
    above.learn_log_frame({"action": ["offer"] * 400, "opt_out": [1.0] * 40 + [0.0] * 360})
    above.decide(propose="offer")
    (forecast,) = above.report().proposals
    assert forecast.plays_until_whole is None
    assert not math.isnan(forecast.overlap)
    assert forecast.note == ABOVE_LIMIT
    some = sw.Agent(guard(context=(), limits={"opt_out": sw.Limit(0.02, safe_bound=0.0, by="country")}), seed=3)
    log = {"action": ["offer"] * 400, "country": ["NZ", "PT"] * 200, "opt_out": [1.0, 0.0] * 10 + [0.0] * 380}
    some.learn_log_frame(log)
    for country in ("NZ", "PT"):
        some.decide({"country": country}, propose="offer")
    (forecast,) = some.report().proposals
    assert forecast.plays_until_whole is None
    assert forecast.note == f"{ABOVE_LIMIT} in 1 of 2 groups"
