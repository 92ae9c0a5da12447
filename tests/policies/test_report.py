"""What people ask of an agent: the answers add up, hold the truth, survive a restart, and cost no round its bits."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.agent.report import ABOVE_LIMIT
from stagewise.problem.errors import ErrorCode

CLICKS, LEAVE = np.array([0.05, 0.06, 0.09, 0.2]), np.array([0.001, 0.002, 0.012, 0.2])
NAMES = ["nothing", "digest", "offer", "news"]


def campaign(rounds: int = 200, log: int = 6000) -> sw.Agent:
    safe = sw.SafeAction(arm=0, reward=0.05, cost=0.001)
    agent = sw.Agent(sw.OPB(arms=4, safe_action=safe, threshold={"opt_out": 0.02}, interval="kl"), seed=1)
    chance = np.random.default_rng(1)
    sent = chance.integers(0, 4, log)
    frame = {"t": sent, "click": chance.random(log) < CLICKS[sent], "opt_out": chance.random(log) < LEAVE[sent]}
    agent.learn_log_frame(frame, action="t", reward="click")
    for _ in range(rounds):
        decision = agent.decide(sw.ArmSet(4))
        clicked, left = chance.random() < CLICKS[decision.action], chance.random() < LEAVE[decision.action]
        agent.learn(decision, reward=clicked, cost=left)
    return agent


@pytest.mark.long
def test_the_answers_add_up_and_hold_the_truth() -> None:
    agent = campaign()
    report = agent.report(NAMES)
    assert report.rounds == 200
    assert report.recent_rounds == 64
    assert [action.name for action in report.actions] == ["digest", "offer", "news", "nothing"]
    assert sum(action.share for action in report.actions) == pytest.approx(1.0)
    assert sum(action.recent_share for action in report.actions) == pytest.approx(1.0)
    assert report.recent_exploring_share is not None
    assert report.recent_exploring_share + report.recent_exploiting_share + report.recent_safe_share == pytest.approx(
        1.0
    )  # type: ignore[operator]
    truth = sum(action.recent_share * CLICKS[NAMES.index(action.name)] for action in report.actions)
    assert report.reward is not None
    assert report.reward.low <= truth <= report.reward.high
    assert report.reward_gain is not None
    assert report.reward_gain.low <= truth - 0.05 <= report.reward_gain.high
    (limit,) = report.limits
    assert (limit.name, limit.threshold) == ("opt_out", 0.02)
    assert limit.margin == pytest.approx(0.02 - limit.worst_pessimistic_cost)
    assert limit.margin >= 0.0
    assert limit.estimated_cost < limit.worst_pessimistic_cost


@pytest.mark.long
def test_what_an_action_needs_is_what_it_takes() -> None:
    """An arm that is certified after the rounds said, if its mean stays as it is, and not after half of them."""
    agent = campaign()
    by_name = {action.name: action for action in agent.report(NAMES).actions}
    assert by_name["nothing"].certified
    assert not by_name["news"].certified
    assert by_name["news"].rounds_to_certify is None
    assert by_name["news"].certification_note == ABOVE_LIMIT
    offer = by_name["offer"]
    assert not offer.certified
    assert offer.rounds_to_certify is not None
    pulls = round(offer.rounds_to_certify * offer.recent_share)
    mean = next(limit for limit in agent.report(NAMES).limits).estimated_cost  # of the mixture; the arm's own follows
    assert mean < 0.02
    for share, certified in ((1.0, True), (0.5, False)):
        count = round(share * pulls)
        more, seen = campaign(), agent_mean(agent, 2)
        ones = round(seen * count)
        more.learn_log([2] * count, [0.0] * count, [1.0] * ones + [0.0] * (count - ones))
        more.decide(sw.ArmSet(4))
        after = {action.name: action for action in more.report(NAMES).actions}["offer"]
        assert after.certified is certified


def agent_mean(agent: sw.Agent, arm: int) -> float:
    """Return the mean opt-outs that were seen of an arm."""
    from stagewise.engine.compile import as_python
    from stagewise.engine.layout import get_model_block
    from stagewise.models.arms import get_arm_means

    policy: Any = agent.policy
    memory = agent.state.memory
    return float(as_python(get_arm_means)(as_python(get_model_block)(policy.layout, memory, 0), memory).means[1, arm])


LINEAR = [sw.LCLUCB, sw.ROFUL, sw.SafeLTS, sw.OPLB, sw.SafePosteriorSampling]


@pytest.mark.parametrize("kind", LINEAR, ids=lambda kind: kind.__name__)
def test_every_linear_policy_answers(kind: Any) -> None:
    agent = sw.Agent(kind(safe_action=sw.SafeAction(features=[0.0, 0.0]), threshold=0.3, noise=0.1))
    chance = np.random.default_rng(3)
    for _ in range(40):
        decision = agent.decide(np.eye(2))
        noise = 0.1 * chance.normal(size=2)
        agent.learn(decision, *(np.array([[0.5, 0.3], [0.4, 0.1]]) @ decision.action + noise).tolist())
    report = agent.report()
    assert report.recent_exploring_share is not None
    assert report.recent_exploring_share + report.recent_exploiting_share + report.recent_safe_share == pytest.approx(
        1.0
    )  # type: ignore[operator]
    assert sum(action.share for action in report.actions) == pytest.approx(1.0)
    assert report.limits[0].margin >= -1e-12
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["rounds"] == 40
    assert "margin" in str(report)


def test_counts_survive_a_restart(tmp_path: Path) -> None:
    agent = campaign(20, 100)
    agent.save(tmp_path / "agent.json")
    loaded = sw.Agent.load(tmp_path / "agent.json")
    assert loaded.report().rounds == 20
    assert loaded.report().recent_rounds == 0
    assert len(str(loaded.report()).splitlines()) == 2  # no tables without a recent decision


@pytest.mark.long
def test_looking_changes_nothing() -> None:
    one, other = campaign(30, 500), campaign(30, 500)
    for _ in range(20):
        decision, twin = one.decide(sw.ArmSet(4)), other.decide(sw.ArmSet(4))
        assert decision.action == twin.action
        one.report(), one.health()
        one.learn(decision, 0.0, 0.0)
        other.learn(twin, 0.0, 0.0)
    assert one.state.memory.tobytes() == other.state.memory.tobytes()


def test_too_few_names_are_refused() -> None:
    with refused(sw.InvalidProblem, ErrorCode.WRONG_TYPE):
        campaign(5, 100).report(names=["a"])


def test_policies_without_bounds_answer_what_they_can() -> None:
    agent = sw.Agent(sw.AlwaysSafe(safe_action=sw.SafeAction(arm=1, cost=0.0), threshold=0.1))
    agent.decide(sw.ArmSet(2))
    assert agent.report().rounds == 1
    assert agent.report().reward is None
