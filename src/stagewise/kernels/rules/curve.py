"""Bounds along a ray whose start is itself uncertain: the width is the root of a quadratic, not a straight line."""

import math
from typing import NamedTuple

from stagewise.kernels.compile import kernel

SLIGHTLY = 1.0 + 1e-9  # by less two norms of x₀ differ only in how they were rounded


@kernel
def width_along(step: float, first: float, cross: float, end: float) -> float:
    """Return the norm of (1−s) x₀ + s x from ‖x₀‖, <x₀, x> and ‖x‖."""
    rest = 1.0 - step
    return math.sqrt(max(rest * rest * first * first + 2.0 * step * rest * cross + step * step * end * end, 0.0))


@kernel
def held_along(step: float, first: float, wide: float, cross: float, end: float) -> float:
    """Return the same where x₀ is known better than by the ellipsoid: to `first`, which is less than `wide`, its norm.

    max <x(s), v> over ‖v‖ ≤ 1, |<x₀, v>| ≤ first: again a norm. With q = first/wide, x(s) is a along x₀ and b across:
    √(a² + b²) if |a| ≤ q √(a² + b²), and else q |a| + √(1 − q²) b.
    """
    if not wide > first * SLIGHTLY:
        return width_along(step, first, cross, end)
    share = first / wide
    along = (1.0 - step) * wide + step * cross / wide
    across = step * math.sqrt(max(end * end - cross * cross / (wide * wide), 0.0))
    norm = math.sqrt(along * along + across * across)
    if abs(along) <= share * norm:
        return norm
    return share * abs(along) + math.sqrt(1.0 - share * share) * across


@kernel
def first_crossing(
    first: float, end: float, first_width: float, wide: float, cross: float, end_width: float, limit: float
) -> float:
    """Return the s in [0, 1] with (1−s) m₀ + s m + w(s) = τ, for m₀ + w(0) < τ < m + w(1); 1 where m + w(1) ≤ τ.

    w(s)² = (A − sB)² with A = τ − m₀, B = m − m₀ is a quadratic a s² + 2b s + c = 0 with c < 0; its smaller positive
    root is −c/(b + √(b² − ac)). Where x₀ is known better, the left side is convex, and halved from below.
    """
    if wide > first_width * SLIGHTLY:
        return halved(first, end, 1.0, first_width, wide, cross, end_width, limit).below
    slack, rise, origin = limit - first, end - first, first_width * first_width
    a = origin - 2.0 * cross + end_width * end_width - rise * rise
    b = cross - origin + slack * rise
    c = origin - slack * slack
    below = b + math.sqrt(max(b * b - a * c, 0.0))
    return min(-c / below, 1.0) if below > 0.0 else 0.0


@kernel
def last_crossing(
    first: float, end: float, first_width: float, wide: float, cross: float, end_width: float, limit: float
) -> float:
    """Return the s in [0, 1] with (1−s) m₀ + s m − w(s) = τ, for m₀ − w(0) < τ < m − w(1).

    The left side is concave in s and crosses once; halving is enough, since no one's safety rests on it.
    """
    return halved(first, end, -1.0, first_width, wide, cross, end_width, limit).above


class Halved(NamedTuple):
    """Two steps that a crossing lies between."""

    below: float
    above: float


@kernel
def halved(
    first: float, end: float, sign: float, first_width: float, wide: float, cross: float, end_width: float, limit: float
) -> Halved:
    """Return where (1−s) m₀ + s m ± w(s) crosses τ from below, by halving; 1 and 1 where it does not."""
    low, high = 0.0, 1.0
    if end + sign * held_along(1.0, first_width, wide, cross, end_width) <= limit:
        return Halved(1.0, 1.0)
    for _ in range(52):
        middle = 0.5 * (low + high)
        width = held_along(middle, first_width, wide, cross, end_width)
        if (1.0 - middle) * first + middle * end + sign * width <= limit:
            low = middle
        else:
            high = middle
    return Halved(low, high)
