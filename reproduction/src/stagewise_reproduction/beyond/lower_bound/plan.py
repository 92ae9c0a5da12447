"""The two instances of the lower-bound proof, corrected as in the errata, each at the shortest horizon it holds for."""

import math
from typing import Any

import numpy as np

from stagewise.policies.opb import OPB
from stagewise.policies.ucb import UCB
from stagewise.problem.safe_action import SafeAction
from stagewise.worlds.arms import ArmsWorld
from stagewise_reproduction.beyond.lower_bound.informed import Informed
from stagewise_reproduction.cell import Cell, repeated
from stagewise_reproduction.instances import DELTA, SIZES, slug

GAPS = (0.02, 0.03, 0.05)
SAFE_REWARD, SAFE_COST = 0.5, 0.2
ARMS = 4
INSTANCES = ("ν", "ν'")
POLICIES = ("OPB", "OPB, directional")
UNLIMITED, INFORMED = "UCB, no limit", "informed"


def instance(gap: float, which: str) -> ArmsWorld:
    """Return the means of the proof: Δ = (1 − r₀)/7, D = (8r₀ − 1)/7; in ν' arm 3 is cheap, in ν it is not."""
    step, base = (1.0 - SAFE_REWARD) / 7.0, (8.0 * SAFE_REWARD - 1.0) / 7.0
    dear = SAFE_COST + 3.0 * gap
    rewards = np.array([base + step, base + 8.0 * step, base, base + 4.0 * step])
    costs = np.array([SAFE_COST, dear, SAFE_COST, dear if which == "ν" else SAFE_COST])
    return ArmsWorld(reward=rewards, cost=costs, outcomes="gaussian", noise=1.0)


def bound(gap: float) -> float:
    """Return B = (1 − r₀)/21(τ − c₀)²: one of the two instances costs every algorithm that keeps its limit this much.

    The theorem's other term, d√T/8e² or √((K−1)T)/27, comes from other instances (`linear.py`, `arms.py`); at
    `horizon` it is the smaller one for these gaps.
    """
    return (1.0 - SAFE_REWARD) / (21.0 * gap**2)


def horizon(gap: float) -> int:
    """Return the shortest horizon that the theorem allows, 168eB/(1 − r₀) = 8e/(τ − c₀)²."""
    return math.ceil(8.0 * math.e / gap**2)


def name_of(policy: str, gap: float, which: str) -> str:
    """Return the name of a curve."""
    return f"{slug(policy)}-gap-{gap:g}-{'nu' if which == 'ν' else 'nu-prime'}"


def cells(_: str, size: str) -> list[Cell]:
    """Return every curve."""
    players = [(policy, gap) for gap in GAPS for policy in (*POLICIES, UNLIMITED)]
    return [cell(size, *one, which) for one in [*players, (INFORMED, GAPS[-1])] for which in INSTANCES]


def player_of(policy: str, threshold: float) -> Any:
    """Return a policy that is told the noise, and the limit if it keeps one."""
    if policy == UNLIMITED:
        return UCB(arms=ARMS, noise=1.0, threshold=threshold, delta=DELTA)
    safe = SafeAction(arm=0, reward=SAFE_REWARD, cost=SAFE_COST)
    if policy == INFORMED:
        return Informed(safe_action=safe, threshold=threshold, delta=DELTA)
    told: dict[str, Any] = {"arms": ARMS, "safe_action": safe, "threshold": threshold, "noise": 1.0, "delta": DELTA}
    return OPB(**told, optimism="directional" if "directional" in policy else "inflated")


def cell(size: str, policy: str, gap: float, which: str) -> Cell:
    """Return one curve."""
    most, runs = SIZES[size]
    rounds = min(horizon(gap), most) if size == "smoke" else horizon(gap)
    threshold = SAFE_COST + gap
    world, player = instance(gap, which), player_of(policy, threshold)

    about = {"policy": policy, "preset": "ours", "gap": gap, "instance": which, "tau": threshold}
    return Cell(name_of(policy, gap, which), about, rounds, runs, repeated(player, world, rounds))
