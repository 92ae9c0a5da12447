"""The price of safety: radii, scalings and baselines side by side on the paper's rays."""

from typing import Any

from stagewise.policies.baselines import AlwaysSafe, LinUCB, SafeLTS
from stagewise.policies.lclucb import DOSLB, LCLUCB, ROFUL
from stagewise_reproduction.cell import Cell, build_repeated_play
from stagewise_reproduction.instances import DELTA, SIZES, at_zero, make_slug, shifted

DIMENSION = 10
THRESHOLDS = (0.2, 0.5, 0.8)
UNCLIPPED: dict[str, Any] = {"mean_cost_bound": None}
POLICIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "LC-LUCB, paper's radius": (LCLUCB, {"radius": "paper", **UNCLIPPED}),
    "LC-LUCB, log-determinant": (LCLUCB, {"radius": "logdet", **UNCLIPPED}),
    "LC-LUCB, joint": (LCLUCB, {"radius": "joint", **UNCLIPPED}),
    "LC-LUCB, joint and clip": (LCLUCB, {}),
    "ROFUL, joint and clip": (ROFUL, {}),
    "Safe-LTS, no inflation": (SafeLTS, {"inflation": "none"}),
    "DOSLB, which violates": (DOSLB, {}),
    "unconstrained LinUCB": (LinUCB, {}),
    "always safe": (AlwaysSafe, {}),
}
UNSAFE = ("DOSLB, which violates", "unconstrained LinUCB")


def build_name(policy: str, threshold: float) -> str:
    """Return the name of a curve."""
    return f"{make_slug(policy)}-tau-{threshold:g}"


def cells(_: str, size: str) -> list[Cell]:
    """Return every curve."""
    return [build_cell(size, policy, threshold) for threshold in THRESHOLDS for policy in POLICIES]


def build_cell(size: str, policy: str, threshold: float) -> Cell:
    """Return one curve."""
    rounds, runs = SIZES[size]
    kind, settings = POLICIES[policy]
    policy_settings = {} if kind is AlwaysSafe else {"noise": 1.0, "delta": DELTA, "ridge": 1.0, **settings}
    world, player = (
        shifted(DIMENSION),
        kind(safe_action=at_zero(DIMENSION), threshold=threshold, **policy_settings),
    )

    about = {"policy": policy, "preset": "ours", "d": DIMENSION, "tau": threshold}
    return Cell(build_name(policy, threshold), about, rounds, runs, build_repeated_play(player, world, rounds))
