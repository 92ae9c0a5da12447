"""How means stood earlier: one limit's drift is acknowledged by itself, and files hold marks of a policy's own form."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.problem.refusal import refuses

import stagewise as sw
from stagewise.files.paths import compute_sha256
from stagewise.problem.errors import ErrorCode


def told(agent: sw.Agent) -> dict[str, str]:
    return {finding.name: finding.verdict for finding in agent.health()}


def drifted(decision: sw.Decision) -> str:
    """Return the limit whose drift stopped a decision."""
    assert decision.reason_details is not None
    assert decision.reason_details.details["found"] == "drift"
    return str(decision.reason_details.details["limit"])


def two_limits() -> sw.Agent:
    safe = sw.SafeAction(arm=0, reward=0.0, cost=[0.0, 0.0])
    return sw.Agent(sw.OPB(arms=2, safe_action=safe, threshold={"leave": 0.9, "complain": 0.9}, interval="kl"))


def test_one_acknowledged_drift_leaves_the_other_limit_watched(tmp_path: Path) -> None:
    """What was seen of the other one before the acknowledgement is what tells that it moved after it."""
    agent, zeros, ones = two_limits(), [0.0] * 400, [1.0] * 400
    agent.learn_log([1] * 400, zeros, {"leave": zeros, "complain": zeros})
    assert agent.decide(sw.ArmSet(2)).message is None
    agent.learn_log([1] * 400, zeros, {"leave": ones, "complain": zeros})
    assert drifted(agent.decide(sw.ArmSet(2))) == "leave"
    agent.acknowledge_alert("drift of leave", "Ana: a new season")
    assert agent.health()["drift of leave"].details["late"] == 0
    assert agent.health()["drift of complain"].details == {"count": 800, "early": 400, "late": 400}
    agent.save(tmp_path / "agent.json")
    for one in (agent, sw.Agent.load(tmp_path / "agent.json")):
        one.learn_log([1] * 400, zeros, {"leave": ones, "complain": ones})
        assert drifted(one.decide(sw.ArmSet(2))) == "complain"
        details = one.health()["drift of complain"].details
        assert [details[name] for name in ("action", "early", "unit", "early_mean")] == ["arm 1", 800, "pull", 0.0]
        assert told(one)["drift of leave"] != "contradicted"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda tracks: tracks["leave"]["marks"][0].update({"pulls 0": [1.0]}),
        lambda tracks: tracks["leave"]["marks"][0].update({"totals 0": [[1.0, 2.0]]}),
        lambda tracks: tracks["leave"]["marks"][0].pop("pulls 0"),
        lambda tracks: tracks["leave"]["marks"][0].update({"more": 3.0}),
        lambda tracks: tracks["leave"].update({"base": {"pulls 0": [1.0, 2.0]}}),
        lambda tracks: tracks["complain"].update({"marks": [{}]}),
        lambda tracks: tracks.update({"nothing of the sort": tracks["leave"]}),
    ],
)
def test_marks_of_another_form_are_refused_on_loading(tmp_path: Path, spoil: Any) -> None:
    agent = two_limits()
    agent.learn_log([1] * 400, [0.0] * 400, {"leave": [0.0] * 400, "complain": [0.0] * 400})
    agent.decide(sw.ArmSet(2))
    agent.save(tmp_path / "agent.json")
    content = json.loads((tmp_path / "agent.json").read_text())
    assert content["statistics"]["tracks"]["leave"]["marks"]
    spoil(content["statistics"]["tracks"])
    del content["digest"]
    content["digest"] = compute_sha256(json.dumps(content).encode())
    (tmp_path / "agent.json").write_text(json.dumps(content))
    refuses(lambda: sw.Agent.load(tmp_path / "agent.json"), sw.InvalidFile, ErrorCode.FILE_INVALID)


def test_marks_of_fewer_segments_load(tmp_path: Path) -> None:
    limits = {"leave": sw.Limit(0.5, safe_bound=0.1, by="country")}
    agent = sw.Agent(sw.Problem(action_names=["a", "b"], safe_name="a", reward=sw.Reward("click"), limits=limits))
    for country in ("NZ", "AU"):
        agent.learn_log_frame({"action": ["b"] * 40, "click": [0] * 40, "leave": [0] * 40, "country": [country] * 40})
        agent.decide({"country": country})
        agent.save(tmp_path / f"{country}.json")
    loaded = sw.Agent.load(tmp_path / "AU.json")
    loaded.learn_log_frame({"action": ["b"] * 40, "click": [0] * 40, "leave": [1] * 40, "country": ["NZ"] * 40})
    details = loaded.health()["drift of leave"].details
    assert (details["action"], details["segment"], details["early"], details["early_mean"]) == ("'b'", "NZ", 40, 0.0)
