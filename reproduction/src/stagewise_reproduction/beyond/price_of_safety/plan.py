"""The price of safety: radii, scalings and baselines side by side on the paper's rays."""

from typing import Any

from stagewise.policies.always_safe import AlwaysSafe
from stagewise.policies.doslb import DOSLB
from stagewise.policies.lclucb import LCLUCB, ROFUL
from stagewise.policies.linucb import LinUCB
from stagewise.policies.safe_lts import SafeLTS
from stagewise_reproduction.cell import Cell, repeated
from stagewise_reproduction.instances import DELTA, SIZES, at_zero, shifted, slug

DIMENSION = 10
THRESHOLDS = (0.2, 0.5, 0.8)
FREE: dict[str, Any] = {"cost_bound": None}
POLICIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "LC-LUCB, paper's radius": (LCLUCB, {"radius": "paper", **FREE}),
    "LC-LUCB, log-determinant": (LCLUCB, {"radius": "logdet", **FREE}),
    "LC-LUCB, joint": (LCLUCB, {"radius": "joint", **FREE}),
    "LC-LUCB, joint and clip": (LCLUCB, {}),
    "ROFUL, joint and clip": (ROFUL, {}),
    "Safe-LTS, no inflation": (SafeLTS, {"inflation": "none"}),
    "DOSLB, which violates": (DOSLB, {}),
    "unconstrained LinUCB": (LinUCB, {}),
    "always safe": (AlwaysSafe, {}),
}
UNSAFE = ("DOSLB, which violates", "unconstrained LinUCB")


def name_of(policy: str, threshold: float) -> str:
    """Return the name of a curve."""
    return f"{slug(policy)}-tau-{threshold:g}"


def cells(_: str, size: str) -> list[Cell]:
    """Return every curve."""
    return [cell(size, policy, threshold) for threshold in THRESHOLDS for policy in POLICIES]


def cell(size: str, policy: str, threshold: float) -> Cell:
    """Return one curve."""
    rounds, runs = SIZES[size]
    kind, settings = POLICIES[policy]
    told = {} if kind is AlwaysSafe else {"noise": 1.0, "delta": DELTA, "ridge": 1.0, **settings}
    world, player = shifted(DIMENSION), kind(safe_action=at_zero(DIMENSION), threshold=threshold, **told)

    about = {"policy": policy, "preset": "ours", "d": DIMENSION, "tau": threshold}
    return Cell(name_of(policy, threshold), about, rounds, runs, repeated(player, world, rounds))
