"""OPB on arms with random means, one instance a run: Figure 3.

By the text there are three numbers of arms and three thresholds. No public commit of the authors' code plays that: its
`random_mab_problems.py` (3 October 2020) draws ten arms with clipped normal outcomes, of which the cheapest is the safe
one, and a threshold between the smallest and the largest cost, but at least a bound, for three bounds.
"""

from typing import Any

import numpy as np

from stagewise.policies.arms import OPB
from stagewise.problem.safe_action import SafeAction
from stagewise.worlds.finite_worlds import ArmsWorld
from stagewise_reproduction.cell import SEED, Cell, build_play
from stagewise_reproduction.instances import DELTA, OURS, SIZES
from stagewise_reproduction.published import build_published_play

ARMS = (5, 10, 20)
THRESHOLDS = (0.8, 0.5, 0.2)
PUBLIC_ARMS = 10
LEAST_THRESHOLDS = (0.5, 0.2, 0.0)  # thresholds of the public code are at least this


def draw_instance(count: int, run: int) -> ArmsWorld:
    """Return Bernoulli arms of which the first is safe and worth nothing; thresholds share them."""
    means = np.random.default_rng([SEED, 3, count, run]).uniform(size=(2, count))
    means[:, 0] = 0.0
    return ArmsWorld(reward=means[0], cost=means[1], outcomes="bernoulli")


def draw_public_instance(run: int, least: float) -> tuple[ArmsWorld, float]:
    """Return the arms of a run of the public code, the cheapest first, and its threshold; bounds share the arms."""
    random = np.random.default_rng([SEED, 3, PUBLIC_ARMS, run])
    means = random.uniform(size=(2, PUBLIC_ARMS))
    cheapest = int(np.argmin(means[1]))
    means[:, [0, cheapest]] = means[:, [cheapest, 0]]
    costs = means[1]
    threshold = float(costs.min() + (costs.max() - costs.min()) * random.uniform())
    return ArmsWorld(reward=means[0], cost=costs, outcomes="clipped-gaussian"), max(threshold, least)


def build_name(preset: str, count: int, threshold: float) -> str:
    """Return the name of a curve; under the preset authors the threshold is the least one."""
    return f"{preset}-opb-k-{count}-{'least-tau' if preset == 'authors' else 'tau'}-{threshold:g}"


def list_curves(preset: str) -> list[tuple[int, float]]:
    """Return numbers of arms and thresholds, or least thresholds."""
    if preset == "authors":
        return [(PUBLIC_ARMS, least) for least in LEAST_THRESHOLDS]
    return [(count, threshold) for count in ARMS for threshold in THRESHOLDS]


def cells(preset: str, size: str) -> list[Cell]:
    """Return every curve."""
    return [build_cell(preset, size, count, threshold) for count, threshold in list_curves(preset)]


def build_cell(preset: str, size: str, count: int, threshold: float) -> Cell:
    """Return one curve."""
    rounds, runs = SIZES[size]
    settings = OURS if preset == "ours" else {"delta": DELTA, "interval": "paper", "horizon": rounds}

    def build(run: int) -> tuple[Any, Any]:
        safe = SafeAction(arm=0, reward=0.0, cost=0.0)
        return OPB(arms=count, safe_action=safe, threshold=threshold, **settings), draw_instance(count, run)

    def build_public(run: int) -> tuple[Any, Any]:
        world, limit = draw_public_instance(run, threshold)
        safe = SafeAction(arm=0, cost=float(world.table[1, 0]))
        return OPB(arms=count, safe_action=safe, threshold=limit), world

    about: dict[str, Any] = {"policy": "OPB", "preset": preset, "K": count}
    if preset == "authors":
        about |= {"tau": f"random, at least {threshold:g}", "outcomes": "clipped-gaussian"}
        return Cell(
            build_name(preset, count, threshold), about, rounds, runs, build_published_play("OPB", build_public, rounds)
        )
    about |= {"tau": threshold, "outcomes": "bernoulli", "interval": build(0)[0].interval}
    return Cell(build_name(preset, count, threshold), about, rounds, runs, build_play(build, rounds))
