"""Means that move in many segments at once, in one of them, or not at all; and who is told of it, when."""

from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.records.reason import Contradiction

GROUPS = 20


def problem(by: str | None = "group", **more: Any) -> sw.Problem:
    limits = {"opt_out": sw.Limit(0.5, safe_bound=0.4, by=by)}
    return sw.Problem(
        action_names=["plain", "offer"], safe_name="plain", reward=sw.Reward("click"), limits=limits, **more
    )


def told(chance: np.random.Generator, rates: Any, rows: int, groups: Any = None) -> dict[str, Any]:
    """Return a log of offers, of which each group has its rate; the groups are drawn where they are not given."""
    groups = chance.integers(len(rates), size=rows) if groups is None else groups
    left = (chance.random(rows) < np.asarray(rates)[groups]).astype(int)
    names = [f"g{group}" for group in groups]
    return {"action": ["offer"] * rows, "group": names, "click": [1] * rows, "opt_out": left}


def has_drifted(decision: Any) -> bool:
    """Return whether a decision says that the mean of 'opt_out' changed."""
    details = {} if decision.reason_details is None else decision.reason_details.details
    return (details.get("found"), details.get("limit")) == (Contradiction.DRIFT, "opt_out")


def test_a_mean_that_moves_in_every_segment_is_found_by_all_of_them_together() -> None:
    """No segment says it by itself: it has some eight events before, and ten after."""
    agent, chance = sw.Agent(problem(), seed=1), np.random.default_rng(1)
    for _ in range(3):
        agent.learn_log_frame(told(chance, [0.05] * GROUPS, 1000))
        assert agent.decide({"group": "g0"}).message is None or agent.health().ok
    agent.learn_log_frame(told(chance, [0.2] * GROUPS, 1000))
    found = agent.decide({"group": "g0"}).reason_details.details
    assert (found["found"], found["limit"]) == (Contradiction.DRIFT, "opt_out")
    assert (found["action"], found["weighted_by"]) == ("'offer'", "segment")
    assert 0.05 <= found["early_mean"] < 0.06
    assert 0.1 <= found["late_mean"] < 0.2
    assert agent.health()["drift of opt_out"].verdict == "contradicted"


def test_a_mean_that_moves_for_every_action_is_found_by_all_of_them_together() -> None:
    actions = ["plain", *(f"offer {i}" for i in range(12))]
    limits = {"opt_out": sw.Limit(0.5, safe_bound=0.4, model="rates")}
    agent = sw.Agent(
        sw.Problem(action_names=actions, safe_name="plain", reward=sw.Reward("click"), limits=limits), seed=1
    )
    chance = np.random.default_rng(1)
    for rate in (0.05, 0.05, 0.18):
        chosen = chance.integers(13, size=1000)
        left = (chance.random(1000) < rate).astype(int)
        agent.learn_log_frame({"action": [actions[i] for i in chosen], "click": [0] * 1000, "opt_out": left})
    details = agent.health()["drift of opt_out"].details
    assert (details["action"], details["weighted_by"]) == (None, "action")
    assert details["early_mean"] < 0.06 < details["late_mean"]


@pytest.mark.parametrize(("by", "blocks_decisions"), [("group", False), (None, True)])
def test_another_mix_of_segments_whose_means_stay_is_no_drift(by: str | None, blocks_decisions: bool) -> None:
    """From mostly calm groups to mostly touchy ones: where segments are not told apart, it is the mean that moved."""
    agent, chance = sw.Agent(problem(by), seed=1), np.random.default_rng(2)
    rates = [0.02] * 10 + [0.3] * 10
    for touchy in (0.1, 0.1, 0.3, 0.6, 0.9, 0.9):
        groups = np.where(chance.random(600) < touchy, 10, 0) + chance.integers(10, size=600)
        rows = told(chance, rates, 600, groups)
        agent.learn_log_frame(rows if by is not None else {name: rows[name] for name in ("action", "click", "opt_out")})
    assert ("drift of opt_out" in agent._learned.statistics.open_alerts) is blocks_decisions
    assert (agent.health()["drift of opt_out"].verdict == "contradicted") is blocks_decisions


def test_a_signal_is_held_against_its_own_outcomes() -> None:
    """Ten of one signal were learned, and four hundred of the other."""
    windowed = sw.Problem(
        action_names=["plain", "offer"],
        safe_name="plain",
        reward=sw.Reward("click", window="1d"),
        limits={"opt_out": sw.Limit(0.5, safe_bound=0.4, window="1d", model="rates")},
    )
    agent, chance = sw.Agent(windowed, seed=1), np.random.default_rng(0)
    for i in range(700):
        decision = agent.decide({}, now=1000.0 + i)
        agent.learn(decision.id, click=float(chance.random() < 0.05), now=1000.0 + i)
        if i != 10:
            agent.learn(decision.id, opt_out=float(chance.random() < 0.05), now=1000.0 + i)
    found = agent.health()
    assert found["drift of opt_out"].verdict == "unknown"
    assert found["drift of opt_out"].details == {"count": 10, "early": 0, "late": 0}
    assert found["drift of click"].verdict == "fine"
    assert [found["drift of click"].details[name] for name in ("early", "late")] == [256, 256]


def test_decisions_and_health_and_replicas_say_it_at_once() -> None:
    """At every moment the same, from the last outcome before it is certain to the first decision after it."""
    agent, chance = sw.Agent(problem(None), seed=1), np.random.default_rng(3)
    agent.learn_log_frame({name: column for name, column in told(chance, [0.05], 600).items() if name != "group"})
    said = []
    for _ in range(700):
        contradicted = agent.health()["drift of opt_out"].verdict == "contradicted"
        replica = sw.Replica(agent.replica_snapshot(), name="pod").decide({})
        decision: Any = agent.decide({})
        fell = has_drifted(decision)
        assert fell == contradicted
        assert has_drifted(replica) == contradicted
        said.append(fell)
        agent.learn(decision.id, click=float(decision.action == "offer"), opt_out=float(chance.random() < 0.4))
    assert said == sorted(said)
    assert 0 < said.index(True) < 600


def test_a_replica_goes_on_where_its_learner_was_told_to() -> None:
    """A contradiction that a person has acknowledged is no fallback, here or there."""
    agent = sw.Agent(problem(None), seed=1)
    rows = {"action": ["plain"] * 400, "click": [0] * 400, "opt_out": [1] * 400}
    agent.learn_log_frame(rows)
    assert sw.Replica(agent.replica_snapshot(), name="a").decide({}).reason is sw.FallbackReason.ASSUMPTION_CONTRADICTED
    agent.decide({})
    for finding in agent.health():
        if finding.verdict == "contradicted":
            agent.acknowledge_alert(finding.name, "Ana")
    ours, theirs = (
        agent.decide({}),
        sw.Replica(sw.Snapshot.from_bytes(bytes(agent.replica_snapshot())), name="a").decide({}),
    )
    assert "declared" not in str(ours.message)
    assert theirs.message == ours.message


def test_without_the_watch_a_drift_is_told_and_stops_nobody() -> None:
    agent, chance = sw.Agent(problem(settings={"check_assumptions": False}), seed=1), np.random.default_rng(1)
    for rate in (0.05, 0.05, 0.05, 0.2):
        agent.learn_log_frame(told(chance, [rate] * GROUPS, 1000))
    assert agent.health()["drift of opt_out"].verdict == "contradicted"
    assert not has_drifted(agent.decide({"group": "g0"}))
