"""Reproducing kernels k(x, y), and what is left of them once the value at the safe action is known."""

import math
from typing import NamedTuple

from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.layout import Part, similarity_of

LINEAR, RBF, MATERN_12, MATERN_32, MATERN_52 = 0, 1, 2, 3, 4
ENDLESS = 2**62


class Covariance(NamedTuple):
    """Which one, and where its functions' value is known: k₀(x, y) = k(x, y) − k(x, x₀) k(x₀, y)/k(x₀, x₀)."""

    kind: int
    lengthscale: float  # ℓ; the linear kernel has none
    safe: Floats  # (d,) x₀
    safe_norm: float  # k(x₀, x₀); 0: nothing is known there, or nothing can be, and k₀ = k
    rank: int  # the dimension of the space of k₀, or ENDLESS: so many points span everything there is


@kernel
def similarity(kind: int, lengthscale: float, one: Floats, other: Floats) -> float:
    """Return k(x, y): <x, y>, or with r = ‖x − y‖/ℓ

    RBF: exp(−r²/2).  Matérn 1/2: e⁻ʳ,  3/2: (1 + s) e⁻ˢ with s = √3 r,  5/2: (1 + s + s²/3) e⁻ˢ with s = √5 r
    (Rasmussen and Williams 2006, section 4.2).
    """
    total = 0.0
    if kind == LINEAR:
        for i in range(one.size):
            total += one[i] * other[i]
        return total
    for i in range(one.size):
        gap = (one[i] - other[i]) / lengthscale
        total += gap * gap
    if kind == RBF:
        return math.exp(-0.5 * total)
    if kind == MATERN_12:
        return math.exp(-math.sqrt(total))
    if kind == MATERN_32:
        distance = math.sqrt(3.0 * total)
        return (1.0 + distance) * math.exp(-distance)
    distance = math.sqrt(5.0 * total)
    return (1.0 + distance + distance * distance / 3.0) * math.exp(-distance)


@kernel
def covariance_of(part: Part, settings: Floats, safe: Floats) -> Covariance:
    """Name the reproducing kernel of a part (see `space` for its settings)."""
    kind, lengthscale, norm, rank = similarity_of(part), settings[part.settings + 2], 0.0, ENDLESS
    if part.anchored == 1:
        norm = similarity(kind, lengthscale, safe, safe)
    if kind == LINEAR:
        rank = safe.size - 1 if norm > 0.0 else safe.size
    return Covariance(kind, lengthscale, safe, norm, rank)


@kernel
def tie_to_safe(covariance: Covariance, action: Floats) -> float:
    """Return k(x₀, x), or 0 where nothing is known at x₀."""
    if covariance.safe_norm == 0.0:
        return 0.0
    return similarity(covariance.kind, covariance.lengthscale, covariance.safe, action)


@kernel
def share_of_known(covariance: Covariance, tie: float) -> float:
    """Return k(x, x₀)/k(x₀, x₀), the multiple of what is known at x₀ that is known at x: 1 at x₀, 0 if nothing is."""
    return 0.0 if covariance.safe_norm == 0.0 else tie / covariance.safe_norm


@kernel
def unknown_norm(covariance: Covariance, action: Floats, tie: float) -> float:
    """Return k₀(x, x) ≥ 0."""
    own = similarity(covariance.kind, covariance.lengthscale, action, action)
    return max(own - share_of_known(covariance, tie) * tie, 0.0)


@kernel
def unknown(covariance: Covariance, action: Floats, share: float, point: Floats, tie: float) -> float:
    """Return k₀(x, p) from the share of x and the tie k(x₀, p): exactly 0 at x = x₀, whose share is 1."""
    return similarity(covariance.kind, covariance.lengthscale, action, point) - share * tie
