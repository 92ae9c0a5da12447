"""Limits that hold in every segment: what was learned there, by name, in words and in a picture."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.problem import context as naming
from stagewise.records.reason import Contradiction

COUNT = 300
CHANCE = np.random.default_rng(3)
LOG: dict[str, Any] = {
    "action": CHANCE.choice(["nothing", "offer"], COUNT),
    "country": CHANCE.choice(["NZ", "AU", "DE"], COUNT, p=[0.6, 0.3, 0.1]),
    "click": CHANCE.random(COUNT) < 0.5,
    "complaint": CHANCE.random(COUNT) < 0.1,
    "minutes": CHANCE.uniform(30.0, 50.0, COUNT),
}


def learned() -> sw.Agent:
    said = sw.Problem(
        action_names=["nothing", "offer"],
        safe_name="nothing",
        reward=sw.Reward("click"),
        limits={
            "complaint": sw.Limit(0.5, safe_bound=0.4, by="country"),
            "minutes": sw.Limit(sw.AtLeast(20.0), high=60.0, safe_bound=30.0, by="country"),
        },
    )
    agent = sw.Agent(said, seed=1)
    agent.learn_log_frame(LOG)
    return agent


def test_a_report_tells_what_the_log_holds_of_every_segment() -> None:
    agent = learned()
    agent.decide({"country": "NZ"})
    report = agent.report()
    assert len(report.segments) == 2 * 3 * 2
    assert list(dict.fromkeys(one.segment for one in report.segments)) == ["NZ", "AU", "DE"]  # most learned first
    for one in report.segments:
        its = (LOG["action"] == one.action) & (LOG["country"] == one.segment)
        assert one.by == "country"
        assert one.outcomes == its.sum()
        assert one.rate == pytest.approx(LOG[one.limit][its].mean())
        assert one.threshold == pytest.approx({"complaint": 0.5, "minutes": 20.0}[one.limit])
        assert one.pessimistic_cost > one.rate if one.limit == "complaint" else one.pessimistic_cost < one.rate
        bound = agent.decide({"country": one.segment}, only=[one.action]).limits[one.limit]  # type: ignore[attr-defined]
        if one.action == "nothing":
            assert bound.pessimistic_cost == pytest.approx(one.pessimistic_cost)
    assert f"NZ  nothing {report.segments[0].rate:.4f}" in str(report)
    assert "minutes by country, limit 20: seen, and at worst" in str(report)


def test_names_of_segments_survive_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = learned()
    pending = agent.decide({"country": "FJ"})
    agent.save(tmp_path / "agent.json")
    monkeypatch.setattr(naming, "SEGMENTS", {})  # another process
    naming.hash_segment.cache_clear()
    loaded = sw.Agent.load(tmp_path / "agent.json")
    loaded.learn(pending.id, click=0.0, complaint=0.0, minutes=30.0)
    told = loaded.report()
    assert {one.segment for one in told.segments} == {"NZ", "AU", "DE", "FJ"}
    assert "DE" in str(told)
    monkeypatch.setattr(naming, "SEGMENTS", {})
    assert agent.report().segments[0].segment.startswith("segment ")  # a number is all that is left


def test_a_drift_names_the_segment() -> None:
    agent = learned()
    agent.decide({"country": "NZ"})
    agent.learn_log_frame(
        {
            "action": ["offer"] * 99,
            "country": ["AU"] * 99,
            "click": [0] * 99,
            "complaint": [1] * 99,
            "minutes": [40] * 99,
        }
    )
    found = agent.decide({"country": "NZ"}).reason_details.details
    assert (found["found"], found["limit"]) == (Contradiction.DRIFT, "complaint")
    assert (found["action"], found["segment"]) == ("'offer'", "AU")


def test_problems_without_segments_tell_of_none() -> None:
    safe = sw.SafeAction(arm=0, reward=0.0, cost=0.0)
    agent = sw.Agent(sw.OPB(arms=2, safe_action=safe, threshold=0.5), seed=1)
    agent.decide(sw.ArmSet(2))
    assert agent.report().segments == ()
