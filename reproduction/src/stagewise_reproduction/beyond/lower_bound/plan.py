"""The two instances of the lower-bound proof, corrected as in the errata, each at the shortest valid horizon."""

import math
from typing import Any

import numpy as np

from stagewise.policies.arms import OPB
from stagewise.policies.baselines import UCB
from stagewise.problem.safe_action import SafeAction
from stagewise.worlds.finite_worlds import ArmsWorld
from stagewise_reproduction.beyond.lower_bound.informed import InformedPolicy
from stagewise_reproduction.cell import Cell, build_repeated_play
from stagewise_reproduction.instances import DELTA, SIZES, make_slug

GAPS = (0.02, 0.03, 0.05)
SAFE_REWARD, SAFE_COST = 0.5, 0.2
ARMS = 4
INSTANCES = ("ν", "ν'")
POLICIES = ("OPB", "OPB, directional")
UNLIMITED, INFORMED = "UCB, no limit", "informed"


def build_instance(safety_gap: float, which: str) -> ArmsWorld:
    """Return the means of the proof: Δ = (1 − r₀)/7, D = (8r₀ − 1)/7; in ν' arm 3 is cheap, in ν it is not."""
    step, base = (1.0 - SAFE_REWARD) / 7.0, (8.0 * SAFE_REWARD - 1.0) / 7.0
    costly = SAFE_COST + 3.0 * safety_gap
    rewards = np.array([base + step, base + 8.0 * step, base, base + 4.0 * step])
    costs = np.array([SAFE_COST, costly, SAFE_COST, costly if which == "ν" else SAFE_COST])
    return ArmsWorld(reward=rewards, cost=costs, outcomes="gaussian", noise=1.0)


def compute_bound(safety_gap: float) -> float:
    """Return B = (1 − r₀)/21(τ − c₀)², a lower bound on the regret on one of the instances, if the limit is kept.

    The theorem's other term, d√T/8e² or √((K−1)T)/27, comes from other instances (`linear.py`, `arms.py`); at
    `horizon` it is the smaller one for these gaps.
    """
    return (1.0 - SAFE_REWARD) / (21.0 * safety_gap**2)


def compute_horizon(safety_gap: float) -> int:
    """Return the shortest horizon that the theorem allows, 168eB/(1 − r₀) = 8e/(τ − c₀)²."""
    return math.ceil(8.0 * math.e / safety_gap**2)


def build_name(policy: str, safety_gap: float, which: str) -> str:
    """Return the name of a curve."""
    return f"{make_slug(policy)}-gap-{safety_gap:g}-{'nu' if which == 'ν' else 'nu-prime'}"


def cells(_: str, size: str) -> list[Cell]:
    """Return every curve."""
    players = [(policy, gap) for gap in GAPS for policy in (*POLICIES, UNLIMITED)]
    return [build_cell(size, *one, which) for one in [*players, (INFORMED, GAPS[-1])] for which in INSTANCES]


def build_player(policy: str, threshold: float) -> Any:
    """Return a policy that knows the noise, and the limit if it keeps one."""
    if policy == UNLIMITED:
        return UCB(arms=ARMS, noise=1.0, threshold=threshold, delta=DELTA)
    safe = SafeAction(arm=0, reward=SAFE_REWARD, cost=SAFE_COST)
    if policy == INFORMED:
        return InformedPolicy(safe_action=safe, threshold=threshold, delta=DELTA)
    settings: dict[str, Any] = {"arms": ARMS, "safe_action": safe, "threshold": threshold, "noise": 1.0, "delta": DELTA}
    return OPB(**settings, optimism="directional" if "directional" in policy else "inflated")


def build_cell(size: str, policy: str, safety_gap: float, which: str) -> Cell:
    """Return one curve."""
    most, runs = SIZES[size]
    rounds = min(compute_horizon(safety_gap), most) if size == "smoke" else compute_horizon(safety_gap)
    threshold = SAFE_COST + safety_gap
    world, player = build_instance(safety_gap, which), build_player(policy, threshold)

    cell_settings = {"policy": policy, "preset": "ours", "gap": safety_gap, "instance": which, "tau": threshold}
    return Cell(
        build_name(policy, safety_gap, which), cell_settings, rounds, runs, build_repeated_play(player, world, rounds)
    )
