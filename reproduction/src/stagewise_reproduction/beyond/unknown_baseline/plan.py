"""The effect of an unknown safe reward and cost on LC-LUCB, OPLB and OPB."""

from typing import Any

import numpy as np

from stagewise.policies.arms import OPB
from stagewise.policies.lclucb import LCLUCB
from stagewise.policies.oplb import OPLB
from stagewise.problem.actions import RaySet
from stagewise.problem.safe_action import SafeAction
from stagewise.worlds.finite_worlds import ArmsWorld
from stagewise.worlds.linear_world import LinearWorld
from stagewise_reproduction.cell import Cell, build_repeated_play
from stagewise_reproduction.instances import DELTA, SIZES, make_slug

DIMENSION, NOISE, THRESHOLD = 5, 0.1, 0.5
POLICIES: dict[str, Any] = {"LC-LUCB": LCLUCB, "OPLB": OPLB, "OPB": OPB}
KNOWN = ("both known", "cost unknown", "both unknown")


def build_linear_world() -> tuple[LinearWorld, np.ndarray]:
    """Return ten rays from a safe action that is not zero, and that action."""
    theta = np.arange(1, DIMENSION + 1) / np.linalg.norm(np.arange(1, DIMENSION + 1))
    mu = theta[::-1]
    safe = 0.3 * (mu + 0.5 * theta) / np.linalg.norm(mu + 0.5 * theta)
    rows = np.random.default_rng([0, 7]).normal(size=(10, DIMENSION))
    targets = np.abs(rows) / np.linalg.norm(rows, axis=1, keepdims=True)
    return LinearWorld(reward=theta, cost=mu, actions=RaySet(targets), noise=NOISE), safe


def build_safe_action(known: str, features: dict[str, Any], reward: float, cost: float) -> SafeAction:
    """Return the safe action with its known values."""
    if known == "both known":
        return SafeAction(**features, reward=reward, cost=cost)
    return SafeAction(**features, reward=reward) if known == "cost unknown" else SafeAction(**features)


def build_name(policy: str, known: str) -> str:
    """Return the name of a curve."""
    return f"{make_slug(policy)}-{make_slug(known)}"


def cells(_: str, size: str) -> list[Cell]:
    """Return every curve."""
    return [build_cell(size, policy, known) for policy in POLICIES for known in KNOWN]


def build_cell(size: str, policy: str, known: str) -> Cell:
    """Return one curve."""
    rounds, runs = SIZES[size]
    kind = POLICIES[policy]
    player: Any
    world: LinearWorld | ArmsWorld
    if policy == "OPB":
        world = ArmsWorld(reward=[0.1, 0.2, 0.4, 0.7], cost=[0.05, 0.4, 0.5, 0.2], outcomes="bernoulli")
        safe = build_safe_action(known, {"arm": 0}, 0.1, 0.05)
        player = kind(arms=4, safe_action=safe, threshold=THRESHOLD, delta=DELTA)
    else:
        world, features = build_linear_world()
        reward, cost = (float(value) for value in world.means(features))
        safe = build_safe_action(known, {"features": features}, reward, cost)
        player = kind(safe_action=safe, threshold=THRESHOLD, noise=NOISE, delta=DELTA, ridge=1.0)

    about = {"policy": policy, "preset": "ours", "baseline": known, "tau": THRESHOLD}
    return Cell(build_name(policy, known), about, rounds, runs, build_repeated_play(player, world, rounds))
