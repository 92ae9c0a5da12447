"""One, two and three constraints on the same rays and the same arms."""

from typing import Any

import numpy as np

from stagewise.policies.arms import OPB
from stagewise.policies.lclucb import LCLUCB, ROFUL
from stagewise.policies.oplb import OPLB
from stagewise.problem.safe_action import SafeAction
from stagewise.worlds.finite_worlds import ArmsWorld
from stagewise.worlds.linear_world import LinearWorld
from stagewise_reproduction.cell import Cell, build_repeated_play
from stagewise_reproduction.instances import DELTA, SIZES, make_slug, shifted

COUNTS = (1, 2, 3)
DIMENSION, NOISE = 10, 0.1
THRESHOLDS = (0.5, 0.45, 0.4)
REWARDS = [0.1, 0.2, 0.4, 0.7]
COSTS = [[0.0, 0.4, 0.5, 0.2], [0.1, 0.1, 0.6, 0.3], [0.05, 0.3, 0.2, 0.4]]
ARM_THRESHOLDS = (0.3, 0.35, 0.3)
POLICIES: dict[str, Any] = {"LC-LUCB": LCLUCB, "ROFUL": ROFUL, "OPLB": OPLB, "OPB": OPB}


def build_ray_world(count: int) -> LinearWorld:
    """Return the paper's rays with `count` costs: the reversed reward, then two shifts of it."""
    one = shifted(DIMENSION)
    mu = [np.roll(one.parameters[1], shift) for shift in (0, 3, 6)][:count]
    return LinearWorld(reward=one.parameters[0], cost=mu, actions=one.actions, noise=NOISE)


def build_name(policy: str, count: int) -> str:
    """Return the name of a curve."""
    return f"{make_slug(policy)}-m-{count}"


def cells(_: str, size: str) -> list[Cell]:
    """Return every curve."""
    return [build_cell(size, policy, count) for policy in POLICIES for count in COUNTS]


def build_cell(size: str, policy: str, count: int) -> Cell:
    """Return one curve."""
    rounds, runs = SIZES[size]
    kind = POLICIES[policy]
    player: Any
    world: LinearWorld | ArmsWorld
    if policy == "OPB":
        world = ArmsWorld(reward=REWARDS, cost=COSTS[:count], outcomes="bernoulli")
        safe = SafeAction(arm=0, reward=0.1, cost=[row[0] for row in COSTS[:count]])
        player = kind(arms=4, safe_action=safe, threshold=list(ARM_THRESHOLDS[:count]), delta=DELTA)
    else:
        world = build_ray_world(count)
        safe = SafeAction(features=np.zeros(DIMENSION))
        player = kind(safe_action=safe, threshold=list(THRESHOLDS[:count]), noise=NOISE, delta=DELTA, ridge=1.0)

    thresholds = ARM_THRESHOLDS if policy == "OPB" else THRESHOLDS
    about = {"policy": policy, "preset": "ours", "m": count, "tau": list(thresholds[:count])}
    return Cell(build_name(policy, count), about, rounds, runs, build_repeated_play(player, world, rounds))
