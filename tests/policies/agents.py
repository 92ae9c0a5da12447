"""Agents of every kind of policy, for the tests of agents."""

import math
from typing import Any

import numpy as np

from stagewise import (
    LCLUCB,
    OPB,
    OPLB,
    ROFUL,
    UCB,
    Agent,
    AlwaysSafe,
    ArmSet,
    LinUCB,
    SafeAction,
    SafeLTS,
)

NAN, INF = math.nan, math.inf

ORIGIN = SafeAction(features=[0.0, 0.0])
SAFE_ARM = SafeAction(arm=0, reward=0.1, cost=0.0)
NAMED = {"spend": 0.5, "wait": 0.4}

ONE = LCLUCB(safe_action=ORIGIN, threshold=0.5, noise=0.1)
TWO = OPLB(safe_action=ORIGIN, threshold=NAMED, noise=0.1)
PULLS = OPB(arms=3, safe_action=SAFE_ARM, threshold=0.2)

WITH_ONE_COST = {
    "LCLUCB": ONE,
    "ROFUL": ROFUL(safe_action=ORIGIN, threshold=0.5, noise=0.1),
    "SafeLTS": SafeLTS(safe_action=ORIGIN, threshold=0.5, noise=0.1),
    "OPLB": OPLB(safe_action=ORIGIN, threshold=0.5, noise=0.1),
    "OPB": PULLS,
    "AlwaysSafe": AlwaysSafe(safe_action=SAFE_ARM, threshold=0.2),
}
WITHOUT_COST = {"LinUCB": LinUCB(noise=0.1), "UCB": UCB(arms=3)}


def choices(policy: Any) -> Any:
    return ArmSet(3) if isinstance(policy, OPB | UCB) else np.eye(2)


def remembered(agent: Agent) -> tuple[bytes, int, int]:
    return agent.state.memory.tobytes(), agent.pending_count, agent.round
