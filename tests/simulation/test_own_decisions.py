"""Decisions of someone's own policy, held against what was offered before a round is judged by them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.policies.refusals import refused_with
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.engine.loop import FIRST_VIOLATION, VIOLATIONS, audit_round, record_round
from stagewise.problem.errors import ErrorCode
from stagewise.simulation.run import compute_recorded_rounds, empty_trace

ARMS = sw.ArmsWorld(reward=[0.1, 0.5, 0.9], cost=[0.0, 0.1, 0.6])
SAFE_ARM = sw.SafeAction(arm=0, reward=0.1, cost=0.0)
TARGETS = [[1.0, 0.0], [0.0, 1.0]]
RAYS = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.RaySet(TARGETS), noise=0.1)
FINITE = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.FiniteSet(TARGETS), noise=0.1)
BALL = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.BallSet(1.0), noise=0.1)
ORIGIN = sw.SafeAction(features=[0.0, 0.0])
NAN = float("nan")


@dataclass(frozen=True, kw_only=True)
class Says:
    """Decides what it was told to, from round 2 on; before, the safe action."""

    told: dict[str, Any] = field(default_factory=dict)
    safe_action: sw.SafeAction = SAFE_ARM
    threshold: float = 0.2

    def start(self) -> None:
        return None

    def decide(self, state: None, actions: Any, draw: sw.RandomKey) -> Any:
        arm, limit = self.safe_action.arm, np.array([self.threshold])
        action: Any = self.safe_action.features if arm is None else arm
        index = arm
        decision = sw.Decision(action, index, 0.0, None, 0.0, limit, limit, None, draw.round)
        if draw.round < 2:
            return decision
        return decision._replace(**self.told) if isinstance(self.told, dict) else self.told

    def learn(self, state: None, decision: sw.Decision, outcome: sw.Outcome) -> None:
        return None


def mixed(chances: Any, action: Any = 0, index: Any = 0) -> dict[str, Any]:
    return {"probabilities": np.array(chances), "action": action, "action_index": index}


def on_ray(action: Any, index: int | None, step: float = 1.0) -> dict[str, Any]:
    return {"action": np.array(action), "action_index": index, "step_size": step}


@pytest.mark.parametrize(
    "told",
    [
        mixed([2.0, -1.0, 0.0, 0.0]),
        mixed([0.2, 0.2, 0.0, 0.0]),
        mixed([NAN, 1.0, 0.0, 0.0], 1, 1),
        mixed([1.0, 0.0, 0.0]),
        mixed([[1.0, 0.0, 0.0, 0.0]]),
        mixed(["1.0", "0.0", "0.0", "0.0"]),
        {"probabilities": [[1.0], [0.0, 0.0]]},
        {"probabilities": "1000"},
        mixed([1.0, 0.0, 0.0, 0.0], 2, 2),  # what is played has no chance
        mixed([0.5, 0.0, 0.5, 0.0], 2, 0),  # the index is another's
        mixed([0.5, 0.5, 0.0, 0.0], 1, 9),
        mixed([0.0, 0.0, 0.0, 1.0], 2, None),
        {"action": 2, "action_index": 1},
        {"action": 3, "action_index": 3},
        {"action": 1.5, "action_index": 1},
        {"action": NAN, "action_index": 1},
        {"action": None, "action_index": 0},
        {"action": [2], "action_index": 2},
        {"action": [[2], [0, 0]]},
        {"action_index": "0"},
        {"action_index": True, "action": 1},
        None,
        2,
    ],
)
def test_a_decision_about_arms_that_cannot_be_is_refused(told: Any) -> None:
    policy = Says(told=told)
    for play in (
        lambda: sw.simulate(policy, ARMS, rounds=5),
        lambda: sw.certify(policy, ARMS, rounds=5, runs=4, progress=False),
    ):
        with pytest.raises(sw.InvalidProblem) as refusal:
            play()
        assert refusal.value.code is ErrorCode.INVALID_DECISION
        assert "\n" not in str(refusal.value)
        assert len(str(refusal.value)) < 400


@pytest.mark.parametrize(
    ("world", "told"),
    [
        (RAYS, on_ray([0.1, 0.0], 0, 0.9)),  # it says nine tenths of the ray, and plays one
        (RAYS, on_ray([2.0, 0.0], 0, 2.0)),
        (RAYS, on_ray([0.5, 0.0], 1, 0.5)),
        (RAYS, on_ray([0.5, 0.5], 0, 0.5)),
        (RAYS, on_ray([NAN, 0.0], 0, 1.0)),
        (RAYS, on_ray([1.0, 0.0], 0, NAN)),
        (RAYS, on_ray([1.0], 0)),
        (RAYS, {"action": np.array([1.0, 0.0]), "action_index": 0, "step_size": "1"}),
        (RAYS, on_ray([1.0, 0.0], None)),
        (RAYS, on_ray([1.0, 0.0], -3)),
        (FINITE, on_ray([0.5, 0.0], 0, 0.5)),
        (FINITE, mixed([0.5, 0.0, 0.5], np.array([0.0, 1.0]), 0)),
        (FINITE, mixed([0.5, 0.0, -0.5, 1.0], np.array([1.0, 0.0]), 0)),
        (BALL, on_ray([1.5, 0.0], 0)),
        (BALL, on_ray([NAN, 0.0], 0)),
        (BALL, on_ray([0.1, 0.0, 0.0], 0)),
        (BALL, mixed([1.0, 0.0], np.array([0.1, 0.0]), 0)),
    ],
)
def test_a_decision_about_features_that_cannot_be_is_refused(world: Any, told: dict[str, Any]) -> None:
    with refused(sw.InvalidProblem, ErrorCode.INVALID_DECISION):
        sw.simulate(Says(told=told, safe_action=ORIGIN), world, rounds=5)


@pytest.mark.parametrize(
    ("world", "told", "broken"),
    [
        (ARMS, {"action": 2, "action_index": 2}, 3),
        (ARMS, {"action": np.int64(1), "action_index": np.int64(1)}, 0),
        (ARMS, mixed([0.5, 0.0, 0.5, 0.0], 2, 2), 3),
        (ARMS, mixed([0.5, 0.0, 0.1, 0.4], 0, None), 0),
        (RAYS, on_ray([0.25, 0.0], 0, 0.25), 0),
        (RAYS, on_ray([1.0, 0.0], 0), 3),
        (FINITE, on_ray([0.0, 1.0], 1), 3),
        (FINITE, mixed([0.1, 0.1, 0.8], np.array([0.0, 1.0]), 1), 0),
        (BALL, on_ray([0.0, 1.0], 0), 3),
        (BALL, on_ray([0.0, 0.0], None, 0.0), 0),
    ],
)
def test_a_decision_that_can_be_is_judged_by_what_it_says(world: Any, told: dict[str, Any], broken: int) -> None:
    safe = SAFE_ARM if world is ARMS else ORIGIN
    assert sw.simulate(Says(told=told, safe_action=safe), world, rounds=5).violations[0] == broken


def test_what_is_not_eligible_has_no_chance() -> None:
    class Fewer(sw.ArmsWorld):
        def actions_in(self, draw: sw.RandomKey) -> sw.ArmSet:
            return sw.ArmSet(3).only([0, 1])

    world = Fewer(reward=[0.1, 0.5, 0.9], cost=[0.0, 0.1, 0.6])
    assert sw.simulate(Says(told={"action": 1, "action_index": 1}), world, rounds=5).violations[0] == 0
    for told in ({"action": 2, "action_index": 2}, mixed([0.9, 0.0, 0.1, 0.0])):
        with refused(sw.InvalidProblem, ErrorCode.INVALID_DECISION):
            sw.simulate(Says(told=told), world, rounds=5)


@pytest.mark.parametrize("means", [[0.1, NAN], [NAN, 0.1], [0.1], [0.1, 0.2, 0.3]])
def test_means_that_are_no_numbers_are_refused(means: list[float]) -> None:
    class Broken:
        costs = 1

        def actions_in(self, draw: sw.RandomKey) -> Any:
            return ARMS.actions

        def means(self, action: Any) -> Any:
            return np.array(means) if action == 2 else ARMS.means(action)

        def outcome(self, action: Any, draw: sw.RandomKey) -> sw.Outcome:
            return ARMS.outcome(0, draw)

        def description(self) -> dict[str, Any]:
            return {"kind": "Broken"}

    with refused_with(sw.InvalidProblem, ErrorCode.NOT_FINITE, ErrorCode.WRONG_SHAPE):
        sw.simulate(Says(told={"action": 2, "action_index": 2}), Broken(), rounds=5)


def test_a_cost_that_is_not_a_number_keeps_no_limit() -> None:
    trace = empty_trace(compute_recorded_rounds(3, 1), 1, True)
    for round_ in range(3):
        means = np.array([0.1, NAN if round_ == 1 else 0.0])
        record_round(trace, round_, 0.5, means, np.array([0.2]))
        audit_round(trace.audit, round_, 0.5, 0.1, means, np.array([0.2]))
    assert trace.running[VIOLATIONS] == 1.0
    assert trace.audit[FIRST_VIOLATION] == 2
