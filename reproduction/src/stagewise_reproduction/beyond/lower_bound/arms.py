"""The instances behind √((K−1)T)/27, the other term of the lower bound for arms.

Lattimore and Szepesvári (2020), Theorem 15.2: of K arms with unit Gaussian noise the first is worth Δ more than the
others, or one of the others is worth as much more than the first. No arm costs more than the safe one, so that only
rewards must be learned. The safe arm is the first: the proof compares instances that differ in another arm only, so
that knowing its means helps no algorithm.
"""

import math

import numpy as np

from stagewise.worlds.finite_worlds import ArmsWorld

SAFE_REWARD, SAFE_COST = 0.5, 0.2


def compute_gap(arms: int, rounds: int) -> float:
    """Return Δ = √((K − 1)/4T); means stay in [0, 1] for T ≥ K − 1, as the theorem asks."""
    return math.sqrt((arms - 1) / (4.0 * rounds))


def build_instances(arms: int, rounds: int) -> list[ArmsWorld]:
    """Return ν, in which the safe arm is best, and for every other arm the ν' in which that arm is."""
    base = np.full(arms, SAFE_REWARD - compute_gap(arms, rounds))
    base[0] = SAFE_REWARD
    worlds = [base]
    for arm in range(1, arms):
        other = base.copy()
        other[arm] = SAFE_REWARD + compute_gap(arms, rounds)
        worlds.append(other)
    costs = np.full(arms, SAFE_COST)
    return [ArmsWorld(reward=rewards, cost=costs, outcomes="gaussian", noise=1.0) for rewards in worlds]


def compute_bound(arms: int, rounds: int) -> float:
    """Return √((K − 1)T)/27: every algorithm has at least this mean regret on one of the instances."""
    return math.sqrt((arms - 1) * rounds) / 27.0
