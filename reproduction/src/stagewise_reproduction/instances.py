"""Shared instances and settings: sizes, the rays of Figure 1, and the settings of the paper's text and of ours."""

from typing import Any

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.policies.baselines import SafeLTS
from stagewise.policies.lclucb import LCLUCB, ROFUL
from stagewise.problem.actions import RaySet
from stagewise.problem.safe_action import SafeAction
from stagewise.simulation.oracle import build_oracle
from stagewise.worlds.linear_world import LinearWorld

DELTA = 0.01
# rounds and runs; smoke is only a test that everything works
SIZES = {"smoke": (200, 2), "quick": (100_000, 4), "full": (1_000_000, 10)}
TEXT: dict[str, Any] = {"delta": DELTA, "radius": "paper", "ridge": 1.0, "mean_cost_bound": None}
OURS: dict[str, Any] = {"delta": DELTA}
KINDS: dict[str, Any] = {"LC-LUCB": LCLUCB, "Safe-LTS": SafeLTS, "ROFUL": ROFUL}


def compute_optimum(policy: Any, world: Any) -> float:
    """Return the best mean reward under the policy's thresholds."""
    return build_oracle(policy, world).best(world.actions)


def build_shift_world(vector: Floats, dimension: int, noise: float) -> LinearWorld:
    """Return θ* = (0, 1, …, d−1)/‖·‖, μ* its reverse, and the d cyclic shifts of a vector as rays."""
    theta = build_ramp(dimension)
    targets = np.array([np.roll(vector, shift) for shift in range(dimension)])
    return LinearWorld(reward=theta, cost=theta[::-1], actions=RaySet(targets), noise=noise)


def build_ramp(dimension: int) -> Floats:
    """Return (0, 1, …, d−1)/‖·‖."""
    return np.arange(dimension) / np.linalg.norm(np.arange(dimension))


def build_printed_world(dimension: int, noise: float = 1.0) -> LinearWorld:
    """Return the rays that the paper prints: the cyclic shifts of v/‖v‖ = θ*, v = (0, 1, …, d−1)."""
    return build_shift_world(build_ramp(dimension), dimension, noise)


def shifted(dimension: int, noise: float = 1.0) -> LinearWorld:
    """Return the rays of the authors' code: the cyclic shifts of the flipped vector μ* (errata, E59)."""
    return build_shift_world(build_ramp(dimension)[::-1], dimension, noise)


def compute_best_end(world: LinearWorld) -> tuple[float, float]:
    """Return reward and cost of the end of the best ray without a limit.

    >>> np.round([compute_best_end(build_printed_world(10)), compute_best_end(shifted(10))], 3)
    array([[1.   , 0.421],
           [0.86 , 0.561]])
    """
    rewards, costs = world.parameters @ np.array(world.actions.features).T
    best = int(np.argmax(rewards))
    return float(rewards[best]), float(costs[best])


def at_zero(dimension: int) -> SafeAction:
    """Return the zero vector as a safe action with reward 0 and cost 0."""
    return SafeAction(features=np.zeros(dimension), reward=0.0, cost=0.0)


def make_slug(name: str) -> str:
    """Return a name as a folder name.

    >>> make_slug("Safe-LTS, no inflation")
    'safe-lts-no-inflation'
    """
    return "-".join("".join(c if c.isalnum() or c == "." else " " for c in name.lower()).split())
