"""The instances behind d√T/8e², the other term of the lower bound for linear signals.

Lattimore and Szepesvári (2020), Theorem 24.1: actions are the cube [−1, 1]^d, θ* is one of {−T^(−1/2), T^(−1/2)}^d, the
noise is Gaussian with variance 1. On average over these θ* every algorithm regrets at least d√T/8e², so on one of them
too. Nothing costs anything, so that only rewards must be learned; the safe action is the origin. Means leave [0, 1],
against Assumption 4 (errata, E57).

Here the actions are the segments from the origin to the corners, among which is the best one for every θ*: whoever
plays there plays in the cube, so the bound holds.
"""

import math
from itertools import product
from typing import Any

import numpy as np

from stagewise.policies.lclucb import LCLUCB, ROFUL
from stagewise.problem.actions import Rays
from stagewise.reports.result import Result
from stagewise.worlds.linear import LinearWorld
from stagewise_reproduction.cell import Cell, simulated
from stagewise_reproduction.claim import Claim, final, verdict
from stagewise_reproduction.drawing import legend_below, panels
from stagewise_reproduction.instances import DELTA, at_zero, slug

DIMENSIONS = (2, 3, 4)
POLICIES: dict[str, Any] = {"LC-LUCB": LCLUCB, "ROFUL": ROFUL}
THRESHOLD = 1_000.0  # so far away that it never binds
SIZES = {"smoke": (1_000, 2), "quick": (10_000, 16), "full": (100_000, 64)}


def bound(dimension: int, rounds: int) -> float:
    """Return d√T/8e², a bound for the mean over all θ*."""
    return dimension * math.sqrt(rounds) / (8.0 * math.e**2)


def instance(signs: Any, rounds: int) -> LinearWorld:
    """Return the world whose θ* has these signs."""
    reward = np.asarray(signs, dtype=np.float64) / math.sqrt(rounds)
    corners = np.array(list(product((-1.0, 1.0), repeat=reward.size)))
    return LinearWorld(reward=reward, cost=np.zeros(reward.size), actions=Rays(corners), noise=1.0)


def signs_of(dimension: int, run: int) -> Any:
    """Return the signs of a run: all of them in turn, so that runs average over θ*."""
    return 1.0 - 2.0 * ((run >> np.arange(dimension)) & 1)


def name_of(policy: str, dimension: int) -> str:
    """Return the name of a curve."""
    return f"{slug(policy)}-d{dimension}"


def cells(_: str, size: str) -> list[Cell]:
    """Return every curve."""
    return [cell(size, policy, dimension) for policy in POLICIES for dimension in DIMENSIONS]


def cell(size: str, policy: str, dimension: int) -> Cell:
    """Return one curve."""
    rounds, runs = SIZES[size]
    told: dict[str, Any] = {"threshold": THRESHOLD, "cost_bound": None, "noise": 1.0, "delta": DELTA}
    told["norm_bound"] = math.sqrt(dimension / rounds)
    player = POLICIES[policy](**told, safe_action=at_zero(dimension), ridge=1.0)
    about = {"policy": policy, "preset": "ours", "d": dimension, "tau": THRESHOLD}
    play = simulated(lambda run: (player, instance(signs_of(dimension, run), rounds)), rounds)
    return Cell(name_of(policy, dimension), about, rounds, runs, play)


def check(_: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict: above the bound, and below what never leaving the origin costs."""
    claims = []
    for policy in POLICIES:
        for dimension in DIMENSIONS:
            result = results[name_of(policy, dimension)]
            rounds, mean = int(result.rounds[-1]), final(result)
            least, most = bound(dimension, rounds), dimension * math.sqrt(rounds)
            statement = f"{policy}, d = {dimension}: mean regret over all signs of θ* is above d√T/8e²"
            claims.append(Claim(statement, round(mean, 1), f"at least {least:,.1f}", verdict(mean >= least), True))
            statement = f"{policy}, d = {dimension}: and below d√T, the regret of never leaving the origin"
            claims.append(Claim(statement, round(mean, 1), f"below {most:,.1f}", verdict(mean < most)))
    return claims


def draw(_: str, results: dict[str, Result]) -> Any:
    """Draw regret against the dimension, above the bound."""
    from stagewise.reports.style import STYLES, plain_axes

    figure, grid = panels(1, 1, width=7.0, height=4.0)
    axes, rounds = grid[0, 0], int(next(iter(results.values())).rounds[-1])
    for style, policy in enumerate(POLICIES):
        colour, dashes = STYLES[style]
        values = [final(results[name_of(policy, dimension)]) for dimension in DIMENSIONS]
        axes.semilogy(DIMENSIONS, values, marker="o", color=colour, linestyle=dashes, label=policy)
    stay = [dimension * math.sqrt(rounds) for dimension in DIMENSIONS]
    axes.semilogy(DIMENSIONS, stay, color="grey", linestyle=":", label="d√T: never leaving the origin")
    axes.semilogy(DIMENSIONS, [bound(d, rounds) for d in DIMENSIONS], color="black", marker="_", label="d√T/8e²")
    plain_axes(axes, x="dimension d", y=f"mean regret after {rounds:,} rounds")
    axes.set(xticks=DIMENSIONS)
    legend_below(figure, axes, 2)
    return figure
