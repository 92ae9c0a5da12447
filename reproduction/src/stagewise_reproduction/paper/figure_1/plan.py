"""LC-LUCB and Safe-LTS on d rays in d dimensions under three thresholds: Figure 1 and three figures of the appendix."""

from typing import Any

from stagewise.worlds.linear import LinearWorld
from stagewise_reproduction.cell import Cell, simulated
from stagewise_reproduction.instances import KINDS, OURS, SIZES, TEXT, at_zero, printed, shifted, slug
from stagewise_reproduction.published import published

THRESHOLDS = (0.2, 0.5, 0.8)


def world_of(preset: str, dimension: int) -> LinearWorld:
    """Return the rays as the text prints them, or as the authors' code has them (errata, E59)."""
    return printed(dimension) if preset == "text" else shifted(dimension)


def policies(preset: str) -> list[str]:
    """Return who plays."""
    return ["LC-LUCB", "Safe-LTS", "ROFUL"] if preset == "ours" else ["LC-LUCB", "Safe-LTS"]


def name_of(preset: str, policy: str, threshold: float) -> str:
    """Return the name of a curve."""
    return f"{preset}-{slug(policy)}-tau-{threshold:g}"


def cells(dimension: int, preset: str, size: str) -> list[Cell]:
    """Return every curve."""
    return [cell(dimension, preset, size, policy, threshold) for threshold in THRESHOLDS for policy in policies(preset)]


def cell(dimension: int, preset: str, size: str, policy: str, threshold: float) -> Cell:
    """Return one curve."""
    rounds, runs = SIZES[size]
    world = world_of(preset, dimension)
    settings = TEXT if preset == "text" else OURS

    def made(_: int) -> tuple[Any, Any]:
        safe = at_zero(dimension)
        return KINDS[policy](safe_action=safe, threshold=threshold, noise=1.0, **settings), world

    play = published(policy, made, rounds) if preset == "authors" else simulated(made, rounds)
    rays = "printed" if preset == "text" else "flipped"
    about = {"policy": policy, "preset": preset, "d": dimension, "tau": threshold, "rays": rays}
    return Cell(name_of(preset, policy, threshold), about, rounds, runs, play)
