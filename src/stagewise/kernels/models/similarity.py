"""Reproducing kernels k(x, y), and the residual kernel given a known value at the safe action."""

import math
from typing import NamedTuple

from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.layout import ModelBlock, get_similarity_kind

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
def build_covariance(block: ModelBlock, settings: Floats, safe: Floats) -> Covariance:
    """Return the reproducing kernel of a block (see `kernel_ridge` for its settings)."""
    kind, lengthscale, norm, rank = get_similarity_kind(block), settings[block.settings + 2], 0.0, INFINITE_RANK
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
