"""OPB on arms with random means, one instance a run, for three numbers of arms and three thresholds: Figure 3."""

from typing import Any

import numpy as np

from stagewise.policies.opb import OPB
from stagewise.problem.safe_action import SafeAction
from stagewise.worlds.arms import ArmsWorld
from stagewise_reproduction.cell import SEED, Cell, simulated
from stagewise_reproduction.instances import DELTA, OURS, SIZES
from stagewise_reproduction.published import published

ARMS = (5, 10, 20)
THRESHOLDS = (0.8, 0.5, 0.2)


def instance(count: int, run: int) -> ArmsWorld:
    """Return Bernoulli arms of which the first is safe and worth nothing; thresholds share them."""
    means = np.random.default_rng([SEED, 3, count, run]).uniform(size=(2, count))
    means[:, 0] = 0.0
    return ArmsWorld(reward=means[0], cost=means[1], outcomes="bernoulli")


def name_of(preset: str, count: int, threshold: float) -> str:
    """Return the name of a curve."""
    return f"{preset}-opb-k-{count}-tau-{threshold:g}"


def cells(preset: str, size: str) -> list[Cell]:
    """Return every curve."""
    return [cell(preset, size, count, threshold) for count in ARMS for threshold in THRESHOLDS]


def cell(preset: str, size: str, count: int, threshold: float) -> Cell:
    """Return one curve."""
    rounds, runs = SIZES[size]
    settings = (
        {**OURS, "radius": "hoeffding"} if preset == "ours" else {"delta": DELTA, "radius": "paper", "horizon": rounds}
    )

    def made(run: int) -> tuple[Any, Any]:
        safe = SafeAction(arm=0, reward=0.0, cost=0.0)
        return OPB(arms=count, safe_action=safe, threshold=threshold, **settings), instance(count, run)

    play = published("OPB", made, rounds) if preset == "authors" else simulated(made, rounds)
    about = {"policy": "OPB", "preset": preset, "K": count, "tau": threshold, "outcomes": "bernoulli"}
    return Cell(name_of(preset, count, threshold), about, rounds, runs, play)
