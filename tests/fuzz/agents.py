"""Agents of every kind in the middle of their work, and a valid call of every verb they have."""

from typing import Any

import numpy as np
from tests.fuzz.calls import EYE, Call

import stagewise as sw

LIMITS = {"spend": 0.5, "wait": 0.4}
SAFE = sw.SafeAction(features=[0.5, 0.5], reward=0.2, cost=[0.1, 0.1])
SAFE_ARM = sw.SafeAction(arm=0, reward=0.2, cost=[0.1, 0.1])
LINEAR: dict[str, Any] = {"safe_action": SAFE, "threshold": LIMITS, "noise": 0.1}
RATES = [[0.2, 0.5, 0.9], [0.2, 0.9, 0.5]]
COSTS = [[0.1, 0.2, 0.6], [0.1, 0.6, 0.2]]

POLICIES: dict[str, Any] = {
    "LCLUCB": sw.LCLUCB(**LINEAR),
    "ROFUL": sw.ROFUL(**LINEAR),
    "DOSLB": sw.DOSLB(**LINEAR),
    "SafeLTS": sw.SafeLTS(**LINEAR),
    "CAPS": sw.SafePosteriorSampling(**LINEAR),
    "CAPS, mixtures": sw.SafePosteriorSampling(**LINEAR, mixtures=True),
    "OPLB": sw.OPLB(**LINEAR),
    "KernelOPLB": sw.KernelOPLB(**LINEAR, kernel=sw.RBF(lengthscale=0.5), norm_bound=1.0),
    "OPB": sw.OPB(arms=3, safe_action=SAFE_ARM, threshold=LIMITS),
    "OPNLB": sw.OPNLB(reward_class=RATES, cost_class=COSTS, safe_action=SAFE_ARM, threshold=LIMITS),
    "LinUCB": sw.LinUCB(noise=0.1),
    "UCB": sw.UCB(arms=3),
    "AlwaysSafe": sw.AlwaysSafe(safe_action=SAFE, threshold=LIMITS),
}


def pulls(policy: Any) -> bool:
    """Say whether a policy chooses among arms."""
    return isinstance(policy, sw.OPB | sw.SafeArmPosteriorSampling | sw.OPNLB | sw.UCB)


def working(policy: Any, seed: int = 1) -> sw.Agent:
    """Return an agent that has learned from one round and waits for the outcomes of two."""
    agent = sw.Agent(policy, seed)
    decisions = [agent.decide(sw.ArmSet(3) if pulls(policy) else EYE) for _ in range(3)]
    agent.learn(decisions[0], reward=0.5, cost=[0.1, 0.2])
    return agent


def remembered(agent: sw.Agent) -> tuple[Any, ...]:
    """Return all that a refused call must leave as it was."""
    return agent.state.memory.tobytes(), agent.round, agent.pending_count, agent.buffered_count, agent.seed


def decided(agent: sw.Agent) -> Any:
    """Return a decision of a replica, as it is sent."""
    replica = sw.Replica(agent.replica_snapshot(), name="pod", round=agent.round)
    return replica.decide(sw.ArmSet(3) if pulls(agent.policy) else EYE).to_dict()


def verbs(agent: sw.Agent, pending: int = 1) -> dict[str, Call]:
    """Return a valid call of each verb; `pending` is a round without an outcome."""
    arms = pulls(agent.policy)
    logged = np.array([0, 1]) if arms else np.eye(2)
    return {
        "decide": Call(agent.decide, {"actions": sw.ArmSet(3) if arms else sw.RaySet(EYE)}),
        "learn": Call(agent.learn, {"decision": pending, "reward": 0.5, "cost": {"spend": 0.1, "wait": 0.2}}),
        "learn_log": Call(
            agent.learn_log, {"features": logged, "rewards": [0.5, 0.2], "costs": {"spend": [0.1, 0.2], "wait": [0, 1]}}
        ),
        "learn_log_frame": Call(
            agent.learn_log_frame,
            {
                "frame": {"x": [0, 1], "y": [1.0, 0.0], "click": [True, False], "s": [0.1, 0.2], "w": [0, 1]},
                "reward": "click",
                "costs": {"spend": "s", "wait": "w"} if agent.policy.thresholds.names else None,
                **({"action": "x"} if arms or isinstance(agent.policy, sw.AlwaysSafe) else {"context": ["x", "y"]}),
            },
        ),
        "drop_pending": Call(agent.drop_pending, {"before_round": 1}),
        "cancel": Call(agent.cancel, {"decision": pending}),
        "learn a part": Call(agent.learn, {"decision": pending, "reward": 0.5, "now": 1.0}),
        "learn another": Call(agent.learn, {"decision": pending, "spend": 0.5}),
        "expire_pending": Call(agent.expire_pending, {"now": 1.0}),
        "register_decision": Call(agent.register_decision, {"decision": decided(agent), "now": 1.0}),
    }
