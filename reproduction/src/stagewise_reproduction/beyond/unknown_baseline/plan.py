"""What it costs not to know the safe action's reward and cost: LC-LUCB, OPLB and OPB, known and unknown."""

from typing import Any

import numpy as np

from stagewise.policies.lclucb import LCLUCB
from stagewise.policies.opb import OPB
from stagewise.policies.oplb import OPLB
from stagewise.problem.actions import Rays
from stagewise.problem.safe_action import SafeAction
from stagewise.worlds.arms import ArmsWorld
from stagewise.worlds.linear import LinearWorld
from stagewise_reproduction.cell import Cell, repeated
from stagewise_reproduction.instances import DELTA, SIZES, slug

DIMENSION, NOISE, THRESHOLD = 5, 0.1, 0.5
POLICIES: dict[str, Any] = {"LC-LUCB": LCLUCB, "OPLB": OPLB, "OPB": OPB}
KNOWN = ("both known", "cost unknown", "both unknown")


def linear_world() -> tuple[LinearWorld, np.ndarray]:
    """Return ten rays from a safe action that is not zero, and that action."""
    theta = np.arange(1, DIMENSION + 1) / np.linalg.norm(np.arange(1, DIMENSION + 1))
    mu = theta[::-1]
    safe = 0.3 * (mu + 0.5 * theta) / np.linalg.norm(mu + 0.5 * theta)
    rows = np.random.default_rng([0, 7]).normal(size=(10, DIMENSION))
    targets = np.abs(rows) / np.linalg.norm(rows, axis=1, keepdims=True)
    return LinearWorld(reward=theta, cost=mu, actions=Rays(targets), noise=NOISE), safe


def baseline(known: str, place: dict[str, Any], reward: float, cost: float) -> SafeAction:
    """Return the safe action with what is known of it."""
    if known == "both known":
        return SafeAction(**place, reward=reward, cost=cost)
    return SafeAction(**place, reward=reward) if known == "cost unknown" else SafeAction(**place)


def name_of(policy: str, known: str) -> str:
    """Return the name of a curve."""
    return f"{slug(policy)}-{slug(known)}"


def cells(_: str, size: str) -> list[Cell]:
    """Return every curve."""
    return [cell(size, policy, known) for policy in POLICIES for known in KNOWN]


def cell(size: str, policy: str, known: str) -> Cell:
    """Return one curve."""
    rounds, runs = SIZES[size]
    kind = POLICIES[policy]
    player: Any
    world: LinearWorld | ArmsWorld
    if policy == "OPB":
        world = ArmsWorld(reward=[0.1, 0.2, 0.4, 0.7], cost=[0.05, 0.4, 0.5, 0.2], outcomes="bernoulli")
        safe = baseline(known, {"arm": 0}, 0.1, 0.05)
        player = kind(arms=4, safe_action=safe, threshold=THRESHOLD, delta=DELTA)
    else:
        world, place = linear_world()
        reward, cost = (float(value) for value in world.means(place))
        safe = baseline(known, {"features": place}, reward, cost)
        player = kind(safe_action=safe, threshold=THRESHOLD, noise=NOISE, delta=DELTA, ridge=1.0)

    about = {"policy": policy, "preset": "ours", "baseline": known, "tau": THRESHOLD}
    return Cell(name_of(policy, known), about, rounds, runs, repeated(player, world, rounds))
