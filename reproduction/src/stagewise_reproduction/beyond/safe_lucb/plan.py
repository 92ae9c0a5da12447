"""Safe-LUCB and LC-LUCB at several horizons."""

from typing import Any

from stagewise.policies.lclucb import LCLUCB
from stagewise_reproduction.cell import Cell, build_repeated_play
from stagewise_reproduction.instances import DELTA, at_zero, make_slug, shifted
from stagewise_reproduction.safe_lucb import SafeLUCB

DIMENSION, NOISE, THRESHOLD = 3, 0.1, 0.5
POLICIES = ("Safe-LUCB", "LC-LUCB")
# horizons and runs
SIZES: dict[str, tuple[tuple[int, ...], int]] = {
    "smoke": ((50, 200), 2),
    "quick": ((1_000, 4_000, 16_000), 2),
    "full": ((1_000, 4_000, 16_000, 64_000, 256_000), 10),
}


def build_policy(name: str, horizon: int) -> Any:
    """Return a policy with the common settings."""
    shared: dict[str, Any] = {
        "safe_action": at_zero(DIMENSION), "threshold": THRESHOLD, "noise": NOISE, "delta": DELTA,
        "ridge": 1.0,
    }  # fmt: skip
    if name == "Safe-LUCB":
        return SafeLUCB(**shared, horizon=horizon)
    return LCLUCB(**shared)


def build_name(policy: str, horizon: int) -> str:
    """Return the name of a curve."""
    return f"{make_slug(policy)}-{horizon}"


def cells(_: str, size: str) -> list[Cell]:
    """Return every curve."""
    horizons, runs = SIZES[size]
    return [build_cell(policy, horizon, runs) for policy in POLICIES for horizon in horizons]


def build_cell(policy: str, horizon: int, runs: int) -> Cell:
    """Return one curve."""
    about = {"policy": policy, "preset": "ours", "tau": THRESHOLD, "horizon": horizon}
    player = build_policy(policy, horizon)
    return Cell(
        build_name(policy, horizon),
        about,
        horizon,
        runs,
        build_repeated_play(player, shifted(DIMENSION, NOISE), horizon),
    )
