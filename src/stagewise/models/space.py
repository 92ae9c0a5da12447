"""Signals in a reproducing-kernel space: which kernel, and what is assumed of functions in its space."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.layout import SPACE
from stagewise.kernels.signals import similarity as reproducing
from stagewise.kernels.signals.radius import JOINT
from stagewise.models.answers import register
from stagewise.models.part import Modelled, RegressionModel, known_at_safe, regressions
from stagewise.models.regressed import SpaceAnswers
from stagewise.problem.checks import number, positive
from stagewise.problem.errors import InvalidProblem

register(SPACE, SpaceAnswers())
SHORTEST = 1e-50  # below it the square of a distance in lengthscales could be infinite
SMOOTHNESS = {0.5: reproducing.MATERN_12, 1.5: reproducing.MATERN_32, 2.5: reproducing.MATERN_52}


def length(value: Any) -> float:
    """Return a lengthscale that distances can be measured in."""
    if positive(value, "lengthscale") < SHORTEST:
        raise InvalidProblem(f"lengthscale is {value}; it must be at least {SHORTEST:g}, or distances overflow")
    return float(value)


@dataclass(frozen=True, kw_only=True)
class RBF:
    """k(x, y) = exp(−‖x − y‖²/2ℓ²): very smooth functions that vary over distances of about ℓ.

    >>> round(similarity(RBF(lengthscale=0.5), np.zeros(1), np.ones(1)), 6)
    0.135335
    """

    lengthscale: float
    """ℓ, in the units of the features."""

    kind: ClassVar[int] = reproducing.RBF  # its number in compiled code
    is_linear: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", length(self.lengthscale))


@dataclass(frozen=True, kw_only=True)
class Matern:
    """The Matérn kernel: rougher functions than RBF's, the rougher the smaller `smoothness` ν (0.5, 1.5 or 2.5).

    >>> round(similarity(Matern(lengthscale=0.5, smoothness=0.5), np.zeros(1), np.ones(1)), 6)
    0.135335
    """

    lengthscale: float
    """ℓ, in the units of the features."""
    smoothness: float = 2.5
    """ν: 0.5, 1.5 or 2.5."""

    is_linear: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", length(self.lengthscale))
        if number(self.smoothness, "smoothness") not in SMOOTHNESS:
            raise InvalidProblem(
                f"smoothness is {self.smoothness}; it must be 0.5, 1.5 or 2.5, where the kernel has a closed form"
            )
        object.__setattr__(self, "smoothness", float(self.smoothness))

    @property
    def kind(self) -> int:
        """Its number in compiled code."""
        return SMOOTHNESS[self.smoothness]


@dataclass(frozen=True, kw_only=True)
class LinearKernel:
    """k(x, y) = <x, y>: linear functions, and with them OPLB itself.

    >>> similarity(LinearKernel(), np.array([1.0, 2.0]), np.array([3.0, 1.0]))
    5.0
    """

    kind: ClassVar[int] = reproducing.LINEAR
    lengthscale: ClassVar[float] = 1.0  # it has none; nothing depends on this number
    is_linear: ClassVar[bool] = True  # its functions are linear, so that features may be too long for the ridge


Kernel = RBF | Matern | LinearKernel


def similarity(kernel: Kernel, one: Floats, other: Floats) -> float:
    """Return k(x, y).

    >>> similarity(RBF(lengthscale=2.0), np.array([0.0, 0.0]), np.array([0.0, 2.0])) == math.exp(-0.5)
    True
    """
    return float(reproducing.similarity(kernel.kind, kernel.lengthscale, one, other))


@dataclass(frozen=True, kw_only=True, eq=False)
class SpaceModel(RegressionModel):
    """What is assumed of signals in a reproducing kernel's space, and how they are estimated."""

    kernel: Kernel
    novelty: float

    @property
    def safe_norm(self) -> float:
        """k(x₀, x₀); 0 where every function of the space vanishes."""
        return similarity(self.kernel, self.safe, self.safe)

    def parts(self) -> Iterator[Modelled]:
        """Yield the regressions; those that share one share a basis."""
        values = known_at_safe(self.reward, self.costs, len(self.names))
        fixed, bounds = np.array([self.ridge, self.novelty, self.kernel.lengthscale]), self.learned_bounds()
        for first, last, known in regressions(len(self.names), self.reward is not None, self.costs is not None):
            declared = (self.noise, bounds, self.confidence, values if known else np.zeros(values.size))
            whole = (SPACE, first, last - first, 0, JOINT, int(known), 0, self.kernel.kind, 0)
            yield Modelled(whole, np.concatenate([fixed, *(row[first:last] for row in declared)]))

    def learned_bounds(self) -> Floats:
        """Return what B leaves for the part that is learned; the safe action's norm is √k(x₀, x₀)."""
        return self.left_to_learn(math.sqrt(self.safe_norm), "only functions of norm {} or more take there")
