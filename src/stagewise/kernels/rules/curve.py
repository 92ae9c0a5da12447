"""Bounds along a ray whose start is uncertain: the width is the root of a quadratic, not linear."""

import math
from typing import NamedTuple

from stagewise.kernels.compile import kernel

NORM_TOLERANCE = 1.0 + 1e-9  # two norms of x₀ that differ by less differ only by rounding


@kernel
def compute_width_along(step: float, first: float, cross: float, end: float) -> float:
    """Return the norm of (1−s) x₀ + s x from ‖x₀‖, <x₀, x> and ‖x‖."""
    rest = 1.0 - step
    return math.sqrt(max(rest * rest * first * first + 2.0 * step * rest * cross + step * step * end * end, 0.0))


@kernel
def compute_clipped_width_along(step: float, first: float, safe_norm: float, cross: float, end: float) -> float:
    """Return the same where x₀ is known better than by the ellipsoid: `first` < `safe_norm`, the norm of x₀.

    max <x(s), v> over ‖v‖ ≤ 1, |<x₀, v>| ≤ first: again a norm. With q = first/safe_norm and x(s) = a along x₀ and b
    across: √(a² + b²) if |a| ≤ q √(a² + b²), and else q |a| + √(1 − q²) b.
    """
    if not safe_norm > first * NORM_TOLERANCE:
        return compute_width_along(step, first, cross, end)
    share = first / safe_norm
    along = (1.0 - step) * safe_norm + step * cross / safe_norm
    across = step * math.sqrt(max(end * end - cross * cross / (safe_norm * safe_norm), 0.0))
    norm = math.sqrt(along * along + across * across)
    if abs(along) <= share * norm:
        return norm
    return share * abs(along) + math.sqrt(1.0 - share * share) * across


@kernel
def find_first_crossing(
    first: float, end: float, first_width: float, safe_norm: float, cross: float, end_width: float, limit: float
) -> float:
    """Return the s in [0, 1] with (1−s) m₀ + s m + w(s) = τ, for m₀ + w(0) < τ < m + w(1); 1 where m + w(1) ≤ τ.

    w(s)² = (A − sB)² with A = τ − m₀, B = m − m₀ is a quadratic a s² + 2b s + c = 0 with c < 0; its smaller positive
    root is −c/(b + √(b² − ac)). Where x₀ is known better, the left side is convex, and bisected from below.
    """
    if safe_norm > first_width * NORM_TOLERANCE:
        return bisect(first, end, 1.0, first_width, safe_norm, cross, end_width, limit).below
    slack, rise, origin = limit - first, end - first, first_width * first_width
    a = origin - 2.0 * cross + end_width * end_width - rise * rise
    b = cross - origin + slack * rise
    c = origin - slack * slack
    below = b + math.sqrt(max(b * b - a * c, 0.0))
    return min(-c / below, 1.0) if below > 0.0 else 0.0


@kernel
def find_last_crossing(
    first: float, end: float, first_width: float, safe_norm: float, cross: float, end_width: float, limit: float
) -> float:
    """Return the s in [0, 1] with (1−s) m₀ + s m − w(s) = τ, for m₀ − w(0) < τ < m − w(1).

    The left side is concave in s and crosses once; bisection is accurate enough, because safety does not depend on it.
    """
    return bisect(first, end, -1.0, first_width, safe_norm, cross, end_width, limit).above


class Bracket(NamedTuple):
    """Two steps between which a crossing lies."""

    below: float
    above: float


@kernel
def bisect(
    first: float,
    end: float,
    sign: float,
    first_width: float,
    safe_norm: float,
    cross: float,
    end_width: float,
    limit: float,
) -> Bracket:
    """Return where (1−s) m₀ + s m ± w(s) crosses τ from below, by bisection; 1 and 1 where it does not."""
    low, high = 0.0, 1.0
    if end + sign * compute_clipped_width_along(1.0, first_width, safe_norm, cross, end_width) <= limit:
        return Bracket(1.0, 1.0)
    for _ in range(52):
        middle = 0.5 * (low + high)
        width = compute_clipped_width_along(middle, first_width, safe_norm, cross, end_width)
        if (1.0 - middle) * first + middle * end + sign * width <= limit:
            low = middle
        else:
            high = middle
    return Bracket(low, high)
