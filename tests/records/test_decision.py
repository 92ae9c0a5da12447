"""A decision is a record: short to print, fit to be sent elsewhere, and not to be rewritten."""

import json
import math
import pickle

import numpy as np
import pytest

import stagewise as sw


def decided() -> sw.Decision:
    policy = sw.LCLUCB(safe_action=sw.SafeAction(features=np.zeros(2)), threshold={"wear": 0.5}, noise=0.1)
    return sw.Agent(policy).decide(np.eye(2))


def test_it_prints_in_a_line_or_two() -> None:
    text = repr(decided())
    assert "index=0" in text
    assert "cause=None" in text
    assert len(text) < 300


def test_it_survives_a_trip_to_another_process() -> None:
    decision = decided()
    copy = pickle.loads(pickle.dumps(decision))
    assert copy.explain() == decision.explain()
    assert "wear ≤ 0.5" in copy.explain()


def test_it_can_be_logged() -> None:
    decision = decided()
    told = json.loads(json.dumps(decision.plain(), allow_nan=False))
    assert told["action"] == decision.action.tolist()
    assert told["dearest"] == decision.dearest.tolist()
    assert (told["round"], told["reason"], told["fallback"], told["probabilities"]) == (0, None, None, None)
    more = {"id", "reason", "fallback", "estimated_reward", "estimated_cost"}
    assert set(told) == {*more, *sw.Decision._fields} - {"cause"}
    assert told["estimated_cost"] == decision.estimated_cost.tolist()
    assert decision._replace(gap=math.inf, hoped=math.nan).plain()["gap"] is None


def test_a_drawn_arm_can_be_logged() -> None:
    policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
    told = json.loads(json.dumps(sw.Agent(policy).decide(sw.Arms(2)).plain(), allow_nan=False))
    assert told["action"] in (0, 1)
    assert sum(told["probabilities"]) == pytest.approx(1.0)


def test_what_only_the_policy_needs_is_not_public() -> None:
    public = {name for name in dir(decided()) if not name.startswith("_")} - set(dir(tuple))
    more = {"id", "name", "reason", "fallback", "plain", "explain", "estimated_reward", "estimated_cost"}
    assert public == {*sw.Decision._fields, *more} - {"index"}


def test_a_changed_copy_explains_itself_as_well() -> None:
    decision = decided()
    assert decision._replace(gap=0.1).explain() == decision.explain()


def test_it_cannot_be_rewritten() -> None:
    decision = decided()
    with pytest.raises(AttributeError):
        decision.step = 1.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        decision.action[0] = 1.0


def test_a_safe_action_is_the_beginning_of_a_ray_and_a_whole_arm() -> None:
    point = sw.AlwaysSafe(safe_action=sw.SafeAction(features=[0.1, 0.2], cost=0.0), threshold=0.1)
    arm = sw.AlwaysSafe(safe_action=sw.SafeAction(arm=1, cost=0.0), threshold=0.1)
    told = [policy.decide(policy.start(), offer) for policy, offer in ((point, np.eye(2)), (arm, sw.Arms(3)))]
    assert [(decision.index, decision.step) for decision in told] == [(-1, 0.0), (1, 1.0)]
