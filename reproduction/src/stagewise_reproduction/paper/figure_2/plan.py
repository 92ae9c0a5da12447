"""LC-LUCB and Safe-LTS on a hundred rays to the unit sphere, one random instance a run: Figure 2."""

from typing import Any

import numpy as np

from stagewise.problem.actions import RaySet
from stagewise.worlds.linear_world import LinearWorld
from stagewise_reproduction.cell import SEED, Cell, build_play
from stagewise_reproduction.instances import KINDS, OURS, SIZES, TEXT, at_zero, make_slug
from stagewise_reproduction.published import build_published_play

DIMENSIONS = (5, 10)
RAYS = 100
NOISE = {"text": 1.0, "authors": 0.1, "ours": 0.1}  # the text states none, so it has Figure 1's
POLICIES = ("LC-LUCB", "Safe-LTS")


def draw_instance(dimension: int, run: int, noise: float) -> tuple[LinearWorld, float]:
    """Return the world and the threshold of a run, the same for both policies."""
    rng = np.random.default_rng([SEED, 2, dimension, run])
    rows = rng.normal(size=(2 + RAYS, dimension))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return LinearWorld(reward=rows[0], cost=rows[1], actions=RaySet(rows[2:]), noise=noise), float(rng.uniform())


def build_name(preset: str, policy: str, dimension: int) -> str:
    """Return the name of a curve."""
    return f"{preset}-{make_slug(policy)}-d-{dimension}"


def cells(preset: str, size: str) -> list[Cell]:
    """Return every curve."""
    return [build_cell(preset, size, policy, dimension) for dimension in DIMENSIONS for policy in POLICIES]


def build_cell(preset: str, size: str, policy: str, dimension: int) -> Cell:
    """Return one curve."""
    (rounds, runs), noise = SIZES[size], NOISE[preset]

    def build(run: int) -> tuple[Any, Any]:
        world, threshold = draw_instance(dimension, run, noise)
        settings = OURS if preset == "ours" else TEXT
        return KINDS[policy](safe_action=at_zero(dimension), threshold=threshold, noise=noise, **settings), world

    play = build_published_play(policy, build, rounds) if preset == "authors" else build_play(build, rounds)
    about: dict[str, Any] = {"policy": policy, "preset": preset, "d": dimension, "tau": "uniform on [0, 1], one a run"}
    about["noise"] = noise
    return Cell(build_name(preset, policy, dimension), about, rounds, runs, play)
