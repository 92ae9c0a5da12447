"""The rivals and the library's policies on the paper's rays, finite sets, and a campaign with users."""

from functools import partial
from typing import Any

import numpy as np

from stagewise.policies.caps import SafePosteriorSampling
from stagewise.policies.context_caps import SafeContextPosteriorSampling
from stagewise.policies.lclucb import ROFUL
from stagewise.policies.oplb import OPLB
from stagewise.problem.safe_action import SafeAction
from stagewise.reports.result import Result
from stagewise.worlds.context_world import ContextWorld
from stagewise_reproduction.beyond.comparison.figure import draw_families
from stagewise_reproduction.beyond.comparison.plan import (
    Builder,
    Family,
    build_cells,
    draw_finite_world,
    pair_with_world,
)
from stagewise_reproduction.cell import Cell
from stagewise_reproduction.instances import DELTA, at_zero, shifted
from stagewise_reproduction.rivals.conformal import Conformal
from stagewise_reproduction.rivals.estimation_to_decision import LOE2D, ConservativeSquareCB
from stagewise_reproduction.rivals.pacing import Pacing
from stagewise_reproduction.rivals.safe_pe import SafePE
from stagewise_reproduction.rivals.scolts import SCOLTS

PER_ROUND = ("CAPS", "CAPS, linear costs", "CAPS, logistic costs", "ROFUL", "OPLB", "S-COLTS", "Safe-PE")
ON_AVERAGE = ("LOE2D", "conservative C-SquareCB", "pacing", "conformal")
LIMIT = 0.02


def build_ray_policies(threshold: float, size: str) -> dict[str, Builder]:
    """Return the policies on the ten rays of the authors' code."""
    world, (rounds, _) = shifted(10), RAY_SIZES[size]
    noisy: dict[str, Any] = {"safe_action": at_zero(10), "threshold": threshold, "noise": 1.0, "delta": DELTA}
    directions = np.array(world.actions.features)
    players: dict[str, Any] = {
        "CAPS": SafePosteriorSampling(**noisy),
        "ROFUL": ROFUL(**noisy),
        "S-COLTS": SCOLTS(**noisy),
        "S-COLTS, posterior noise": SCOLTS(**noisy, perturbation="posterior"),
        "Safe-PE": SafePE(**noisy, directions=directions, horizon=rounds),
        "pacing": Pacing(**noisy),
    }
    return {name: partial(pair, player, world) for name, player in players.items()}


def build_finite_policies(size: str) -> dict[str, Builder]:
    """Return the policies on random finite sets."""
    noisy: dict[str, Any] = {"safe_action": at_zero(4), "threshold": 0.2, "noise": 0.1, "delta": DELTA}
    players: dict[str, Any] = {
        "CAPS": SafePosteriorSampling(**noisy, mixtures=True),
        "OPLB": OPLB(**noisy),
        "LOE2D": LOE2D(**noisy),
        "conservative C-SquareCB": ConservativeSquareCB(**noisy),
        "pacing": Pacing(**noisy),
    }
    return {name: partial(pair_with_world, player, draw_finite_world) for name, player in players.items()}


REWARD = [[0.02, 0.0, 0.0], [0.06, 0.06, 0.0], [0.06, 0.0, 0.10], [0.10, 0.10, 0.02]]
COST = [[0.0, 0.0, 0.0], [0.004, 0.004, 0.0], [0.004, 0.0, 0.03], [0.01, 0.03, 0.01]]


def build_campaign_policies(size: str) -> dict[str, Builder]:
    """Return the policies on a campaign: three templates whose clicks and opt-outs depend on two numbers of a user."""
    crossed, plain = (ContextWorld(reward=REWARD, cost=COST, features=form) for form in ("crossed", "plain"))
    safe = SafeAction(arm=0, reward=0.02, cost=0.0)
    ours: dict[str, Any] = {"actions": 4, "context": 2, "safe_action": safe, "threshold": LIMIT, "delta": DELTA}
    theirs: dict[str, Any] = {
        "safe_action": at_zero(12), "safe_index": 0, "threshold": LIMIT, "noise": 0.3, "delta": DELTA
    }  # fmt: skip
    players: dict[str, Any] = {
        "CAPS, rates": SafeContextPosteriorSampling(**ours, cost_model="rates"),
        "CAPS, linear costs": SafeContextPosteriorSampling(**ours, cost_model="linear"),
        "CAPS, logistic costs": SafeContextPosteriorSampling(**ours, cost_model="logistic"),
        "LOE2D": LOE2D(**theirs),
        "conservative C-SquareCB": ConservativeSquareCB(**theirs),
        "pacing": Pacing(**theirs),
        "conformal": Conformal(**theirs),
    }
    worlds = {name: plain if name.startswith("CAPS") else crossed for name in players}
    return {name: partial(pair, player, worlds[name]) for name, player in players.items()}


def pair(player: Any, world: Any, run: int) -> tuple[Any, Any]:
    """Return a policy and a world that is the same in every run."""
    return player, world


RAY_SIZES = {"smoke": (40, 2), "quick": (1_000, 2), "full": (100_000, 4)}
FAMILIES = {
    **{
        f"rays, τ = {threshold}": Family(
            f"the ten rays of the authors' code, d = 10, τ = {threshold}, noise N(0, 1)",
            RAY_SIZES,
            partial(build_ray_policies, threshold),
        )
        for threshold in (0.2, 0.5, 0.8)
    },
    "finite sets": Family(
        "twelve random actions, d = 4, τ = .2, noise .1; an instance a run",
        {"smoke": (20, 2), "quick": (300, 2), "full": (2_000, 10)},
        build_finite_policies,
    ),
    "campaign": Family(
        "three templates, two numbers of a user, clicks of 2 to 22 %, opt-outs of 0 to 5 %, τ = .02 for every user",
        {"smoke": (20, 2), "quick": (1_000, 2), "full": (50_000, 4)},
        build_campaign_policies,
    ),
}


def cells(_: str, size: str) -> list[Cell]:
    """Return every curve."""
    return build_cells(FAMILIES, size, "rivals-")


def draw(_: str, results: dict[str, Result]) -> Any:
    """Draw one panel for each family."""
    return draw_families(FAMILIES, results)
