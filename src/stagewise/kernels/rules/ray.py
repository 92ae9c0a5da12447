"""The best safe point on rays from the safe action: the longest safe step on each, then the best ray."""

import math

from stagewise.kernels.answer import FIRST_COST, HOPE, SAFE_HOPE, STEP
from stagewise.kernels.bounds import CENTRE, CROSS, HALF, HOPED, PLAUSIBLE, STEPS
from stagewise.kernels.compile import Flags, Floats, Ints, distinct, kernel
from stagewise.kernels.layout import DIRECTIONAL, LIMITS, OFFERS_SAFE, RETURNS
from stagewise.kernels.promise import (
    COST_SCALE,
    NOT_FINITE,
    NOTHING_SAFE,
    PREFERRED,
    WARMING,
    ceiling_of,
    has,
    limit_of,
    safe_cost,
    safe_hope,
    threshold_of,
    weigh,
)
from stagewise.kernels.rules.curve import SLIGHTLY, first_crossing, held_along, last_crossing
from stagewise.kernels.rules.tie import first_best, tie_floor


@kernel
def safe_step(slope: float, slack: float) -> float:
    """Return the largest s in [0, 1] with s · slope ≤ slack, for slack > 0."""
    return 1.0 if slope <= slack else slack / slope


@kernel
def wide_of(bounds: Floats, signal: int) -> float:
    """Return β ‖x₀‖, which is more than the safe action's half-width where it is known better than by the ellipsoid."""
    return math.sqrt(max(bounds[signal, CROSS, bounds.shape[2] - 1], 0.0))


@kernel
def pessimistic(layout: Ints, settings: Floats, bounds: Floats, constraint: int, ray: int, step: float) -> float:
    """Return the largest plausible cost at (1−s) x₀ + s x.

    The true cost is affine along the ray, so two bounds hold: the curved one, <x(s), μ̂> + α_c β ‖x(s)‖, and the
    straight one between the ends, each clipped at its ceiling. Where the safe cost is known it is never the larger.
    """
    scale, ceiling, safe = settings[COST_SCALE], ceiling_of(layout, settings, constraint), bounds.shape[2] - 1
    first, first_half = bounds[1 + constraint, CENTRE, safe], bounds[1 + constraint, HALF, safe]
    last, last_half = bounds[1 + constraint, CENTRE, ray], bounds[1 + constraint, HALF, ray]
    low = min(first + scale * first_half, ceiling)
    straight = low + step * (min(last + scale * last_half, ceiling) - low)
    if first_half == 0.0:
        return straight
    along = held_along(step, first_half, wide_of(bounds, 1 + constraint), bounds[1 + constraint, CROSS, ray], last_half)
    return min(straight, (1.0 - step) * first + step * last + scale * along)


@kernel
def exceeds(layout: Ints, settings: Floats, bounds: Floats, ray: int, step: float) -> bool:
    """Say whether a pessimistic cost is above its limit."""
    excess = -math.inf
    for j in range(layout[LIMITS]):
        excess = max(excess, pessimistic(layout, settings, bounds, j, ray, step) - limit_of(layout, settings, j))
    return excess > 0.0


@kernel
@distinct
def fill_safe_steps(layout: Ints, settings: Floats, bounds: Floats, steps: Floats) -> None:
    """Write the longest step on every ray whose pessimistic costs all stay within their limits."""
    scale, safe, curved = settings[COST_SCALE], bounds.shape[2] - 1, False
    if layout[LIMITS] == 0:
        steps[:safe] = 1.0
    for j in range(layout[LIMITS]):
        limit, ceiling = limit_of(layout, settings, j), ceiling_of(layout, settings, j)
        centre, half = bounds[1 + j, CENTRE], bounds[1 + j, HALF]
        first, first_half = centre[safe], half[safe]
        low = min(first + scale * first_half, ceiling)
        slack = limit - low
        if j == 0:
            for ray in range(safe):
                steps[ray] = min(1.0, safe_step(min(centre[ray] + scale * half[ray], ceiling) - low, slack))
        else:
            for ray in range(safe):
                steps[ray] = min(steps[ray], safe_step(min(centre[ray] + scale * half[ray], ceiling) - low, slack))
        if first_half != 0.0:
            curved = True
    if curved:
        for ray in range(safe):
            steps[ray] = lengthened(layout, settings, bounds, ray)


@kernel
def lengthened(layout: Ints, settings: Floats, bounds: Floats, ray: int) -> float:
    """Return the longest safe step where a safe cost is estimated too: the farther of the two bounds'."""
    scale, safe, longest = settings[COST_SCALE], bounds.shape[2] - 1, 1.0
    for j in range(layout[LIMITS]):
        limit, ceiling = limit_of(layout, settings, j), ceiling_of(layout, settings, j)
        first, first_half = bounds[1 + j, CENTRE, safe], scale * bounds[1 + j, HALF, safe]
        last, last_half = bounds[1 + j, CENTRE, ray], scale * bounds[1 + j, HALF, ray]
        low = min(first + first_half, ceiling)
        step = safe_step(min(last + last_half, ceiling) - low, limit - low)
        if first_half != 0.0 and step < 1.0 and first + first_half < limit:
            cross = scale * scale * bounds[1 + j, CROSS, ray]
            wide = scale * wide_of(bounds, 1 + j)
            step = max(step, first_crossing(first, last, first_half, wide, cross, last_half, limit))
        longest = min(longest, step)
    retreat = 1e-15  # the root of a quadratic may be off by its rounding
    while retreat < 1e-3 and exceeds(layout, settings, bounds, ray, longest):
        longest *= 1.0 - retreat
        retreat *= 8.0
    return longest


@kernel
def fill_plausible_steps(layout: Ints, settings: Floats, bounds: Floats, steps: Floats) -> None:
    """Write the longest step on every ray at which all costs may still be within their thresholds."""
    scale, safe = settings[COST_SCALE], bounds.shape[2] - 1
    for ray in range(safe):
        steps[ray] = 1.0
    for j in range(layout[LIMITS]):
        limit, centre, half, cross = (
            limit_of(layout, settings, j),
            bounds[1 + j, CENTRE],
            bounds[1 + j, HALF],
            bounds[1 + j, CROSS],
        )
        first, first_half = centre[safe], scale * half[safe]
        if first_half == 0.0:
            for ray in range(safe):
                steps[ray] = min(steps[ray], safe_step(centre[ray] - scale * half[ray] - first, limit - first))
        else:
            wide = scale * wide_of(bounds, 1 + j)
            held = wide > first_half * SLIGHTLY
            for ray in range(safe):
                if held or centre[ray] - scale * half[ray] > limit:
                    step = last_crossing(
                        first, centre[ray], first_half, wide, scale * scale * cross[ray], scale * half[ray], limit
                    )
                    steps[ray] = min(steps[ray], step)


@kernel
@distinct
def fill_hoped(layout: Ints, bounds: Floats, factors: Floats, steps: Floats, hoped: Floats) -> None:
    """Write the hoped reward at every step: <x(s), θ̂> + β_r ‖x(s)‖ + max_j factor_j β_j ‖x(s)‖."""
    safe, centre, half, cross = bounds.shape[2] - 1, bounds[0, CENTRE], bounds[0, HALF], bounds[0, CROSS]
    first, first_half = centre[safe], half[safe]
    if first_half == 0.0 and layout[LIMITS] == 1 and bounds[1, HALF, safe] == 0.0:
        factor, other = factors[0], bounds[1, HALF]
        for ray in range(safe):
            bonus = max(0.0, factor * (steps[ray] * other[ray]))
            hoped[ray] = bonus + (first + steps[ray] * (centre[ray] + half[ray] - first))
        return
    for ray in range(safe):
        hoped[ray] = 0.0
    for j in range(layout[LIMITS]):
        factor, other, bent = factors[j], bounds[1 + j, HALF], bounds[1 + j, CROSS]
        start = other[safe]
        if start == 0.0:
            for ray in range(safe):
                hoped[ray] = max(hoped[ray], factor * (steps[ray] * other[ray]))
        else:
            wide = wide_of(bounds, 1 + j)
            for ray in range(safe):
                hoped[ray] = max(hoped[ray], factor * held_along(steps[ray], start, wide, bent[ray], other[ray]))
    if first_half == 0.0:
        for ray in range(safe):
            hoped[ray] += first + steps[ray] * (centre[ray] + half[ray] - first)
    else:
        wide = wide_of(bounds, 0)
        for ray in range(safe):
            along = held_along(steps[ray], first_half, wide, cross[ray], half[ray])
            hoped[ray] += (1.0 - steps[ray]) * first + steps[ray] * centre[ray] + along


@kernel
def choose_ray(
    layout: Ints,
    settings: Floats,
    bounds: Floats,
    eligible: Flags,
    dispute: int,
    rule: Floats,
    factors: Floats,
    answer: Floats,
) -> int:
    """Maximise the hoped reward over the safe action and the longest safe step on every ray; return the ray.

    Both bounds are convex along a ray, so no other step can be better (docs/theory/rays.md). Directional: rays are
    compared at their longest plausible step instead. An empty `eligible` means all. The safe action is returned as
    minus the reason for it; `dispute` is one: what was declared and is contradicted, or 0.
    """
    hoped, steps, safe = rule[HOPED], rule[STEPS], bounds.shape[2] - 1
    certain = weigh(layout, settings, bounds, factors)
    safe_hoped = safe_hope(layout, bounds, factors)
    hoped[safe] = safe_hoped
    steps[safe] = 0.0
    answer[SAFE_HOPE] = safe_hoped
    if not certain:
        steps[:] = 0.0
        hoped[:] = safe_hoped
        return -dispute if dispute > 0 else -WARMING
    fill_safe_steps(layout, settings, bounds, steps)
    if has(layout, DIRECTIONAL):
        fill_plausible_steps(layout, settings, bounds, rule[PLAUSIBLE])
        fill_hoped(layout, bounds, factors, rule[PLAUSIBLE], hoped)
    else:
        fill_hoped(layout, bounds, factors, steps, hoped)
    for ray in range(eligible.size):
        if not eligible[ray]:
            hoped[ray] = -math.inf
    if dispute > 0:
        return -dispute
    best = first_best(hoped[:safe])
    if best < 0 or not math.isfinite(hoped[best]):
        return -NOT_FINITE
    if has(layout, DIRECTIONAL):
        plausible = rule[PLAUSIBLE, best]
        steps[best] = min(steps[best], plausible) if has(layout, RETURNS) else plausible
    if has(layout, OFFERS_SAFE) and tie_floor(safe_hoped) > hoped[best]:
        return -PREFERRED
    if has(layout, RETURNS):
        for j in range(layout[LIMITS]):
            if not pessimistic(layout, settings, bounds, j, best, steps[best]) <= threshold_of(layout, settings, j):
                return -NOTHING_SAFE
    return best


@kernel
def settle_ray(
    layout: Ints, settings: Floats, bounds: Floats, rule: Floats, ray: int, features: Floats, safe: Floats,
    answer: Floats, action: Floats,
) -> None:  # fmt: skip
    """Write the answer for the ray taken, or for the safe action, and the action (1−s) x₀ + s x."""
    m = layout[LIMITS]
    if ray < 0:
        answer[STEP], answer[HOPE] = 0.0, answer[SAFE_HOPE]
        for j in range(m):
            answer[FIRST_COST + j] = safe_cost(layout, settings, bounds, j)
        for i in range(action.size):
            action[i] = safe[i]
        return
    step, target = rule[STEPS, ray], features[ray]
    answer[STEP], answer[HOPE] = step, rule[HOPED, ray]
    for j in range(m):
        answer[FIRST_COST + j] = pessimistic(layout, settings, bounds, j, ray, step)
    rest = 1.0 - step
    for i in range(action.size):
        action[i] = rest * safe[i] + step * target[i]
