"""The kernel policy keeps the contract of mixtures, on functions that lie in its space with the norm declared."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from tests.contracts.policy import Case, LinearWorld, MixtureContract, over
from tests.contracts.test_policies import KNOWN, baseline, limits
from tests.models.space_textbook import matrix

from stagewise import RBF, KernelOPLB, Matern

CENTRES = np.array([[0.5, 0.2, -0.1], [-0.6, 0.1, 0.3], [0.1, -0.7, 0.2], [0.0, 0.4, 0.6]])
WEIGHTS = np.array([[0.7, 0.2, -0.4, 0.3], [-0.3, 0.6, 0.6, 0.2], [-0.2, 0.5, 0.2, 0.3], [0.3, 0.2, 0.5, -0.4]])


@dataclass(frozen=True)
class KernelWorld(LinearWorld):
    """Signals Σ w_i k(x, z_i), whose norm is √(w'Kw)."""

    kernel: Any = field(default=None)

    def means(self, action: Any) -> np.ndarray:
        return self.parameters @ matrix(self.kernel, CENTRES, np.asarray(action)[None])[:, 0]

    def listed_means(self, round_: int) -> np.ndarray:
        return self.parameters @ matrix(self.kernel, CENTRES, np.vstack([self.targets(round_), self.safe]))

    def norms(self) -> list[float]:
        gram = matrix(self.kernel, CENTRES, CENTRES)
        return [float(np.sqrt(weights @ gram @ weights)) for weights in self.parameters]


def problems(kernel: Any) -> Iterator[tuple[str, KernelWorld, dict[str, Any]]]:
    for count in (1, 3):
        world = KernelWorld(np.array([0.4, 0.3, 0.2]), WEIGHTS[: 1 + count], True, kernel=kernel)
        values = world.means(world.safe)
        for what, known in KNOWN.items():
            settings = {
                "kernel": kernel,
                "safe_action": baseline(values, known, features=world.safe),
                "threshold": limits(values[1:], [0.3, 0.5, 0.45]),
                "noise": world.noise,
                "norm_bound": world.norms(),
                "ridge": 0.05,
                "mean_cost_bound": None,
            }
            yield f"{count} limits, {what}", world, settings


def cases(kernel: Any, some: Any, **more: Any) -> Any:
    directional = more.get("optimism") == "directional"
    made = [
        Case(name, partial(KernelOPLB, **settings, **more), world, True, len(world.parameters) + directional)
        for name, world, settings in problems(kernel)
    ]
    return over(made, some)


@cases(RBF(lengthscale=0.8), (0, 3, 6))
class TestKernelOPLB(MixtureContract):
    pass


@cases(Matern(lengthscale=1.5, smoothness=2.5), (0, 6), optimism="directional")
class TestKernelOPLBDirectional(MixtureContract):
    pass


@cases(RBF(lengthscale=1.5), (4,), max_points=12, novelty_threshold=1e-3)
class TestKernelOPLBSparse(MixtureContract):
    pass
