"""A new world is one class and its export: means that are squares, in everything that plays and certifies."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.exporting import exported

import stagewise as sw
from stagewise.engine.world_draws import BERNOULLI
from stagewise.problem.actions import FiniteSet
from stagewise.problem.checks import Floats, copy_read_only
from stagewise.reports.guarantee import check_assumptions
from stagewise.worlds.noisy_world import NoisyWorld


class SquareWorld(NoisyWorld):
    """Reward <x, θ*>² and costs <x, μ*_j>², as zeros and ones."""

    outcomes = "bernoulli"
    kinds = {"bernoulli": BERNOULLI}  # noqa: RUF012

    def __init__(self, *, reward: Any, cost: Any, features: Any) -> None:
        self.parameters = copy_read_only(np.array([reward, cost], dtype=float))
        self.actions, self.noise = FiniteSet(features), copy_read_only(np.zeros(2))

    def means(self, action: Any) -> Floats:
        return (self.parameters @ action) ** 2

    @property
    def most(self) -> Floats:
        return self.truths(self.actions).max(axis=1)

    def description(self) -> dict[str, Any]:
        reward, cost = self.parameters.tolist()
        told = {"kind": type(self).__name__, "reward": reward, "cost": cost}
        return {**told, "features": self.actions.features.tolist()}


def test_loops_reports_and_certificates_know_a_world_from_its_export(tmp_path: Path) -> None:
    with exported(SquareWorld, "worlds.square"):
        play_and_certify(tmp_path)


def play_and_certify(folder: Path) -> None:
    rows = [[0.0, 0.0], [1.0, 0.0], [0.6, 0.8]]
    world: Any = SquareWorld(reward=[0.3, 0.8], cost=[0.6, 0.1], features=rows)
    safe = sw.SafeAction(features=[0.0, 0.0], reward=0.0, cost=0.0)
    policy = sw.KernelOPLB(
        safe_action=safe, threshold=0.3, noise=0.5, norm_bound=2.0, kernel=sw.RBF(lengthscale=0.3), mean_cost_bound=None
    )
    plan: dict[str, Any] = {"rounds": 40, "progress": False}
    compiled, by_hand = (sw.simulate(policy, world, backend=backend, **plan) for backend in ("auto", "python"))
    assert compiled.manifest["backend"] == "cpu"
    assert compiled.regret[0].tolist() == by_hand.regret[0].tolist()
    rewards, costs = np.array([[0.0, 0.09, 0.6724], [0.0, 0.36, 0.1936]])
    assert compiled.optimum[0, -1] == pytest.approx(max(rewards[costs <= 0.3]))
    assumed = [row["assumption"] for row in check_assumptions(policy, world)]
    assert "every outcome lies in [0, 1]" not in assumed
    assert "the noise is sub-Gaussian with at most this scale" in assumed
    sw.certify(policy, world, rounds=3, runs=2, out=folder, progress=False)
    assert sw.verify_certificate(folder, seed=0, replay_fraction=1.0).stands
