"""What is told of an agent's decisions counts for its stops at once, long before windows close."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stagewise as sw

HOUR = 3600.0


def problem(**changes: Any) -> sw.Problem:
    limit = {"value": 0.015, "safe_bound": 0.009, "window": "7d", "model": "rates", **changes.pop("limit", {})}
    told: dict[str, Any] = {
        "action_names": ["plain", "offer"],
        "safe_name": "plain",
        "reward": sw.Reward("click", window="1h"),
        "limits": {"opt_out": sw.Limit(**limit)},
    }
    return sw.Problem(**{**told, **changes})


def campaign(agent: sw.Agent, rate: float, users: int, seed: int = 0, since: int = 0) -> int | None:
    """Tell opt-outs as they happen, and nothing else; return after how many users it is in doubt."""
    rng = np.random.default_rng(seed)
    for i in range(since, since + users):
        decision = agent.decide({}, now=float(i))
        if rng.random() < rate:
            agent.learn(decision.id, opt_out=True, now=float(i))
        if i % 10 == 9 and not agent.health().ok:
            return i
    return None


def test_opt_outs_that_are_told_stop_an_agent_long_before_their_window_closes() -> None:
    agent = sw.Agent(problem(), seed=1)
    stopped = campaign(agent, 0.3, 200)
    assert stopped is not None
    assert stopped < 100
    finding = agent.health()["safe cost of opt_out"]
    assert finding.verdict == "contradicted"
    assert (finding.check, finding.signal) == ("safe_cost", "opt_out")
    assert (finding.details["found"], finding.details["declared"]) == ("safe_cost_so_far", 0.009)
    decision = agent.decide({}, now=200.0)
    assert (decision.action, decision.reason_details) == ("plain", finding.reason_details)
    assert agent.pending_summary()["opt_out"].missing > 0  # nothing of it was learned
    agent.acknowledge_alert("safe cost of opt_out", "a test of ours")
    assert agent.health()["safe cost of opt_out"].verdict == "acknowledged"


def test_the_limit_itself_is_watched_where_nothing_was_declared_of_the_safe_action() -> None:
    agent = sw.Agent(problem(limit={"safe_bound": None}), seed=1)
    assert campaign(agent, 0.3, 200) is not None
    finding = agent.health()["limit of opt_out"]
    assert finding.verdict == "contradicted"
    assert (finding.details["found"], finding.details["threshold"]) == ("limit_so_far", 0.015)
    assert agent.decide({}, now=200.0).reason_details == finding.reason_details


def test_one_missing_outcome_holds_back_learning_and_no_stop() -> None:
    agent = sw.Agent(problem(reward=sw.Reward("click"), limit={"window": None}), seed=1)
    rng = np.random.default_rng(3)
    agent.decide({})  # nothing ever comes of it
    for _ in range(400):
        agent.learn(agent.decide({}), click=False, opt_out=bool(rng.random() < 0.1))
    assert agent.buffered_count == 400
    assert agent.health()["safe cost of opt_out"].verdict == "contradicted"


def test_costs_as_they_are_promised_stop_nobody() -> None:
    agent = sw.Agent(problem(), seed=1)
    assert campaign(agent, 0.009, 600) is None
    finding, told = agent.health()["safe cost of opt_out"], agent.report().limits[0].observed_mean
    assert told is not None
    assert (finding.verdict, finding.details["reported_count"]) == ("unknown", 600)
    assert finding.details["reported_mean"] == pytest.approx(told)
    assert finding.details["exceeds_declared"] is (told > 0.009)


def test_values_from_below_count_as_soon_as_they_are_told() -> None:
    stars = sw.Limit(sw.AtLeast(4.0), low=1.0, high=5.0, safe_bound=4.5, window="7d", model="rates")
    agent = sw.Agent(problem(limits={"stars": stars}), seed=1)
    for i in range(60):
        agent.learn(agent.decide({}, now=float(i)).id, stars=2.0, now=float(i))
        agent.decide({}, now=float(i))  # of which nothing is told
    details = agent.health()["safe cost of stars"].details
    assert (details["found"], details["declared"], details["at_most"]) == ("safe_cost_so_far", 4.5, False)
    assert agent.report().limits[0].observed_mean == pytest.approx(3.5)  # what is not told counts as 5
    good = sw.Agent(problem(limits={"stars": stars}), seed=1)
    for i in range(60):
        good.learn(good.decide({}, now=float(i)).id, stars=4.6, now=float(i))
    assert good.health().ok


def test_windows_that_leave_out_what_is_missing_leave_it_out_here_too() -> None:
    agent = sw.Agent(problem(limit={"window": "1h", "missing": "drop"}), seed=1)
    for i in range(300):
        decision = agent.decide({}, now=float(i))
        if i % 30 == 0:
            agent.learn(decision.id, opt_out=True, now=float(i))
    assert agent.health()["safe cost of opt_out"].verdict != "contradicted"
    assert agent.report().limits[0].decision_count == 300
    agent.expire_pending(now=2 * HOUR)
    assert agent.report().limits[0].decision_count == 10
    assert agent.report().limits[0].observed_mean == 1.0
    assert agent.health()["safe cost of opt_out"].verdict == "contradicted"  # ten of ten


def test_what_was_not_carried_out_does_not_count() -> None:
    agent = sw.Agent(problem(), seed=1)
    for i in range(10):
        decision = agent.decide({}, now=float(i))
        if i % 2:
            agent.cancel(decision)
    agent.learn(8, opt_out=True, now=10.0)
    limit = agent.report().limits[0]
    assert (limit.decision_count, limit.observed_mean) == (5, pytest.approx(0.2))
    assert "0.2000 over 5 decisions" in str(agent.report())
    assert agent.report().to_dict()["limits"][0]["observed_mean"] == pytest.approx(0.2)


def test_what_is_forgotten_does_not_count() -> None:
    agent = sw.Agent(problem(reward=sw.Reward("click"), limit={"window": None}), seed=1)
    for _ in range(10):
        agent.decide({})
    agent.learn(9, opt_out=True)
    agent.drop_pending(5)
    assert (agent.report().limits[0].decision_count, agent.report().limits[0].observed_mean) == (5, pytest.approx(0.2))


def test_an_agent_that_is_not_watched_says_so_and_goes_on() -> None:
    agent = sw.Agent(problem(settings={"check_assumptions": False}), seed=1)
    assert campaign(agent, 0.3, 200) is not None
    fallback = agent.decide({}, now=300.0).message
    assert fallback is None or "beyond chance" not in fallback


@pytest.mark.long
@pytest.mark.parametrize("way", ["file", "pickle", "copy"])
def test_an_agent_that_was_kept_goes_on_as_if_it_had_not_been(way: str, tmp_path: Path) -> None:
    whole, kept = (sw.Agent(problem(), seed=1) for _ in range(2))
    for agent in (whole, kept):
        campaign(agent, 0.009, 1100, seed=6)
    if way == "file":
        kept.save(tmp_path / "agent.json")
        kept = sw.Agent.load(tmp_path / "agent.json", problem())
    else:
        kept = pickle.loads(pickle.dumps(kept)) if way == "pickle" else copy.deepcopy(kept)
    assert kept.health() == whole.health()
    stopped = [campaign(agent, 0.15, 400, seed=7, since=1100) for agent in (whole, kept)]
    assert stopped[0] == stopped[1] is not None
    assert whole.health()["safe cost of opt_out"] == kept.health()["safe cost of opt_out"]


def test_replicas_are_told_what_is_in_doubt_and_their_decisions_count() -> None:
    agent = sw.Agent(problem(), seed=1)
    replica = sw.Replica(agent.replica_snapshot(), name="one")
    for i in range(100):
        decision = replica.decide({})
        agent.register_decision(decision, now=float(i))
        if i % 3 == 0:
            agent.learn(decision.id, opt_out=True, now=float(i))
    assert agent.report().rounds == 0
    contradicted = {one.name: one.reason_details for one in agent.health() if one.verdict == "contradicted"}
    assert agent.replica_snapshot().alerts == contradicted
    assert contradicted["safe cost of opt_out"].details["found"] == "safe_cost_so_far"


@pytest.mark.long
def test_after_a_quiet_stretch_it_is_as_quick_as_from_the_start() -> None:
    """Two thousand quiet decisions used to hide two thousand and more that were not."""
    limit = {"window": None, "safe_bound": 0.1, "value": 0.2}
    agent = sw.Agent(problem(reward=sw.Reward("click"), limit=limit), seed=1)
    rng, stopped = np.random.default_rng(3), None
    for i in range(3000):
        decision = agent.decide({})
        agent.learn(decision, click=False, opt_out=bool(rng.random() < (0.02 if i < 2000 else 0.3)))
        if i % 10 == 9 and agent.health()["safe cost of opt_out"].verdict == "contradicted":
            stopped = i
            break
    assert stopped is not None
    assert 2000 < stopped < 2250
