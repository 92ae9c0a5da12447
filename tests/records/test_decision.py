"""Decisions print in a line, can be pickled, logged and read back, and are immutable."""

import json
import math
import pickle
from typing import Any

import numpy as np
import pytest

import stagewise as sw


def decide() -> sw.Decision:
    policy = sw.LCLUCB(safe_action=sw.SafeAction(features=np.zeros(2)), threshold={"wear": 0.5}, noise=0.1)
    return sw.Agent(policy).decide(np.eye(2))


def test_it_prints_in_a_line_or_two() -> None:
    text = repr(decide())
    assert "action_index=0" in text
    assert "reason_details=None" in text
    assert len(text) < 300


def test_it_survives_a_trip_to_another_process() -> None:
    decision = decide()
    copy = pickle.loads(pickle.dumps(decision))
    assert copy.explain() == decision.explain()
    assert "wear ≤ 0.5" in copy.explain()


def test_it_can_be_logged() -> None:
    decision = decide()
    content = json.loads(json.dumps(decision.to_dict(), allow_nan=False))
    assert content["action"] == decision.action.tolist()
    assert content["pessimistic_cost"] == decision.pessimistic_cost.tolist()
    assert (content["round"], content["reason"], content["message"], content["probabilities"]) == (0, None, None, None)
    more = {"id", "reason", "message", "estimated_reward", "estimated_cost"}
    assert set(content) == {*more, *sw.Decision._fields} - {"reason_details"}
    assert content["estimated_cost"] == decision.estimated_cost.tolist()
    assert decision._replace(solver_gap=math.inf, optimistic_reward=math.nan).to_dict()["solver_gap"] is None


def test_a_drawn_arm_can_be_logged() -> None:
    policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
    content = json.loads(json.dumps(sw.Agent(policy).decide(sw.ArmSet(2)).to_dict(), allow_nan=False))
    assert content["action"] in (0, 1)
    assert sum(content["probabilities"]) == pytest.approx(1.0)


def test_what_only_the_policy_needs_is_not_public() -> None:
    public = {name for name in dir(decide()) if not name.startswith("_")} - set(dir(tuple))
    more = {"id", "reason", "message", "to_dict", "from_dict", "explain"}
    more |= {"estimated_reward", "estimated_cost"}
    assert public == {*sw.Decision._fields, *more}


def test_a_changed_copy_explains_itself_as_well() -> None:
    decision = decide()
    assert decision._replace(solver_gap=0.1).explain() == decision.explain()


def test_it_cannot_be_rewritten() -> None:
    decision = decide()
    with pytest.raises(AttributeError):
        decision.step_size = 1.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        decision.action[0] = 1.0


def test_a_safe_action_is_the_beginning_of_a_ray_and_a_whole_arm() -> None:
    point = sw.AlwaysSafe(safe_action=sw.SafeAction(features=[0.1, 0.2], cost=0.0), threshold=0.1)
    arm = sw.AlwaysSafe(safe_action=sw.SafeAction(arm=1, cost=0.0), threshold=0.1)
    decisions = [policy.decide(policy.start(), offer) for policy, offer in ((point, np.eye(2)), (arm, sw.ArmSet(3)))]
    assert [(decision.action_index, decision.step_size) for decision in decisions] == [(None, 0.0), (1, 1.0)]


def sample_decisions() -> dict[str, sw.Decision]:
    arms = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
    rounds = sw.LCLUCB(threshold=0.3, noise=0.1, safe_action=sw.SafeAction(cost=0.1), dimension=2)
    problem = sw.Problem(
        action_names=["nothing", "offer", "gift"],
        safe_name="nothing",
        reward=sw.Reward("click"),
        limits={
            "opt_out": sw.Limit(0.02, safe_bound=0.001, model="rates"),
            "stars": sw.Limit(sw.AtLeast(0.3), safe_bound=0.6, model="rates"),
        },
        context=["age"],
    )
    always = sw.AlwaysSafe(safe_action=sw.SafeAction(arm=0, cost=0.0), threshold=0.1)
    found = sw.Decision(3, 3, 1.0, None, math.inf, np.array([math.nan]), np.array([0.1]), None, 7, math.inf)
    return {
        "rays": decide(),
        "arms": sw.Agent(arms).decide(sw.ArmSet(2)),
        "a safe action of the round": sw.Replica(sw.Agent(rounds).replica_snapshot(), "pod-1").decide(
            sw.RaySet(np.eye(2), safe=[0.1, 0.2])
        ),
        "problem": sw.Agent(problem).decide({"age": 0.5}),
        "a reason": always.decide(always.start(), sw.ArmSet(2)),
        "details": decide()._replace(reason_details=sw.ReasonDetails.of(sw.FallbackReason.OUTSIDE_CANARY, share=0.1)),
        "not finite": found,
    }


def test_it_can_be_read_back() -> None:
    for name, decision in sample_decisions().items():
        content = json.loads(json.dumps(decision.to_dict(), allow_nan=False))
        copy = sw.Decision.from_dict(content)
        assert json.loads(json.dumps(copy.to_dict(), allow_nan=False)) == content
        assert type(copy) is type(decision)
        for field in ("id", "reason_details", "action_index"):
            assert getattr(copy, field) == getattr(decision, field), (name, field)
        assert np.array_equal(copy.action, decision.action)
        assert copy.probabilities is None or repr(copy.probabilities) == repr(decision.probabilities)
        assert name == "not finite" or repr(copy._replace(step_size=0.5)) == repr(decision._replace(step_size=0.5))


def test_a_decision_that_was_read_back_can_be_registered() -> None:
    policy = sw.LCLUCB(threshold=0.3, noise=0.1, safe_action=sw.SafeAction(cost=0.1), dimension=2)
    first, second = sw.Agent(policy), sw.Agent(policy)
    decision = sw.Replica(first.replica_snapshot(), "pod-1").decide(sw.RaySet(np.eye(2), safe=[0.1, 0.2]))
    first.register_decision(decision)
    second.register_decision(sw.Decision.from_dict(json.loads(json.dumps(decision.to_dict()))))
    for agent in (first, second):
        agent.learn(decision.id, reward=0.5, cost=0.1)
    assert first.state.memory.tobytes() == second.state.memory.tobytes()


def test_what_is_no_decision_is_not_read() -> None:
    contents: list[Any] = [None, 3, {}, [], {"id": "x"}, {**decide().to_dict(), "step_size": "far"}]
    for content in contents:
        with pytest.raises(sw.InvalidOutcome) as caught:
            sw.Decision.from_dict(content)
        assert caught.value.code is sw.ErrorCode.WRONG_TYPE
