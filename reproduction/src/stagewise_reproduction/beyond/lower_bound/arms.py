"""The instances behind √((K−1)T)/27, the other term of the lower bound for arms.

Lattimore and Szepesvári (2020), Theorem 15.2: of K arms with unit Gaussian noise the first is worth Δ more than the
others, or one of the others is worth as much more than the first. No arm is dearer than the safe one, so that nothing
but rewards must be learned. The safe arm is the first: the proof compares instances that differ in another arm only, so
that knowing its means helps no algorithm.
"""

import math

import numpy as np

from stagewise.worlds.arms import ArmsWorld

SAFE_REWARD, SAFE_COST = 0.5, 0.2


def gap(arms: int, rounds: int) -> float:
    """Return Δ = √((K − 1)/4T); means stay in [0, 1] for T ≥ K − 1, as the theorem asks."""
    return math.sqrt((arms - 1) / (4.0 * rounds))


def instances(arms: int, rounds: int) -> list[ArmsWorld]:
    """Return ν, in which the safe arm is best, and for every other arm the ν' in which that arm is."""
    usual = np.full(arms, SAFE_REWARD - gap(arms, rounds))
    usual[0] = SAFE_REWARD
    worlds = [usual]
    for arm in range(1, arms):
        other = usual.copy()
        other[arm] = SAFE_REWARD + gap(arms, rounds)
        worlds.append(other)
    costs = np.full(arms, SAFE_COST)
    return [ArmsWorld(reward=rewards, cost=costs, outcomes="gaussian", noise=1.0) for rewards in worlds]


def bound(arms: int, rounds: int) -> float:
    """Return √((K − 1)T)/27: one of the instances costs every algorithm this much, on average over runs."""
    return math.sqrt((arms - 1) * rounds) / 27.0
