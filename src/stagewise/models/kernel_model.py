"""Kernel models: which reproducing kernel, and the assumptions about functions in its space."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.layout import KERNEL_RIDGE
from stagewise.kernels.models.radius import JOINT
from stagewise.kernels.models.similarity import LINEAR_KIND, MATERN_12, MATERN_32, MATERN_52, RBF_KIND, evaluate_kernel
from stagewise.models.diagnostics import register
from stagewise.models.model_block import ModelBlockSpec, RegressionModel, build_known_values, split_regressions
from stagewise.models.regression_diagnostics import KernelRidgeDiagnostics
from stagewise.problem.checks import check_number, check_positive
from stagewise.problem.errors import ErrorCode, InvalidProblem

register(KERNEL_RIDGE, KernelRidgeDiagnostics())
SHORTEST = 1e-50  # below it, squared distances in lengthscales may overflow
SMOOTHNESS = {0.5: MATERN_12, 1.5: MATERN_32, 2.5: MATERN_52}


def check_lengthscale(value: Any) -> float:
    """Return a lengthscale after checking it."""
    if check_positive(value, "lengthscale") < SHORTEST:
        raise InvalidProblem(
            ErrorCode.OUT_OF_RANGE,
            "lengthscale is {value}; it must be at least {shortest:g}, since distances overflow below it",
            value=value,
            shortest=SHORTEST,
        )
    return float(value)


@dataclass(frozen=True, kw_only=True)
class RBF:
    """Radial basis function kernel, k(x, y) = exp(−‖x − y‖²/2ℓ²).

    Its functions are very smooth and vary over distances of about ℓ. Pass it as `kernel` to `KernelOPLB`.

    Attributes:
        lengthscale: ℓ, in the units of the features.

    Raises:
        InvalidProblem: If the lengthscale is not a positive number.

    Example:
        >>> round(similarity(RBF(lengthscale=0.5), np.zeros(1), np.ones(1)), 6)
        0.135335
    """

    lengthscale: float
    """ℓ, in the units of the features."""

    kind: ClassVar[int] = RBF_KIND  # its number in compiled code
    is_linear: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", check_lengthscale(self.lengthscale))


@dataclass(frozen=True, kw_only=True)
class Matern:
    """Matérn kernel: functions that are rougher than those of `RBF`.

    Pass it as `kernel` to `KernelOPLB`. The smaller the smoothness ν, the rougher the functions.

    Attributes:
        lengthscale: ℓ, in the units of the features.
        smoothness: ν: 0.5, 1.5 or 2.5.

    Raises:
        InvalidProblem: If the lengthscale is not a positive number, or the smoothness is not one of the three.

    Example:
        >>> round(similarity(Matern(lengthscale=0.5, smoothness=0.5), np.zeros(1), np.ones(1)), 6)
        0.135335
    """

    lengthscale: float
    """ℓ, in the units of the features."""
    smoothness: float = 2.5
    """ν: 0.5, 1.5 or 2.5."""

    is_linear: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", check_lengthscale(self.lengthscale))
        if check_number(self.smoothness, "smoothness") not in SMOOTHNESS:
            raise InvalidProblem(
                ErrorCode.INVALID_CHOICE,
                "smoothness is {smoothness}; it must be 0.5, 1.5 or 2.5, where the kernel has a closed form",
                smoothness=self.smoothness,
            )
        object.__setattr__(self, "smoothness", float(self.smoothness))

    @property
    def kind(self) -> int:
        """Its number in compiled code."""
        return SMOOTHNESS[self.smoothness]


@dataclass(frozen=True, kw_only=True)
class LinearKernel:
    """Linear kernel, k(x, y) = <x, y>.

    Its functions are linear, so `KernelOPLB` with this kernel is equivalent to `OPLB`.

    Example:
        >>> similarity(LinearKernel(), np.array([1.0, 2.0]), np.array([3.0, 1.0]))
        5.0
    """

    kind: ClassVar[int] = LINEAR_KIND
    lengthscale: ClassVar[float] = 1.0  # not used by the linear kernel
    is_linear: ClassVar[bool] = True  # its functions are linear, so that features may be too long for the ridge


Kernel = RBF | Matern | LinearKernel


def similarity(kernel: Kernel, one: Floats, other: Floats) -> float:
    """Return k(x, y).

    >>> similarity(RBF(lengthscale=2.0), np.array([0.0, 0.0]), np.array([0.0, 2.0])) == math.exp(-0.5)
    True
    """
    return float(evaluate_kernel(kernel.kind, kernel.lengthscale, one, other))


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelModel(RegressionModel):
    """The assumptions about signals in a reproducing kernel's space."""

    kernel: Kernel
    novelty: float

    @property
    def safe_norm(self) -> float:
        """k(x₀, x₀); 0 where every function of the space vanishes."""
        return similarity(self.kernel, self.safe, self.safe)

    def build_blocks(self) -> Iterator[ModelBlockSpec]:
        """Yield the regressions; those that share one share a basis."""
        values = build_known_values(self.reward, self.costs, len(self.names))
        fixed, bounds = np.array([self.ridge, self.novelty, self.kernel.lengthscale]), self.learned_bounds()
        for first, last, known in split_regressions(len(self.names), self.reward is not None, self.costs is not None):
            declared = (self.noise, bounds, self.confidence, values if known else np.zeros(values.size))
            integers = (KERNEL_RIDGE, first, last - first, 0, JOINT, int(known), 0, self.kernel.kind, 0)
            yield ModelBlockSpec(integers, np.concatenate([fixed, *(row[first:last] for row in declared)]))

    def learned_bounds(self) -> Floats:
        """Return what B leaves for the learned part; the safe action's norm is √k(x₀, x₀)."""
        return self.compute_remaining_bounds(math.sqrt(self.safe_norm), "only functions of norm {} or more take there")
