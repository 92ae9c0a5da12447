"""CAPS with rare costs keeps the contract of all policies that mix."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from tests.contracts.policy import Case, LinearWorld, MixtureContract, over

from stagewise import Outcome, SafeAction, SafePosteriorSampling

PARAMETERS = np.array([[0.6, 0.3, 0.2], [0.1, 0.05, -0.05], [0.05, -0.02, 0.1]])


@dataclass(frozen=True)
class RareWorld(LinearWorld):
    """Users (1, u, v), and coins for costs."""

    def targets(self, round_: int) -> np.ndarray:
        return np.column_stack([np.ones(6), np.random.default_rng([1, round_]).uniform(size=(6, 2))])

    def outcome(self, action: Any, round_: int) -> Outcome:
        chance, means = np.random.default_rng([2, round_]), self.means(action)
        return Outcome(float(means[0]), (chance.uniform(size=len(means) - 1) < means[1:]).astype(float).tolist())


def cases() -> Any:
    made = []
    for index, known in (([0.0, 0.0, 0.0], True), ([1.0, 0.0, 0.0], True), ([0.3, 0.0, 0.0], False)):
        world = RareWorld(np.array(index), PARAMETERS, finite=True)
        reward, *costs = world.means(world.safe).tolist()
        safe = SafeAction(features=index, reward=reward, cost=costs) if known else SafeAction(features=index)
        settings: dict[str, Any] = {"safe_action": safe, "threshold": [0.45, 0.45], "norm_bound": [1.0, 0.3, 0.3]}
        policy = partial(SafePosteriorSampling, **settings, noise=0.5, mixtures=True, rare_costs=True)
        made.append(Case(f"from {index}, {'known' if known else 'unknown'}", policy, world, True, 3))
    return over(made, range(len(made)))


@cases()
class TestCAPSWithRareCosts(MixtureContract):
    pass
