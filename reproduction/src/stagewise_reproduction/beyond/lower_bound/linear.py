"""The instances behind d√T/8e², the other term of the lower bound for linear signals.

Lattimore and Szepesvári (2020), Theorem 24.1: actions are the cube [−1, 1]^d, θ* is one of {−T^(−1/2), T^(−1/2)}^d, the
noise is Gaussian with variance 1. On average over these θ* every algorithm regrets at least d√T/8e², so on one of them
too. Nothing costs anything, so that only rewards must be learned; the safe action is the origin. Means leave [0, 1],
against Assumption 4 (errata, E57).

Here the actions are the segments from the origin to the corners, which contain the optimum for every θ* and lie in the
cube, so the bound holds.
"""

import math
from itertools import product
from typing import Any

import numpy as np

from stagewise.policies.lclucb import LCLUCB, ROFUL
from stagewise.problem.actions import RaySet
from stagewise.reports.result import Result
from stagewise.worlds.linear_world import LinearWorld
from stagewise_reproduction.cell import Cell, build_play
from stagewise_reproduction.claim import Claim, compute_final_regret, to_verdict
from stagewise_reproduction.drawing import add_legend_below, make_panels
from stagewise_reproduction.instances import DELTA, at_zero, make_slug

DIMENSIONS = (2, 3, 4)
POLICIES: dict[str, Any] = {"LC-LUCB": LCLUCB, "ROFUL": ROFUL}
THRESHOLD = 1_000.0  # large enough never to bind
SIZES = {"smoke": (200, 2), "quick": (10_000, 16), "full": (100_000, 64)}


def compute_bound(dimension: int, rounds: int) -> float:
    """Return d√T/8e², a bound for the mean over all θ*."""
    return dimension * math.sqrt(rounds) / (8.0 * math.e**2)


def build_instance(signs: Any, rounds: int) -> LinearWorld:
    """Return the world whose θ* has these signs."""
    reward = np.asarray(signs, dtype=np.float64) / math.sqrt(rounds)
    corners = np.array(list(product((-1.0, 1.0), repeat=reward.size)))
    return LinearWorld(reward=reward, cost=np.zeros(reward.size), actions=RaySet(corners), noise=1.0)


def get_signs(dimension: int, run: int) -> Any:
    """Return the signs of a run: all of them in turn, so that runs average over θ*."""
    return 1.0 - 2.0 * ((run >> np.arange(dimension)) & 1)


def build_name(policy: str, dimension: int) -> str:
    """Return the name of a curve."""
    return f"{make_slug(policy)}-d{dimension}"


def cells(_: str, size: str) -> list[Cell]:
    """Return every curve."""
    return [build_cell(size, policy, dimension) for policy in POLICIES for dimension in DIMENSIONS]


def build_cell(size: str, policy: str, dimension: int) -> Cell:
    """Return one curve."""
    rounds, runs = SIZES[size]
    settings: dict[str, Any] = {"threshold": THRESHOLD, "mean_cost_bound": None, "noise": 1.0, "delta": DELTA}
    settings["norm_bound"] = math.sqrt(dimension / rounds)
    player = POLICIES[policy](**settings, safe_action=at_zero(dimension), ridge=1.0)
    cell_settings = {"policy": policy, "preset": "ours", "d": dimension, "tau": THRESHOLD}
    play = build_play(lambda run: (player, build_instance(get_signs(dimension, run), rounds)), rounds)
    return Cell(build_name(policy, dimension), cell_settings, rounds, runs, play)


def check(_: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict: above the bound, and below the regret of always playing the origin."""
    claims = []
    for policy in POLICIES:
        for dimension in DIMENSIONS:
            result = results[build_name(policy, dimension)]
            rounds, mean = int(result.rounds[-1]), compute_final_regret(result)
            lower, most = compute_bound(dimension, rounds), dimension * math.sqrt(rounds)
            statement = f"{policy}, d = {dimension}: mean regret over all signs of θ* is above d√T/8e²"
            claims.append(Claim(statement, round(mean, 1), f"at least {lower:,.1f}", to_verdict(mean >= lower), True))
            statement = f"{policy}, d = {dimension}: and below d√T, the regret of never leaving the origin"
            claims.append(Claim(statement, round(mean, 1), f"below {most:,.1f}", to_verdict(mean < most)))
    return claims


def draw(_: str, results: dict[str, Result]) -> Any:
    """Draw regret against the dimension, above the bound."""
    from stagewise.reports.style import STYLES, format_axes

    figure, grid = make_panels(1, 1, width=7.0, height=4.0)
    axes, rounds = grid[0, 0], int(next(iter(results.values())).rounds[-1])
    for style, policy in enumerate(POLICIES):
        colour, dashes = STYLES[style]
        values = [compute_final_regret(results[build_name(policy, dimension)]) for dimension in DIMENSIONS]
        axes.semilogy(DIMENSIONS, values, marker="o", color=colour, linestyle=dashes, label=policy)
    safe_regret = [dimension * math.sqrt(rounds) for dimension in DIMENSIONS]
    axes.semilogy(DIMENSIONS, safe_regret, color="grey", linestyle=":", label="d√T: never leaving the origin")
    axes.semilogy(
        DIMENSIONS, [compute_bound(d, rounds) for d in DIMENSIONS], color="black", marker="_", label="d√T/8e²"
    )
    format_axes(axes, x="dimension d", y=f"mean regret after {rounds:,} rounds")
    axes.set(xticks=DIMENSIONS)
    add_legend_below(figure, axes, 2)
    return figure
