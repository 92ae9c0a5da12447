"""The best safe point on rays from the safe action: the longest safe step on each, then the best ray."""

import math

from stagewise.kernels.compile import Flags, Floats, kernel
from stagewise.kernels.curve import first_crossing, last_crossing, width_along
from stagewise.kernels.promise import NOT_FINITE, NOTHING_SAFE, PREFERRED, WARMING, Promise, assess, capped
from stagewise.kernels.sight import Sight
from stagewise.kernels.tie import first_best, tie_floor
from stagewise.kernels.watch import overrun


@kernel
def safe_step(slope: float, slack: float) -> float:
    """Return the largest s in [0, 1] with s · slope ≤ slack, for slack > 0."""
    return 1.0 if slope <= slack else slack / slope


@kernel
def shorten(
    estimates: Floats, widths: Floats, reach: float, ceiling: float, start: float, slack: float, steps: Floats
) -> None:
    """Shorten every step to where the straight bound c₀ + s (min(<x, μ̂> + reach ‖x‖, ceiling) − c₀) meets the limit."""
    for ray in range(steps.size):
        steps[ray] = min(steps[ray], safe_step(min(estimates[ray] + reach * widths[ray], ceiling) - start, slack))


@kernel
def pessimistic(sight: Sight, promise: Promise, constraint: int, ray: int, step: float) -> float:
    """Return the largest plausible cost at (1−s) x₀ + s x.

    The true cost is affine along the ray, so two bounds hold: the curved one, <x(s), μ̂> + α_c β ‖x(s)‖, and the
    straight one between the ends, each clipped at its ceiling. Where the safe cost is known it is never the larger.
    """
    m = promise.limits.size
    reach = promise.cost_scale * sight.radii[1 + constraint]
    estimate, width = sight.costs[constraint, ray], sight.cost_widths[ray]
    first, first_width = sight.start[1 + constraint], sight.start[2 + m]
    low = min(first + reach * first_width, promise.ceilings[constraint])
    straight = low + step * (min(estimate + reach * width, promise.ceilings[constraint]) - low)
    if promise.cost_known:
        return straight
    along = width_along(step, first_width, sight.cost_crosses[ray], width)
    return min(straight, (1.0 - step) * first + step * estimate + reach * along)


@kernel
def exceeds(sight: Sight, promise: Promise, ray: int, step: float) -> bool:
    """Say whether a pessimistic cost is above its limit."""
    excess = -math.inf
    for j in range(promise.limits.size):
        excess = max(excess, pessimistic(sight, promise, j, ray, step) - promise.limits[j])
    return excess > 0.0


@kernel
def lengthen(sight: Sight, promise: Promise, ray: int) -> float:
    """Return the longest safe step where the safe cost is estimated too: the farther of the two bounds'."""
    m = promise.limits.size
    longest = 1.0
    for j in range(m):
        reach, limit, ceiling = promise.cost_scale * sight.radii[1 + j], promise.limits[j], promise.ceilings[j]
        estimate, width = sight.costs[j, ray], sight.cost_widths[ray]
        first, first_width = sight.start[1 + j], sight.start[2 + m]
        low = min(first + reach * first_width, ceiling)
        step = safe_step(min(estimate + reach * width, ceiling) - low, limit - low)
        if step < 1.0 and first + reach * first_width < limit:
            cross = reach * reach * sight.cost_crosses[ray]
            step = max(step, first_crossing(first, estimate, reach * first_width, cross, reach * width, limit))
        longest = min(longest, step)
    retreat = 1e-15  # the root of a quadratic may be off by its rounding
    while retreat < 1e-3 and exceeds(sight, promise, ray, longest):
        longest *= 1.0 - retreat
        retreat *= 8.0
    return longest


@kernel
def fill_safe_steps(sight: Sight, promise: Promise) -> None:
    """Write the longest step on every ray whose pessimistic costs all stay within their limits."""
    steps = sight.steps
    if promise.cost_known:
        steps[:] = 1.0
        for j in range(promise.limits.size):
            reach, start = promise.cost_scale * sight.radii[1 + j], sight.start[1 + j]
            slack = promise.limits[j] - start
            shorten(sight.costs[j], sight.cost_widths, reach, promise.ceilings[j], start, slack, steps)
    else:
        for ray in range(steps.size):
            steps[ray] = lengthen(sight, promise, ray)


@kernel
def fill_plausible_steps(sight: Sight, promise: Promise) -> None:
    """Write the longest step on every ray at which all costs may still be within their thresholds."""
    m, steps = promise.limits.size, sight.reaches
    steps[:] = 1.0
    for j in range(m):
        reach, start, limit = promise.cost_scale * sight.radii[1 + j], sight.start[1 + j], promise.limits[j]
        estimates, widths = sight.costs[j], sight.cost_widths
        if promise.cost_known:
            shorten(estimates, widths, -reach, math.inf, start, limit - start, steps)
        else:
            for ray in range(steps.size):
                if estimates[ray] - reach * widths[ray] > limit:
                    cross, first_width = reach * reach * sight.cost_crosses[ray], reach * sight.start[2 + m]
                    step = last_crossing(start, estimates[ray], first_width, cross, reach * widths[ray], limit)
                    steps[ray] = min(steps[ray], step)


@kernel
def fill_hoped(sight: Sight, promise: Promise, lift: float, steps: Floats) -> None:
    """Write the hoped reward at every step: <x(s), θ̂> + β_r ‖x(s)‖_r + lift ‖x(s)‖_c."""
    m, hoped, radius, start = promise.limits.size, sight.hoped, sight.radii[0], sight.start
    estimates, own, other = sight.rewards, sight.reward_widths, sight.cost_widths
    if promise.reward_known and promise.cost_known:
        for ray in range(hoped.size):
            gain = estimates[ray] + (radius * own[ray] + lift * other[ray]) - start[0]
            hoped[ray] = start[0] + steps[ray] * gain
        return
    for ray in range(hoped.size):
        step = steps[ray]
        own_width, other_width = step * own[ray], step * other[ray]
        if not promise.reward_known:
            own_width = width_along(step, start[1 + m], sight.reward_crosses[ray], own[ray])
        if not promise.cost_known:
            other_width = width_along(step, start[2 + m], sight.cost_crosses[ray], other[ray])
        hoped[ray] = (1.0 - step) * start[0] + step * estimates[ray] + radius * own_width + lift * other_width


@kernel
def choose(sight: Sight, promise: Promise, eligible: Flags, doubt: int) -> int:
    """Maximise the hoped reward over the safe action and the longest safe step on every ray; return the ray.

    Both bounds are convex along a ray, so no other step can be better (docs/theory/rays.md). Directional: rays are
    compared at their longest plausible step instead. An empty `eligible` means all. The safe action is returned as
    minus the reason for it; `doubt` is one: what was declared and is contradicted, or 0.
    """
    hoped, m = sight.hoped, promise.limits.size
    start = assess(promise, sight.start, sight.radii)
    safe = sight.start[0] + sight.radii[0] * sight.start[1 + m] + start.lift * sight.start[2 + m]
    sight.verdict[2 + m] = safe
    if doubt == 0:
        doubt = overrun(promise, sight.costs, sight.cost_widths, sight.start, sight.radii)
    if not start.certified:
        sight.steps[:] = 0.0
        hoped[:] = safe
        return -doubt if doubt > 0 else -WARMING
    fill_safe_steps(sight, promise)
    reaches = sight.steps
    if promise.directional:
        fill_plausible_steps(sight, promise)
        reaches = sight.reaches
    fill_hoped(sight, promise, start.lift, reaches)
    for ray in range(eligible.size):
        if not eligible[ray]:
            hoped[ray] = -math.inf
    if doubt > 0:
        return -doubt
    best = first_best(hoped)
    if best < 0 or not math.isfinite(hoped[best]):
        return -NOT_FINITE
    if promise.directional and promise.returns:
        sight.steps[best] = min(sight.steps[best], reaches[best])
    elif promise.directional:
        sight.steps[best] = reaches[best]
    if promise.offers_safe and tie_floor(safe) > hoped[best]:
        return -PREFERRED
    for j in range(m):
        within = pessimistic(sight, promise, j, best, sight.steps[best]) <= promise.thresholds[j]
        if promise.returns and not within:
            return -NOTHING_SAFE
    return best


@kernel
def settle(sight: Sight, promise: Promise, targets: Floats, safe: Floats, ray: int) -> None:
    """Write the verdict on the ray taken, or on the safe action, and the action (1−s) x₀ + s x."""
    m, start, verdict, action = promise.limits.size, sight.start, sight.verdict, sight.action
    if ray < 0:
        verdict[0], verdict[1] = 0.0, verdict[2 + m]
        for j in range(m):
            doubt = promise.cost_scale * sight.radii[1 + j] * start[2 + m]
            verdict[2 + j] = capped(start[1 + j] + doubt, start[1 + j] - doubt, promise.ceilings[j])
        for i in range(safe.size):
            action[i] = safe[i]
        return
    step, target = sight.steps[ray], targets[ray]
    verdict[0], verdict[1] = step, sight.hoped[ray]
    for j in range(m):
        verdict[2 + j] = pessimistic(sight, promise, j, ray, step)
    rest = 1.0 - step
    for i in range(safe.size):
        action[i] = rest * safe[i] + step * target[i]
