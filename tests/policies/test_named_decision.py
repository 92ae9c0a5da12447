"""A decision of a problem, as people and files see it."""

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np

import stagewise as sw

SAID = sw.Problem(
    action_names=["nothing", "offer"],
    safe_name="nothing",
    reward=sw.Reward("click"),
    limits={
        "opt_out": sw.Limit(0.02, safe_bound=0.001, model="rates"),
        "minutes": sw.Limit(sw.AtLeast(20.0), high=60.0, safe_bound=30.0, model="rates"),
    },
)


def test_plain_values_have_names() -> None:
    decision: Any = sw.Agent(SAID, seed=1).decide()
    told = json.loads(json.dumps(decision.to_dict(), allow_nan=False))
    assert told["probabilities"] == decision.probabilities == {"nothing": 1.0, "offer": 0.0}
    assert told["limits"]["minutes"]["threshold"] == 20.0
    replica = sw.Replica(sw.Agent(SAID, seed=1).replica_snapshot(), name="pod")
    assert sw.Agent(SAID, seed=1).register_decision(json.loads(json.dumps(replica.decide().to_dict()))) == 0


def test_its_repr_is_a_line_in_words() -> None:
    text = repr(sw.Agent(SAID, seed=1).decide())
    assert text.startswith(
        "<'nothing' in round 0, drawn from {'nothing': 1.0}, reward 0.5 (optimistic 1), "
        "opt_out 0.001 (pessimistic 0.001) ≤ 0.02, "
    )
    assert "(pessimistic 30) ≥ 20" in text
    assert "reason='no_better_action'" in text
    assert "\n" not in text
    assert "array" not in text


def test_an_agent_says_what_it_is() -> None:
    agent = sw.Agent(SAID, seed=1)
    agent.decide()
    assert repr(agent) == "<Agent of 2 actions, round 1, 1 pending, 0 buffered>"
    assert "of OPB," in repr(sw.Agent(sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, cost=0.0), threshold=0.5)))


def test_probabilities_are_by_name_whoever_decides(tmp_path: Path) -> None:
    """Also in the safe action's place, in copies, and among the fields; without names they are an array."""
    agent = sw.Agent(SAID, seed=1)
    stopped = sw.Agent(SAID, seed=1)
    rows = {"action": ["nothing"] * 2000, "click": [0] * 2000, "opt_out": [1] * 2000, "minutes": [30.0] * 2000}
    stopped.learn_log_frame(rows)
    agent.save(tmp_path / "agent.json")
    policy = SAID.policy()
    decided: dict[str, Any] = {
        "agent": agent.decide(),
        "loaded": sw.Agent.load(tmp_path / "agent.json").decide(),
        "replica": sw.Replica(agent.replica_snapshot(), name="pod").decide(),
        "policy": policy.decide(policy.start(), {}, sw.RandomKey(seed=1)),
        "stopped": stopped.decide(),
        "stopped replica": sw.Replica(stopped.replica_snapshot(), name="pod").decide(),
    }
    assert decided["stopped"].reason is sw.FallbackReason.ASSUMPTION_CONTRADICTED
    for who, decision in decided.items():
        for one in (
            decision,
            copy.deepcopy(decision),
            pickle.loads(pickle.dumps(decision)),
            decision._replace(solver_gap=0.0),
        ):
            told = [one.probabilities, one._asdict()["probabilities"], one.to_dict()["probabilities"]]
            assert told == [{"nothing": 1.0, "offer": 0.0}] * 3, who
    arms = sw.Agent(sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, cost=0.0), threshold=0.5), seed=1)
    for bare in (arms.decide(sw.ArmSet(2)), sw.Replica(arms.replica_snapshot(), name="pod").decide(sw.ArmSet(2))):
        assert isinstance(bare.probabilities, np.ndarray)
        assert bare.probabilities.shape == (3,)
