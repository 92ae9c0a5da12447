"""CAPS on rays: the posterior sample's ray at its longest safe step, or the optimistic ray."""

import math

from stagewise.kernels.answer import SAFE_OPTIMISTIC_REWARD
from stagewise.kernels.bounds import CENTRE, COSTS, CROSS, HALF, OPTIMISTIC_REWARDS, PLAUSIBLE, SAMPLED, STEPS
from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.constraints import (
    BOUNDS_NOT_FINITE,
    NO_BETTER_ACTION,
    NO_CERTIFIED_ACTION,
    SAFE_ACTION_COST_UNCERTAIN,
    compute_bonus_factors,
    get_ceiling,
    get_limit,
    get_threshold,
)
from stagewise.kernels.layout import LIMITS, get_certificate_factor, get_largest_reward
from stagewise.kernels.rules.curve import compute_clipped_width_along
from stagewise.kernels.rules.ray import (
    compute_pessimistic_cost,
    compute_safe_norm,
    fill_plausible_steps,
    fill_safe_steps,
    safe_step,
)
from stagewise.kernels.rules.regret_certificate import clip_draws, compute_highest_reward, fill_prices
from stagewise.kernels.rules.tie import first_best, tie_floor


@kernel
def swap_crosses(bounds: Floats, rule: Floats) -> None:
    """Swap the crosses with the rule's cost rows, which rays do not use.

    Draws are written where the crosses are; this saves the crosses meanwhile, where the start of a ray is uncertain.
    """
    safe = bounds.shape[2] - 1
    for signal in range(bounds.shape[0]):
        if bounds[signal, HALF, safe] != 0.0:
            crosses, saved = bounds[signal, CROSS], rule[COSTS + signal]
            for ray in range(safe + 1):
                crosses[ray], saved[ray] = saved[ray], crosses[ray]


@kernel
def compute_width_at(bounds: Floats, signal: int, ray: int, step: float, ceiling: float) -> float:
    """Return ω of a signal at (1−s) x₀ + s x."""
    centre, half, safe = bounds[signal, CENTRE, ray], bounds[signal, HALF, ray], bounds.shape[2] - 1
    first_half = bounds[signal, HALF, safe]
    if first_half == 0.0:
        return step * max(min(centre + half, ceiling) - (centre - half), 0.0)
    return 2.0 * compute_clipped_width_along(
        step, first_half, compute_safe_norm(bounds, signal), bounds[signal, CROSS, ray], half
    )


@kernel
def compute_uncertainty_at(
    layout: Ints, settings: Floats, bounds: Floats, prices: Floats, ray: int, step: float
) -> float:
    """Return w at (1−s) x₀ + s x."""
    most = 0.0
    for j in range(layout[LIMITS]):
        most = max(most, prices[j] * compute_width_at(bounds, 1 + j, ray, step, get_ceiling(layout, settings, j)))
    return compute_width_at(bounds, 0, ray, step, get_largest_reward(settings)) + most


@kernel
def compute_lowest_reward_at(bounds: Floats, ray: int, step: float) -> float:
    """Return r⁻ at (1−s) x₀ + s x."""
    safe = bounds.shape[2] - 1
    centre, half = bounds[0, CENTRE], bounds[0, HALF]
    between = (1.0 - step) * centre[safe] + step * centre[ray]
    if half[safe] == 0.0:
        return between - step * half[ray]
    return between - compute_clipped_width_along(
        step, half[safe], compute_safe_norm(bounds, 0), bounds[0, CROSS, ray], half[ray]
    )


@kernel
def fill_plausible_rewards(settings: Floats, bounds: Floats, plausible: Floats, optimistic_reward: Floats) -> None:
    """Write r⁺ at the longest plausible step of every ray."""
    safe, centre, half, cross = bounds.shape[2] - 1, bounds[0, CENTRE], bounds[0, HALF], bounds[0, CROSS]
    if half[safe] == 0.0:
        safe_reward = centre[safe]
        for ray in range(safe):
            optimistic_reward[ray] = safe_reward + plausible[ray] * (
                compute_highest_reward(settings, bounds, ray) - safe_reward
            )
    else:
        safe_norm = compute_safe_norm(bounds, 0)
        for ray in range(safe):
            step = plausible[ray]
            along = compute_clipped_width_along(step, half[safe], safe_norm, cross[ray], half[ray])
            optimistic_reward[ray] = (1.0 - step) * centre[safe] + step * centre[ray] + along


@kernel
def propose_ray(layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, values: Floats) -> int:
    """Return the best ray if the draw were the truth, or −1 for the safe action; `values` is scratch (K,)."""
    safe = bounds.shape[2] - 1
    safe_drawn = bounds[0, SAMPLED, safe]
    for ray in range(safe):
        values[ray] = 1.0
    for j in range(layout[LIMITS]):
        drawn = bounds[1 + j, SAMPLED]
        slack = get_limit(layout, settings, j) - drawn[safe]
        for ray in range(safe):
            values[ray] = min(values[ray], safe_step(drawn[ray] - drawn[safe], slack))
    rewards = bounds[0, SAMPLED]
    for ray in range(safe):
        values[ray] *= rewards[ray] - safe_drawn
    for ray in range(eligible.size):
        if not eligible[ray]:
            values[ray] = -math.inf
    best = first_best(values[:safe])
    return best if best >= 0 and values[best] > 0.0 else -1


@kernel
def choose_certified_ray(
    layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, contradiction: int, rule: Floats, prices: Floats,
    answer: Floats,
) -> int:  # fmt: skip
    """Return the ray whose longest safe step is played, or minus the reason code of the safe action.

    The optimistic reward of a ray is its largest plausible reward; V̄ is the largest over all rays.
    """
    optimistic, steps, safe = rule[OPTIMISTIC_REWARDS], rule[STEPS], bounds.shape[2] - 1
    certain = compute_bonus_factors(layout, settings, bounds, prices)
    safe_optimistic = bounds[0, CENTRE, safe] + bounds[0, HALF, safe]
    optimistic[safe], steps[safe], answer[SAFE_OPTIMISTIC_REWARD] = safe_optimistic, 0.0, safe_optimistic
    if contradiction > 0 or not certain:
        swap_crosses(bounds, rule)
        steps[:] = 0.0
        optimistic[:] = safe_optimistic
        return -contradiction if contradiction > 0 else -SAFE_ACTION_COST_UNCERTAIN
    clip_draws(layout, settings, bounds)
    proposal = propose_ray(layout, settings, bounds, eligible, rule[PLAUSIBLE])
    swap_crosses(bounds, rule)
    return certify_ray(layout, settings, bounds, eligible, proposal, rule, prices, answer)


@kernel
def certify_ray(
    layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, proposal: int, rule: Floats, prices: Floats,
    answer: Floats,
) -> int:  # fmt: skip
    """Return the proposed ray (−1: the safe action) if its regret is certified; else the optimistic one.

    The certificate makes no assumption about how the proposal was found.
    """
    optimistic, steps, plausible, safe = rule[OPTIMISTIC_REWARDS], rule[STEPS], rule[PLAUSIBLE], bounds.shape[2] - 1
    safe_optimistic = bounds[0, CENTRE, safe] + bounds[0, HALF, safe]
    optimistic[safe], steps[safe], answer[SAFE_OPTIMISTIC_REWARD] = safe_optimistic, 0.0, safe_optimistic
    fill_safe_steps(layout, settings, bounds, steps)
    fill_plausible_steps(layout, settings, bounds, plausible)
    fill_plausible_rewards(settings, bounds, plausible, optimistic)
    for ray in range(eligible.size):
        if not eligible[ray]:
            optimistic[ray] = -math.inf
    best = first_best(optimistic[:safe])
    if best >= 0 and not math.isfinite(optimistic[best]):
        return -BOUNDS_NOT_FINITE
    if best < 0 or tie_floor(optimistic[best]) <= safe_optimistic:
        return -NO_BETTER_ACTION
    value = min(optimistic[best], max(get_largest_reward(settings), safe_optimistic))
    fill_prices(layout, settings, bounds, value, prices)
    chosen, target = best, proposal if proposal >= 0 else safe
    width = compute_uncertainty_at(layout, settings, bounds, prices, target, steps[target])
    if value - compute_lowest_reward_at(bounds, target, steps[target]) <= get_certificate_factor(settings) * width:
        if target == safe:
            answer[SAFE_OPTIMISTIC_REWARD] = value
            return -NO_BETTER_ACTION
        chosen = proposal
    optimistic[chosen] = value
    for j in range(layout[LIMITS]):
        if not compute_pessimistic_cost(layout, settings, bounds, j, chosen, steps[chosen]) <= get_threshold(
            layout, settings, j
        ):
            return -NO_CERTIFIED_ACTION
    return chosen
