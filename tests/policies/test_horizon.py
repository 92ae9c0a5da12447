"""A horizon is a promise: beyond it the radii of a union bound hold no longer."""

import numpy as np
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.problem.errors import ErrorCode

SAFE = sw.SafeAction(arm=0, reward=0.1, cost=0.0)


def test_opb_falls_back_once_an_arm_was_pulled_as_often_as_the_horizon() -> None:
    agent = sw.Agent(sw.OPB(arms=2, safe_action=SAFE, threshold=0.5, horizon=4, interval="hoeffding"), seed=3)
    reasons = []
    for _ in range(12):
        decision = agent.decide(sw.ArmSet(2))
        reasons.append(decision.reason)
        agent.learn(decision, reward=0.5, cost=0.1 if decision.action else 0.0)
    assert reasons[:4] == [None] * 4
    assert reasons[-1] is sw.FallbackReason.HORIZON_EXCEEDED
    assert decision.action == 0
    assert np.array_equal(decision.probabilities, [1.0, 0.0, 0.0])


def test_a_simulation_beyond_the_horizon_is_refused() -> None:
    policy = sw.OPB(arms=2, safe_action=SAFE, threshold=0.5, horizon=100, interval="hoeffding")
    with refused(sw.InvalidProblem, ErrorCode.CONFLICTING_SETTINGS):
        sw.simulate(policy, sw.ArmsWorld(reward=[0.1, 0.5], cost=[0.0, 0.2]), rounds=101)
