"""Bounds along a ray whose start is uncertain: the width is the root of a quadratic, not linear.

The best safe point on rays from the safe action: the longest safe step on each, then the best ray.
"""

import math
from typing import NamedTuple

from stagewise.engine.compile import Flags, Floats, Ints, distinct, kernel
from stagewise.engine.layout import DIRECTIONAL, ENFORCES_LIMITS, LIMITS, OFFERS_SAFE, get_safe_action
from stagewise.engine.model import REWARD, Kernel, Rule
from stagewise.engine.pair import first_best, tie_floor
from stagewise.engine.workspace import (
    BOUNDS_NOT_FINITE,
    CENTRE,
    COST_SCALE,
    CROSS,
    FIRST_COST,
    HALF,
    NO_BETTER_ACTION,
    NO_CERTIFIED_ACTION,
    OPTIMISTIC_REWARD,
    OPTIMISTIC_REWARDS,
    PLAUSIBLE,
    SAFE_ACTION_COST_UNCERTAIN,
    SAFE_OPTIMISTIC_REWARD,
    STEP,
    STEPS,
    compute_bonus_factors,
    compute_safe_cost,
    compute_safe_optimistic_reward,
    get_ceiling,
    get_decision_views,
    get_limit,
    get_threshold,
    has_switch,
    safe_step,
)

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


@kernel
def compute_safe_norm(bounds: Floats, signal: int) -> float:
    """Return β ‖x₀‖, which exceeds the safe action's half-width where x₀ is known better than by the ellipsoid."""
    return math.sqrt(max(bounds[signal, CROSS, bounds.shape[2] - 1], 0.0))


@kernel
def compute_pessimistic_cost(
    layout: Ints, settings: Floats, bounds: Floats, constraint: int, ray: int, step: float
) -> float:
    """Return the largest plausible cost at (1−s) x₀ + s x.

    The true cost is affine along the ray, so two bounds are valid: the curved one, <x(s), μ̂> + α_c β ‖x(s)‖, and the
    linear one between the ends, each clipped at its ceiling. Where the safe cost is known the linear one is never
    larger.
    """
    scale, ceiling, safe = settings[COST_SCALE], get_ceiling(layout, settings, constraint), bounds.shape[2] - 1
    first, first_half = bounds[1 + constraint, CENTRE, safe], bounds[1 + constraint, HALF, safe]
    last, last_half = bounds[1 + constraint, CENTRE, ray], bounds[1 + constraint, HALF, ray]
    low = min(first + scale * first_half, ceiling)
    straight = low + step * (min(last + scale * last_half, ceiling) - low)
    if first_half == 0.0:
        return straight
    along = compute_clipped_width_along(
        step, first_half, compute_safe_norm(bounds, 1 + constraint), bounds[1 + constraint, CROSS, ray], last_half
    )
    return min(straight, (1.0 - step) * first + step * last + scale * along)


@kernel
def exceeds_limits(layout: Ints, settings: Floats, bounds: Floats, ray: int, step: float) -> bool:
    """Return whether a pessimistic cost is above its limit."""
    excess = -math.inf
    for j in range(layout[LIMITS]):
        excess = max(
            excess, compute_pessimistic_cost(layout, settings, bounds, j, ray, step) - get_limit(layout, settings, j)
        )
    return excess > 0.0


@kernel
@distinct
def fill_safe_steps(layout: Ints, settings: Floats, bounds: Floats, steps: Floats) -> None:
    """Write the longest step on every ray whose pessimistic costs all stay within their limits."""
    scale, safe, curved = settings[COST_SCALE], bounds.shape[2] - 1, False
    if layout[LIMITS] == 0:
        steps[:safe] = 1.0
    for j in range(layout[LIMITS]):
        limit, ceiling = get_limit(layout, settings, j), get_ceiling(layout, settings, j)
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
            steps[ray] = extend_safe_step(layout, settings, bounds, ray)


@kernel
def extend_safe_step(layout: Ints, settings: Floats, bounds: Floats, ray: int) -> float:
    """Return the longest safe step where a safe cost is estimated too: the longer of the two bounds' steps."""
    scale, safe, longest = settings[COST_SCALE], bounds.shape[2] - 1, 1.0
    for j in range(layout[LIMITS]):
        limit, ceiling = get_limit(layout, settings, j), get_ceiling(layout, settings, j)
        first, first_half = bounds[1 + j, CENTRE, safe], scale * bounds[1 + j, HALF, safe]
        last, last_half = bounds[1 + j, CENTRE, ray], scale * bounds[1 + j, HALF, ray]
        low = min(first + first_half, ceiling)
        step = safe_step(min(last + last_half, ceiling) - low, limit - low)
        if first_half != 0.0 and step < 1.0 and first + first_half < limit:
            cross = scale * scale * bounds[1 + j, CROSS, ray]
            safe_norm = scale * compute_safe_norm(bounds, 1 + j)
            step = max(step, find_first_crossing(first, last, first_half, safe_norm, cross, last_half, limit))
        longest = min(longest, step)
    retreat = 1e-15  # the root of a quadratic may be off by rounding
    while retreat < 1e-3 and exceeds_limits(layout, settings, bounds, ray, longest):
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
        limit, centre, half = get_limit(layout, settings, j), bounds[1 + j, CENTRE], bounds[1 + j, HALF]
        cross = bounds[1 + j, CROSS]
        first, first_half = centre[safe], scale * half[safe]
        if first_half == 0.0:
            for ray in range(safe):
                steps[ray] = min(steps[ray], safe_step(centre[ray] - scale * half[ray] - first, limit - first))
        else:
            safe_norm = scale * compute_safe_norm(bounds, 1 + j)
            is_clipped = safe_norm > first_half * NORM_TOLERANCE
            for ray in range(safe):
                if is_clipped or centre[ray] - scale * half[ray] > limit:
                    step = find_last_crossing(
                        first, centre[ray], first_half, safe_norm, scale * scale * cross[ray], scale * half[ray], limit
                    )
                    steps[ray] = min(steps[ray], step)


@kernel
@distinct
def fill_optimistic_rewards(
    layout: Ints, bounds: Floats, factors: Floats, steps: Floats, optimistic_reward: Floats
) -> None:
    """Write the optimistic reward at every step: <x(s), θ̂> + β_r ‖x(s)‖ + max_j factor_j β_j ‖x(s)‖."""
    safe, centre, half, cross = bounds.shape[2] - 1, bounds[0, CENTRE], bounds[0, HALF], bounds[0, CROSS]
    first, first_half = centre[safe], half[safe]
    if first_half == 0.0 and layout[LIMITS] == 1 and bounds[1, HALF, safe] == 0.0:
        factor, other = factors[0], bounds[1, HALF]
        for ray in range(safe):
            bonus = max(0.0, factor * (steps[ray] * other[ray]))
            optimistic_reward[ray] = bonus + (first + steps[ray] * (centre[ray] + half[ray] - first))
        return
    for ray in range(safe):
        optimistic_reward[ray] = 0.0
    for j in range(layout[LIMITS]):
        factor, other, cost_cross = factors[j], bounds[1 + j, HALF], bounds[1 + j, CROSS]
        start = other[safe]
        if start == 0.0:
            for ray in range(safe):
                optimistic_reward[ray] = max(optimistic_reward[ray], factor * (steps[ray] * other[ray]))
        else:
            safe_norm = compute_safe_norm(bounds, 1 + j)
            for ray in range(safe):
                optimistic_reward[ray] = max(
                    optimistic_reward[ray],
                    factor * compute_clipped_width_along(steps[ray], start, safe_norm, cost_cross[ray], other[ray]),
                )
    if first_half == 0.0:
        for ray in range(safe):
            optimistic_reward[ray] += first + steps[ray] * (centre[ray] + half[ray] - first)
    else:
        safe_norm = compute_safe_norm(bounds, 0)
        for ray in range(safe):
            along = compute_clipped_width_along(steps[ray], first_half, safe_norm, cross[ray], half[ray])
            optimistic_reward[ray] += (1.0 - steps[ray]) * first + steps[ray] * centre[ray] + along


@kernel
def choose_ray(
    layout: Ints,
    settings: Floats,
    bounds: Floats,
    eligible: Flags,
    contradiction: int,
    rule: Floats,
    factors: Floats,
    answer: Floats,
) -> int:
    """Maximise the optimistic reward over the safe action and the longest safe step on every ray; return the ray.

    Both bounds are convex along a ray, so no other step can be better (docs/theory/rays.md). Directional: rays are
    compared at their longest plausible step instead. An empty `eligible` means all. The safe action is returned as
    minus its reason code; `contradiction` is such a code, or 0.
    """
    optimistic, steps, safe = rule[OPTIMISTIC_REWARDS], rule[STEPS], bounds.shape[2] - 1
    certain = compute_bonus_factors(layout, settings, bounds, factors)
    safe_optimistic = compute_safe_optimistic_reward(layout, bounds, factors)
    optimistic[safe] = safe_optimistic
    steps[safe] = 0.0
    answer[SAFE_OPTIMISTIC_REWARD] = safe_optimistic
    if not certain:
        steps[:] = 0.0
        optimistic[:] = safe_optimistic
        return -contradiction if contradiction > 0 else -SAFE_ACTION_COST_UNCERTAIN
    fill_safe_steps(layout, settings, bounds, steps)
    if has_switch(layout, DIRECTIONAL):
        fill_plausible_steps(layout, settings, bounds, rule[PLAUSIBLE])
        fill_optimistic_rewards(layout, bounds, factors, rule[PLAUSIBLE], optimistic)
    else:
        fill_optimistic_rewards(layout, bounds, factors, steps, optimistic)
    for ray in range(eligible.size):
        if not eligible[ray]:
            optimistic[ray] = -math.inf
    if contradiction > 0:
        return -contradiction
    best = first_best(optimistic[:safe])
    if best < 0 or not math.isfinite(optimistic[best]):
        return -BOUNDS_NOT_FINITE
    if has_switch(layout, DIRECTIONAL):
        plausible = rule[PLAUSIBLE, best]
        steps[best] = min(steps[best], plausible) if has_switch(layout, ENFORCES_LIMITS) else plausible
    if has_switch(layout, OFFERS_SAFE) and tie_floor(safe_optimistic) > optimistic[best]:
        return -NO_BETTER_ACTION
    if has_switch(layout, ENFORCES_LIMITS):
        for j in range(layout[LIMITS]):
            if not compute_pessimistic_cost(layout, settings, bounds, j, best, steps[best]) <= get_threshold(
                layout, settings, j
            ):
                return -NO_CERTIFIED_ACTION
    return best


@kernel
def finish_ray(
    layout: Ints, settings: Floats, bounds: Floats, rule: Floats, ray: int, features: Floats, safe: Floats,
    answer: Floats, action: Floats,
) -> None:  # fmt: skip
    """Write the answer for the chosen ray, or for the safe action, and the action (1−s) x₀ + s x."""
    m = layout[LIMITS]
    if ray < 0:
        answer[STEP], answer[OPTIMISTIC_REWARD] = 0.0, answer[SAFE_OPTIMISTIC_REWARD]
        for j in range(m):
            answer[FIRST_COST + j] = compute_safe_cost(layout, settings, bounds, j)
        for i in range(action.size):
            action[i] = safe[i]
        return
    step, target = rule[STEPS, ray], features[ray]
    answer[STEP], answer[OPTIMISTIC_REWARD] = step, rule[OPTIMISTIC_REWARDS, ray]
    for j in range(m):
        answer[FIRST_COST + j] = compute_pessimistic_cost(layout, settings, bounds, j, ray, step)
    rest = 1.0 - step
    for i in range(action.size):
        action[i] = rest * safe[i] + step * target[i]


def build_ray_player(choose: Kernel) -> Kernel:

    @kernel
    def play_ray(
        features: Floats, eligible: Flags, contradiction: int, layout: Ints, settings: Floats, bounds: Floats,
        rule: Floats, factors: Floats, basis: Floats | None, answer: Floats, seed: int, run: int, round_: int,
    ) -> int:  # fmt: skip
        """Return the ray on which the best safe point is played, or minus the reason code of the safe action."""
        action, safe = get_decision_views(layout, answer).action, get_safe_action(layout, settings).features
        code = choose(layout, settings, bounds, eligible, contradiction, rule, factors, answer)
        finish_ray(layout, settings, bounds, rule, code, features, safe, answer, action)
        return code

    return play_ray


play_ray = build_ray_player(choose_ray)
RAY = Rule("stagewise.rules.ray:RAY", play_ray)
SAMPLED_RAY = Rule("stagewise.rules.ray:SAMPLED_RAY", play_ray, samples=REWARD)  # Safe-LTS
