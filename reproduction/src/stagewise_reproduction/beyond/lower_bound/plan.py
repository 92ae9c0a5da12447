"""The two instances of the lower-bound proof, corrected as in the errata, for several gaps τ − c₀."""

import numpy as np

from stagewise.policies.opb import OPB
from stagewise.policies.settings import Optimism
from stagewise.problem.safe_action import SafeAction
from stagewise.worlds.arms import ArmsWorld
from stagewise_reproduction.cell import Cell, repeated
from stagewise_reproduction.instances import DELTA, SIZES, slug

GAPS = (0.05, 0.1, 0.2)
SAFE_REWARD, SAFE_COST = 0.5, 0.2
ARMS = 4
INSTANCES = ("ν", "ν'")
POLICIES: dict[str, Optimism] = {"OPB": "inflated", "OPB, directional": "directional"}


def instance(gap: float, which: str) -> ArmsWorld:
    """Return the means of the proof: Δ = (1 − r₀)/7, D = (8r₀ − 1)/7; in ν' arm 3 is cheap, in ν it is not."""
    step, base = (1.0 - SAFE_REWARD) / 7.0, (8.0 * SAFE_REWARD - 1.0) / 7.0
    dear = SAFE_COST + 3.0 * gap
    rewards = np.array([base + step, base + 8.0 * step, base, base + 4.0 * step])
    costs = np.array([SAFE_COST, dear, SAFE_COST, dear if which == "ν" else SAFE_COST])
    return ArmsWorld(reward=rewards, cost=costs, outcomes="gaussian", noise=1.0)


def bound(gap: float) -> float:
    """Return B = (1 − r₀)/21(τ − c₀)²: one of the two instances costs every algorithm this much.

    The theorem's other term, d√T/8e², comes from other instances. The horizon must be at least 168eB/(1 − r₀), which is
    8,700 rounds at the smallest gap.
    """
    return (1.0 - SAFE_REWARD) / (21.0 * gap**2)


def name_of(policy: str, gap: float, which: str) -> str:
    """Return the name of a curve."""
    return f"{slug(policy)}-gap-{gap:g}-{'nu' if which == 'ν' else 'nu-prime'}"


def cells(_: str, size: str) -> list[Cell]:
    """Return every curve."""
    return [cell(size, policy, gap, which) for gap in GAPS for which in INSTANCES for policy in POLICIES]


def cell(size: str, policy: str, gap: float, which: str) -> Cell:
    """Return one curve."""
    rounds, runs = SIZES[size]
    safe = SafeAction(arm=0, reward=SAFE_REWARD, cost=SAFE_COST)
    threshold, optimism = SAFE_COST + gap, POLICIES[policy]
    player = OPB(arms=ARMS, safe_action=safe, threshold=threshold, noise=1.0, delta=DELTA, optimism=optimism)
    world = instance(gap, which)

    about = {"policy": policy, "preset": "ours", "gap": gap, "instance": which, "tau": threshold}
    return Cell(name_of(policy, gap, which), about, rounds, runs, repeated(player, world, rounds))
