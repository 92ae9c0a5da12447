"""CAPS on rays: the ray that a draw proposes at its longest safe step, or the optimistic one (see `certified`)."""

import math

from stagewise.kernels.answer import SAFE_HOPE
from stagewise.kernels.bounds import CENTRE, COSTS, CROSS, HALF, HOPED, PLAUSIBLE, SAMPLED, STEPS
from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.layout import LIMITS, largest_reward, patience_of
from stagewise.kernels.promise import (
    NOT_FINITE,
    NOTHING_SAFE,
    PREFERRED,
    WARMING,
    ceiling_of,
    limit_of,
    threshold_of,
    weigh,
)
from stagewise.kernels.rules.certified import cut_draws, highest, set_prices
from stagewise.kernels.rules.curve import held_along
from stagewise.kernels.rules.ray import fill_plausible_steps, fill_safe_steps, pessimistic, safe_step, wide_of
from stagewise.kernels.rules.tie import first_best, tie_floor


@kernel
def exchange_crosses(bounds: Floats, rule: Floats) -> None:
    """Let the crosses and what stands in the rule's rows for costs, which rays do not use, change places.

    A draw is written where the crosses are; they are kept meanwhile, where a start is uncertain.
    """
    safe = bounds.shape[2] - 1
    for signal in range(bounds.shape[0]):
        if bounds[signal, HALF, safe] != 0.0:
            crosses, kept = bounds[signal, CROSS], rule[COSTS + signal]
            for ray in range(safe + 1):
                crosses[ray], kept[ray] = kept[ray], crosses[ray]


@kernel
def width_at(bounds: Floats, signal: int, ray: int, step: float, ceiling: float) -> float:
    """Return ω of a signal at (1−s) x₀ + s x."""
    centre, half, safe = bounds[signal, CENTRE, ray], bounds[signal, HALF, ray], bounds.shape[2] - 1
    first_half = bounds[signal, HALF, safe]
    if first_half == 0.0:
        return step * max(min(centre + half, ceiling) - (centre - half), 0.0)
    return 2.0 * held_along(step, first_half, wide_of(bounds, signal), bounds[signal, CROSS, ray], half)


@kernel
def ignorance_at(layout: Ints, settings: Floats, bounds: Floats, prices: Floats, ray: int, step: float) -> float:
    """Return w at (1−s) x₀ + s x."""
    most = 0.0
    for j in range(layout[LIMITS]):
        most = max(most, prices[j] * width_at(bounds, 1 + j, ray, step, ceiling_of(layout, settings, j)))
    return width_at(bounds, 0, ray, step, largest_reward(settings)) + most


@kernel
def lowest_at(bounds: Floats, ray: int, step: float) -> float:
    """Return r⁻ at (1−s) x₀ + s x."""
    safe = bounds.shape[2] - 1
    centre, half = bounds[0, CENTRE], bounds[0, HALF]
    between = (1.0 - step) * centre[safe] + step * centre[ray]
    if half[safe] == 0.0:
        return between - step * half[ray]
    return between - held_along(step, half[safe], wide_of(bounds, 0), bounds[0, CROSS, ray], half[ray])


@kernel
def fill_plausible(settings: Floats, bounds: Floats, plausible: Floats, hoped: Floats) -> None:
    """Write r⁺ at the longest plausible step of every ray."""
    safe, centre, half, cross = bounds.shape[2] - 1, bounds[0, CENTRE], bounds[0, HALF], bounds[0, CROSS]
    if half[safe] == 0.0:
        safe_reward = centre[safe]
        for ray in range(safe):
            hoped[ray] = safe_reward + plausible[ray] * (highest(settings, bounds, ray) - safe_reward)
    else:
        wide = wide_of(bounds, 0)
        for ray in range(safe):
            step = plausible[ray]
            along = held_along(step, half[safe], wide, cross[ray], half[ray])
            hoped[ray] = (1.0 - step) * centre[safe] + step * centre[ray] + along


@kernel
def proposed(layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, values: Floats) -> int:
    """Return the best ray if the draw were the truth, or −1: the safe action; `values` is scratch (K,)."""
    safe = bounds.shape[2] - 1
    safe_drawn = bounds[0, SAMPLED, safe]
    for ray in range(safe):
        values[ray] = 1.0
    for j in range(layout[LIMITS]):
        drawn_ = bounds[1 + j, SAMPLED]
        slack = limit_of(layout, settings, j) - drawn_[safe]
        for ray in range(safe):
            values[ray] = min(values[ray], safe_step(drawn_[ray] - drawn_[safe], slack))
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
    layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, dispute: int, rule: Floats, prices: Floats,
    answer: Floats,
) -> int:  # fmt: skip
    """Return the ray whose longest safe step is played, or minus the reason for the safe action.

    Hoped is the largest plausible reward on a ray; what is hoped for, V̄, is the largest of all, whatever is played.
    """
    hoped, steps, safe = rule[HOPED], rule[STEPS], bounds.shape[2] - 1
    certain = weigh(layout, settings, bounds, prices)
    safe_hoped = bounds[0, CENTRE, safe] + bounds[0, HALF, safe]
    hoped[safe], steps[safe], answer[SAFE_HOPE] = safe_hoped, 0.0, safe_hoped
    if dispute > 0 or not certain:
        exchange_crosses(bounds, rule)
        steps[:] = 0.0
        hoped[:] = safe_hoped
        return -dispute if dispute > 0 else -WARMING
    cut_draws(layout, settings, bounds)
    proposal = proposed(layout, settings, bounds, eligible, rule[PLAUSIBLE])
    exchange_crosses(bounds, rule)
    return certify_ray(layout, settings, bounds, eligible, proposal, rule, prices, answer)


@kernel
def certify_ray(
    layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, proposal: int, rule: Floats, prices: Floats,
    answer: Floats,
) -> int:  # fmt: skip
    """Return the proposed ray, −1 being the safe action, if its regret is certified; else the optimistic one.

    Nothing is asked of the proposal, so anybody may make it.
    """
    hoped, steps, plausible, safe = rule[HOPED], rule[STEPS], rule[PLAUSIBLE], bounds.shape[2] - 1
    safe_hoped = bounds[0, CENTRE, safe] + bounds[0, HALF, safe]
    hoped[safe], steps[safe], answer[SAFE_HOPE] = safe_hoped, 0.0, safe_hoped
    fill_safe_steps(layout, settings, bounds, steps)
    fill_plausible_steps(layout, settings, bounds, plausible)
    fill_plausible(settings, bounds, plausible, hoped)
    for ray in range(eligible.size):
        if not eligible[ray]:
            hoped[ray] = -math.inf
    best = first_best(hoped[:safe])
    if best >= 0 and not math.isfinite(hoped[best]):
        return -NOT_FINITE
    if best < 0 or tie_floor(hoped[best]) <= safe_hoped:
        return -PREFERRED
    value = min(hoped[best], max(largest_reward(settings), safe_hoped))
    set_prices(layout, settings, bounds, value, prices)
    chosen, target = best, proposal if proposal >= 0 else safe
    width = ignorance_at(layout, settings, bounds, prices, target, steps[target])
    if value - lowest_at(bounds, target, steps[target]) <= patience_of(settings) * width:
        if target == safe:
            answer[SAFE_HOPE] = value
            return -PREFERRED
        chosen = proposal
    hoped[chosen] = value
    for j in range(layout[LIMITS]):
        if not pessimistic(layout, settings, bounds, j, chosen, steps[chosen]) <= threshold_of(layout, settings, j):
            return -NOTHING_SAFE
    return chosen
