"""Small classes of functions, over three arms and over a grid of features."""

import math
from typing import Any

from stagewise import SafeAction

REWARDS = [[0.1, 0.5, 0.9], [0.1, 0.9, 0.5], [0.1, 0.3, 0.3]]
COSTS = [[0.0, 0.2, 0.6], [0.0, 0.6, 0.2]]
SAFE = SafeAction(arm=0, reward=0.1, cost=0.0)
BASE: dict[str, Any] = {"reward_class": REWARDS, "cost_class": COSTS, "safe_action": SAFE, "threshold": 0.3}


def square(x: Any) -> float:
    return 0.1 + 0.8 * float(x[0]) ** 2


def root(x: Any) -> float:
    return 0.1 + 0.8 * math.sqrt(float(x[0]))


def line(x: Any) -> float:
    return float(x[0])


def half(x: Any) -> float:
    return 0.5 * float(x[0])


GRID = [[0.0], [0.25], [0.5], [0.75], [1.0]]
FEATURED: dict[str, Any] = {
    "reward_class": [square, root],
    "cost_class": [line, half],
    "safe_action": SafeAction(features=[0.0], reward=0.1, cost=0.0),
    "threshold": 0.4,
    "noise": 0.1,
}
