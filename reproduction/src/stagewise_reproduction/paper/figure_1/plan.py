"""LC-LUCB and Safe-LTS on d rays in d dimensions under three thresholds: Figure 1 and three figures of the appendix."""

from typing import Any

from stagewise.worlds.linear_world import LinearWorld
from stagewise_reproduction.cell import Cell, build_play
from stagewise_reproduction.instances import (
    KINDS,
    OURS,
    SIZES,
    TEXT,
    at_zero,
    build_printed_world,
    make_slug,
    shifted,
)
from stagewise_reproduction.published import build_published_play

THRESHOLDS = (0.2, 0.5, 0.8)


def build_world(preset: str, dimension: int) -> LinearWorld:
    """Return the rays as the text prints them, or as the authors' code has them (errata, E59)."""
    return build_printed_world(dimension) if preset == "text" else shifted(dimension)


def list_policies(preset: str) -> list[str]:
    """Return the names of the policies."""
    return ["LC-LUCB", "Safe-LTS", "ROFUL"] if preset == "ours" else ["LC-LUCB", "Safe-LTS"]


def build_name(preset: str, policy: str, threshold: float) -> str:
    """Return the name of a curve."""
    return f"{preset}-{make_slug(policy)}-tau-{threshold:g}"


def cells(dimension: int, preset: str, size: str) -> list[Cell]:
    """Return every curve."""
    return [
        build_cell(dimension, preset, size, policy, threshold)
        for threshold in THRESHOLDS
        for policy in list_policies(preset)
    ]


def build_cell(dimension: int, preset: str, size: str, policy: str, threshold: float) -> Cell:
    """Return one curve."""
    rounds, runs = SIZES[size]
    world = build_world(preset, dimension)
    settings = TEXT if preset == "text" else OURS

    def build(_: int) -> tuple[Any, Any]:
        safe = at_zero(dimension)
        return KINDS[policy](safe_action=safe, threshold=threshold, noise=1.0, **settings), world

    play = build_published_play(policy, build, rounds) if preset == "authors" else build_play(build, rounds)
    rays = "printed" if preset == "text" else "flipped"
    about = {"policy": policy, "preset": preset, "d": dimension, "tau": threshold, "rays": rays}
    return Cell(build_name(preset, policy, threshold), about, rounds, runs, play)
