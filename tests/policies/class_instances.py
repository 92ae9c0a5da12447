"""Random classes of functions, with sets of plausible ones that hold the truth."""

from typing import Any

import numpy as np
from tests.policies.witness import best_mixture

from stagewise import OPNLB, ArmSet, Decision, FiniteFunctionClass, SafeAction
from stagewise.engine.compile import Floats

SEED, INSTANCES = 20260903, 60


class Instance:
    """Random classes of which function 0 is the truth, and sets of plausible functions that hold it.

    The theorems ask no more of the sets. Rewards are often known exactly, and the truth is often the cheapest
    plausible cost: that is where optimism has to be bought by the costs' width.
    """

    def __init__(self, random: np.random.Generator, constraints: int, known: tuple[bool, bool] = (True, True)) -> None:
        arms, m = int(random.integers(2, 7)), constraints
        self.tables = [random.random((int(random.integers(2, 7)), arms)) for _ in range(1 + m)]
        self.tables[0][0, 1:] = np.maximum(self.tables[0][0, 1:], random.choice([0.0, 0.95]))
        for signal, table in enumerate(self.tables):
            spread = 0.0 if known[signal > 0] else 0.05 * random.random(len(table))
            table[:, 0] = 0.3 * table[0, 0] + spread
            if signal and random.random() < 0.7:
                table[1:, 1:] = np.maximum(table[1:, 1:], table[0, 1:])
        self.tables = [FiniteFunctionClass(table).functions for table in self.tables]  # each function once
        self.truth = np.array([table[0] for table in self.tables])
        self.thresholds = self.truth[1:, 0] + random.uniform(0.15, 0.4, size=m)
        self.flags = [
            np.append(True, random.random(len(table) - 1) < random.choice([0.0, 0.9])) for table in self.tables
        ]
        self.known, self.arms = known, arms
        self.best = best_mixture(
            self.truth[0, 1:],
            np.ascontiguousarray(self.truth[1:, 1:]),
            float(self.truth[0, 0]),
            self.truth[1:, 0],
            self.thresholds,
        )

    def policy(self, kind: type[OPNLB], **settings: Any) -> OPNLB:
        safe = SafeAction(
            arm=0,
            reward=float(self.truth[0, 0]) if self.known[0] else None,
            cost=self.truth[1:, 0] if self.known[1] else None,
        )
        costs = self.tables[1:] if len(self.tables) > 2 else self.tables[1]
        return kind(
            reward_class=self.tables[0], cost_class=costs, safe_action=safe, threshold=self.thresholds, **settings
        )

    def decided(self, kind: type[OPNLB] = OPNLB, **settings: Any) -> Decision:
        policy = self.policy(kind, **settings)
        state = policy.start()
        kept = [flags[rows] for flags, rows in zip(self.flags, policy.functions.kept, strict=True)]
        policy.model.get_statistics(state.memory).plausible[:] = np.concatenate(kept)
        return policy.decide(state, ArmSet(self.arms))

    def plausible(self, signal: int) -> Floats:
        return self.tables[signal][self.flags[signal]]


def instances(constraints: int, known: tuple[bool, bool] = (True, True)) -> list[Instance]:
    random = np.random.default_rng([SEED, constraints, *known])
    return [Instance(random, constraints, known) for _ in range(INSTANCES)]
