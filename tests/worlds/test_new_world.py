"""A new world is one class and its export: means that are squares, in everything that plays and certifies."""

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.grown import changed, copied, insert, ran

from stagewise.engine.world_draws import BERNOULLI
from stagewise.problem.actions import FiniteSet
from stagewise.problem.checks import Floats, copy_read_only
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


HEAD = """from typing import Any

import numpy as np

from stagewise.engine.world_draws import BERNOULLI
from stagewise.problem.actions import FiniteSet
from stagewise.problem.checks import Floats, copy_read_only
from stagewise.worlds.noisy_world import NoisyWorld


"""
ASK = """
import json
import stagewise as sw
from stagewise.reports.assumptions import check_assumptions

rows = [[0.0, 0.0], [1.0, 0.0], [0.6, 0.8]]
world = sw.SquareWorld(reward=[0.3, 0.8], cost=[0.6, 0.1], features=rows)
safe = sw.SafeAction(features=[0.0, 0.0], reward=0.0, cost=0.0)
policy = sw.KernelOPLB(
    safe_action=safe, threshold=0.3, noise=0.5, norm_bound=2.0, kernel=sw.RBF(lengthscale=0.3), cost_bound=None
)
results = [sw.simulate(policy, world, rounds=40, backend=one, progress=False) for one in ("auto", "python")]
sw.certify(policy, world, rounds=3, runs=2, out="certificate", progress=False)
print(json.dumps({
    "backend": results[0].manifest["backend"],
    "played": [one.regret[0].tolist() for one in results],
    "optimum": results[0].optimum[0, -1],
    "assumed": [row["assumption"] for row in check_assumptions(policy, world)],
    "stands": sw.verify_certificate("certificate", seed=0, replay_fraction=1.0).stands,
}))
"""


@pytest.mark.long
def test_in_the_package_it_is_two_files_and_loops_reports_and_certificates_know_it(tmp_path: Path) -> None:
    package = copied(tmp_path)
    text = f'"""Means that are squares."""\n\n{HEAD}{inspect.getsource(SquareWorld)}'
    (package / "worlds/square.py").write_text(text, encoding="utf-8")
    export = "from stagewise.worlds.square import SquareWorld as SquareWorld\n"
    insert(package / "__init__.pyi", "from stagewise.worlds.table_world import TableWorld", before=export)
    assert changed(package) == {"worlds/square.py", "__init__.pyi"}
    told = json.loads(ran(package, "-c", ASK, folder=tmp_path, NUMBA_DISABLE_JIT="1").splitlines()[-1])
    assert told["backend"] == "cpu"
    assert told["played"][0] == told["played"][1]
    rewards, costs = np.array([[0.0, 0.09, 0.6724], [0.0, 0.36, 0.1936]])
    assert told["optimum"] == pytest.approx(max(rewards[costs <= 0.3]))
    assert "every outcome lies in [0, 1]" not in told["assumed"]
    assert "the noise is sub-Gaussian with at most this scale" in told["assumed"]
    assert told["stands"]
