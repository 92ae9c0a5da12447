"""What several experiments share: sizes, the rays of Figure 1, and the settings of the paper's text and of ours."""

from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.policies.lclucb import LCLUCB, ROFUL
from stagewise.policies.safe_lts import SafeLTS
from stagewise.problem.actions import Rays
from stagewise.problem.safe_action import SafeAction
from stagewise.simulation.judge import judge
from stagewise.worlds.linear import LinearWorld

DELTA = 0.01
# rounds and runs; smoke only shows that everything works
SIZES = {"smoke": (1_000, 2), "quick": (100_000, 4), "full": (1_000_000, 10)}
TEXT: dict[str, Any] = {"delta": DELTA, "radius": "paper", "ridge": 1.0, "cost_bound": None}
OURS: dict[str, Any] = {"delta": DELTA}
KINDS: dict[str, Any] = {"LC-LUCB": LCLUCB, "Safe-LTS": SafeLTS, "ROFUL": ROFUL}


def optimum(policy: Any, world: Any) -> float:
    """Return the best mean reward under the policy's thresholds."""
    return judge(policy, world).best(world.actions)


def on_shifts_of(vector: Floats, dimension: int, noise: float) -> LinearWorld:
    """Return θ* = (0, 1, …, d−1)/‖·‖, μ* its reverse, and the d cyclic shifts of a vector as rays."""
    theta = ramp(dimension)
    targets = np.array([np.roll(vector, shift) for shift in range(dimension)])
    return LinearWorld(reward=theta, cost=theta[::-1], actions=Rays(targets), noise=noise)


def ramp(dimension: int) -> Floats:
    """Return (0, 1, …, d−1)/‖·‖."""
    return np.arange(dimension) / np.linalg.norm(np.arange(dimension))


def printed(dimension: int, noise: float = 1.0) -> LinearWorld:
    """Return the rays that the paper prints: the cyclic shifts of v/‖v‖ = θ*, v = (0, 1, …, d−1)."""
    return on_shifts_of(ramp(dimension), dimension, noise)


def shifted(dimension: int, noise: float = 1.0) -> LinearWorld:
    """Return the rays of the authors' code: the cyclic shifts of the flipped vector μ* (errata, E59)."""
    return on_shifts_of(ramp(dimension)[::-1], dimension, noise)


def best_end(world: LinearWorld) -> tuple[float, float]:
    """Return reward and cost of the end of the best ray, as if there were no limit.

    >>> np.round([best_end(printed(10)), best_end(shifted(10))], 3)
    array([[1.   , 0.421],
           [0.86 , 0.561]])
    """
    rewards, costs = world.parameters @ np.array(world.actions.features).T
    best = int(np.argmax(rewards))
    return float(rewards[best]), float(costs[best])


def at_zero(dimension: int) -> SafeAction:
    """Return the zero vector, which is worth and costs nothing."""
    return SafeAction(features=np.zeros(dimension), reward=0.0, cost=0.0)


def slug(name: str) -> str:
    """Return a name fit for a folder.

    >>> slug("Safe-LTS, no inflation")
    'safe-lts-no-inflation'
    """
    return "-".join("".join(c if c.isalnum() or c == "." else " " for c in name.lower()).split())
