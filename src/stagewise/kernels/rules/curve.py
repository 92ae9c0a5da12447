"""Bounds along a ray whose start is itself uncertain: the width is the root of a quadratic, not a straight line."""

import math

from stagewise.kernels.compile import kernel


@kernel
def width_along(step: float, start: float, cross: float, end: float) -> float:
    """Return the norm of (1−s) x₀ + s x from ‖x₀‖, <x₀, x> and ‖x‖."""
    rest = 1.0 - step
    return math.sqrt(max(rest * rest * start * start + 2.0 * step * rest * cross + step * step * end * end, 0.0))


@kernel
def first_crossing(start: float, end: float, start_width: float, cross: float, end_width: float, limit: float) -> float:
    """Return the s in [0, 1] with (1−s) m₀ + s m + w(s) = τ, for m₀ + w(0) < τ < m + w(1).

    w(s)² = (A − sB)² with A = τ − m₀, B = m − m₀ is a quadratic a s² + 2b s + c = 0 with c < 0; its smaller positive
    root is −c/(b + √(b² − ac)).
    """
    room, rise, origin = limit - start, end - start, start_width * start_width
    a = origin - 2.0 * cross + end_width * end_width - rise * rise
    b = cross - origin + room * rise
    c = origin - room * room
    below = b + math.sqrt(max(b * b - a * c, 0.0))
    return min(-c / below, 1.0) if below > 0.0 else 0.0


@kernel
def last_crossing(start: float, end: float, start_width: float, cross: float, end_width: float, limit: float) -> float:
    """Return the s in [0, 1] with (1−s) m₀ + s m − w(s) = τ, for m₀ − w(0) < τ < m − w(1).

    The left side is concave in s and crosses once; halving is enough, since no one's safety rests on it.
    """
    low, high = 0.0, 1.0
    for _ in range(52):
        middle = 0.5 * (low + high)
        width = width_along(middle, start_width, cross, end_width)
        if (1.0 - middle) * start + middle * end - width <= limit:
            low = middle
        else:
            high = middle
    return high
