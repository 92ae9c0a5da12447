"""Reproducing kernels k(x, y), and the residual kernel given a known value at the safe action."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from stagewise.engine.compile import Floats, kernel
from stagewise.problem.checks import check_number, check_positive
from stagewise.problem.errors import ErrorCode, InvalidProblem

LINEAR_KIND, RBF_KIND, MATERN_12, MATERN_32, MATERN_52 = 0, 1, 2, 3, 4
INFINITE_RANK = 2**62


class Covariance(NamedTuple):
    """A reproducing kernel, given a known value at x₀: k₀(x, y) = k(x, y) − k(x, x₀) k(x₀, y)/k(x₀, x₀)."""

    kind: int
    lengthscale: float  # ℓ; the linear kernel has none
    safe: Floats  # (d,) x₀
    safe_norm: float  # k(x₀, x₀); 0: the value at x₀ is unknown or always 0, and k₀ = k
    rank: int  # dimension of the space of k₀, or INFINITE_RANK


@kernel
def evaluate_kernel(kind: int, lengthscale: float, one: Floats, other: Floats) -> float:
    """Return k(x, y): <x, y>, or with r = ‖x − y‖/ℓ

    RBF: exp(−r²/2).  Matérn 1/2: e⁻ʳ,  3/2: (1 + s) e⁻ˢ with s = √3 r,  5/2: (1 + s + s²/3) e⁻ˢ with s = √5 r
    (Rasmussen and Williams 2006, section 4.2).
    """
    total = 0.0
    if kind == LINEAR_KIND:
        for i in range(one.size):
            total += one[i] * other[i]
        return total
    for i in range(one.size):
        gap = (one[i] - other[i]) / lengthscale
        total += gap * gap
    if kind == RBF_KIND:
        return math.exp(-0.5 * total)
    if kind == MATERN_12:
        return math.exp(-math.sqrt(total))
    if kind == MATERN_32:
        distance = math.sqrt(3.0 * total)
        return (1.0 + distance) * math.exp(-distance)
    distance = math.sqrt(5.0 * total)
    return (1.0 + distance + distance * distance / 3.0) * math.exp(-distance)


@kernel
def build_covariance(block: Any, settings: Floats, safe: Floats) -> Covariance:
    """Return the reproducing kernel of a block (see `kernel_ridge` for its settings)."""
    kind, lengthscale, norm, rank = block.detail, settings[block.settings + 2], 0.0, INFINITE_RANK
    if block.anchored == 1:
        norm = evaluate_kernel(kind, lengthscale, safe, safe)
    if kind == LINEAR_KIND:
        rank = safe.size - 1 if norm > 0.0 else safe.size
    return Covariance(kind, lengthscale, safe, norm, rank)


@kernel
def compute_safe_covariance(covariance: Covariance, action: Floats) -> float:
    """Return k(x₀, x), or 0 where the value at x₀ is unknown."""
    if covariance.safe_norm == 0.0:
        return 0.0
    return evaluate_kernel(covariance.kind, covariance.lengthscale, covariance.safe, action)


@kernel
def compute_known_share(covariance: Covariance, safe_covariance: float) -> float:
    """Return k(x, x₀)/k(x₀, x₀), the multiple of the known value at x₀ that is known at x: 1 at x₀, 0 if unknown."""
    return 0.0 if covariance.safe_norm == 0.0 else safe_covariance / covariance.safe_norm


@kernel
def compute_residual_norm(covariance: Covariance, action: Floats, safe_covariance: float) -> float:
    """Return k₀(x, x) ≥ 0."""
    square = evaluate_kernel(covariance.kind, covariance.lengthscale, action, action)
    return max(square - compute_known_share(covariance, safe_covariance) * safe_covariance, 0.0)


@kernel
def compute_residual_covariance(
    covariance: Covariance, action: Floats, share: float, point: Floats, safe_covariance: float
) -> float:
    """Return k₀(x, p) from the share of x and k(x₀, p): exactly 0 at x = x₀, whose share is 1."""
    return evaluate_kernel(covariance.kind, covariance.lengthscale, action, point) - share * safe_covariance


SHORTEST = 1e-50  # below it, squared distances in lengthscales may overflow
SMOOTHNESS = {0.5: MATERN_12, 1.5: MATERN_32, 2.5: MATERN_52}


def check_lengthscale(value: Any) -> float:
    if check_positive(value, "lengthscale") < SHORTEST:
        template = "lengthscale is {value}; it must be at least {shortest:g}, since distances overflow below it"
        raise InvalidProblem(ErrorCode.OUT_OF_RANGE, template, value=value, shortest=SHORTEST)
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
        >>> import numpy as np
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
        >>> import numpy as np
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
            template = "smoothness is {smoothness}; it must be 0.5, 1.5 or 2.5, where the kernel has a closed form"
            raise InvalidProblem(ErrorCode.INVALID_CHOICE, template, smoothness=self.smoothness)
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
        >>> import numpy as np
        >>> similarity(LinearKernel(), np.array([1.0, 2.0]), np.array([3.0, 1.0]))
        5.0
    """

    kind: ClassVar[int] = LINEAR_KIND
    lengthscale: ClassVar[float] = 1.0  # not used by the linear kernel
    is_linear: ClassVar[bool] = True  # its functions are linear, so that features may be too long for the ridge


Kernel = RBF | Matern | LinearKernel


def similarity(kernel: Kernel, one: Floats, other: Floats) -> float:
    """Return k(x, y).

    >>> import numpy as np
    >>> similarity(RBF(lengthscale=2.0), np.array([0.0, 0.0]), np.array([0.0, 2.0])) == math.exp(-0.5)
    True
    """
    return float(evaluate_kernel(kernel.kind, kernel.lengthscale, one, other))
