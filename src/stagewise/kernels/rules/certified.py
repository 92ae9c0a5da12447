"""CAPS: whatever a draw from the posterior proposes, if its regret is certified; else the optimistic choice.

Of every action the lowest and the highest plausible mean is known, of the reward and of every cost. Both rules take

    V̄     the largest reward that is plausible: an upper bound on the optimum
    w      = (r⁺ − r⁻) + max_j κ_j (c⁺_j − c⁻_j),  κ_j = (V − r₀⁻)/(τ_j − c₀⁺_j)    how little is known of an action

and play the proposal where V̄ − (its lowest plausible reward) ≤ C w. Otherwise they play what V̄ was found at, cut back
to what is safe, which satisfies it with C = 1 (docs/theory/caps.md). Safety rests on c⁺ alone.

    settings, last: ν, C, the largest mean reward there is
"""

import math

from stagewise.kernels.answer import FIRST_COST, HOPE, SAFE_HOPE, STEP
from stagewise.kernels.bounds import CENTRE, COSTS, CROSS, HALF, HOPED, REACHES, SAMPLED, STEPS
from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.layout import FIRST_TERM, HOME, LIMITS
from stagewise.kernels.rules.curve import width_along
from stagewise.kernels.rules.mixture import drawn, listed_share, mean_of, mix_back, solve, stay
from stagewise.kernels.rules.promise import (
    DRAWN,
    NOT_FINITE,
    NOTHING_SAFE,
    PREFERRED,
    WARMING,
    capped,
    ceiling_of,
    limit_of,
    safe_cost,
    threshold_of,
    weigh,
)
from stagewise.kernels.rules.ray import fill_plausible_steps, fill_safe_steps, pessimistic, safe_step
from stagewise.kernels.rules.tie import first_best, tie_floor

LIFT = 0.75  # how far a drawn price is raised towards v/Δ; without it little-known actions wait too long for their turn


@kernel
def largest_reward(settings: Floats) -> float:
    """Return the largest mean reward there is."""
    return settings[settings.size - 1]


@kernel
def lowest(bounds: Floats, action: int) -> float:
    """Return r⁻."""
    return bounds[0, CENTRE, action] - bounds[0, HALF, action]


@kernel
def highest(settings: Floats, bounds: Floats, action: int) -> float:
    """Return r⁺; a declared bound that the data contradict does not cut it below r⁻."""
    return capped(bounds[0, CENTRE, action] + bounds[0, HALF, action], lowest(bounds, action), largest_reward(settings))


@kernel
def set_prices(layout: Ints, settings: Floats, bounds: Floats, value: float, prices: Floats) -> None:
    """Write κ_j = (V̄ − r₀⁻)/(τ_j − c₀⁺_j)."""
    gain = max(value - lowest(bounds, bounds.shape[2] - 1), 0.0)
    for j in range(layout[LIMITS]):
        prices[j] = gain / (limit_of(layout, settings, j) - safe_cost(layout, settings, bounds, j))


@kernel
def ignorance(layout: Ints, settings: Floats, bounds: Floats, prices: Floats, action: int) -> float:
    """Return w."""
    most = 0.0
    for j in range(layout[LIMITS]):
        centre, half = bounds[1 + j, CENTRE, action], bounds[1 + j, HALF, action]
        most = max(most, prices[j] * (min(centre + half, ceiling_of(layout, settings, j)) - (centre - half)))
    return highest(settings, bounds, action) - lowest(bounds, action) + most


@kernel
def cut_draws(layout: Ints, settings: Floats, bounds: Floats) -> None:
    """Cut every draw at what is certain beforehand: it lies within the bounds already (see `signals.posterior`)."""
    drawn_ = bounds[0, SAMPLED]
    for action in range(drawn_.size):
        drawn_[action] = min(drawn_[action], highest(settings, bounds, action))
    for j in range(layout[LIMITS]):
        drawn_, ceiling = bounds[1 + j, SAMPLED], ceiling_of(layout, settings, j)
        for action in range(drawn_.size):
            drawn_[action] = min(drawn_[action], ceiling)


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
    return 2.0 * width_along(step, first_half, bounds[signal, CROSS, ray], half)


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
    return between - width_along(step, half[safe], bounds[0, CROSS, ray], half[ray])


@kernel
def fill_plausible(settings: Floats, bounds: Floats, reaches: Floats, hoped: Floats) -> None:
    """Write r⁺ at the longest plausible step of every ray."""
    safe, centre, half, cross = bounds.shape[2] - 1, bounds[0, CENTRE], bounds[0, HALF], bounds[0, CROSS]
    if half[safe] == 0.0:
        home = centre[safe]
        for ray in range(safe):
            hoped[ray] = home + reaches[ray] * (highest(settings, bounds, ray) - home)
    else:
        for ray in range(safe):
            reach = reaches[ray]
            along = width_along(reach, half[safe], cross[ray], half[ray])
            hoped[ray] = (1.0 - reach) * centre[safe] + reach * centre[ray] + along


@kernel
def proposed(layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, values: Floats) -> int:
    """Return the best ray if the draw were the truth, or −1: the safe action; `values` is scratch (K,)."""
    safe = bounds.shape[2] - 1
    home = bounds[0, SAMPLED, safe]
    for ray in range(safe):
        values[ray] = 1.0
    for j in range(layout[LIMITS]):
        drawn_ = bounds[1 + j, SAMPLED]
        slack = limit_of(layout, settings, j) - drawn_[safe]
        for ray in range(safe):
            values[ray] = min(values[ray], safe_step(drawn_[ray] - drawn_[safe], slack))
    rewards = bounds[0, SAMPLED]
    for ray in range(safe):
        values[ray] *= rewards[ray] - home
    for ray in range(eligible.size):
        if not eligible[ray]:
            values[ray] = -math.inf
    best = first_best(values[:safe])
    return best if best >= 0 and values[best] > 0.0 else -1


@kernel
def choose_certified_ray(
    layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, doubt: int, rule: Floats, prices: Floats,
    answer: Floats,
) -> int:  # fmt: skip
    """Return the ray whose longest safe step is played, or minus the reason for the safe action.

    Hoped is the largest plausible reward on a ray; what is hoped for, V̄, is the largest of all, whatever is played.
    """
    hoped, steps, reaches, safe = rule[HOPED], rule[STEPS], rule[REACHES], bounds.shape[2] - 1
    certain = weigh(layout, settings, bounds, prices)
    home = bounds[0, CENTRE, safe] + bounds[0, HALF, safe]
    hoped[safe], steps[safe], answer[SAFE_HOPE] = home, 0.0, home
    if doubt > 0 or not certain:
        exchange_crosses(bounds, rule)
        steps[:] = 0.0
        hoped[:] = home
        return -doubt if doubt > 0 else -WARMING
    cut_draws(layout, settings, bounds)
    proposal = proposed(layout, settings, bounds, eligible, reaches)
    exchange_crosses(bounds, rule)
    fill_safe_steps(layout, settings, bounds, steps)
    fill_plausible_steps(layout, settings, bounds, reaches)
    fill_plausible(settings, bounds, reaches, hoped)
    for ray in range(eligible.size):
        if not eligible[ray]:
            hoped[ray] = -math.inf
    best = first_best(hoped[:safe])
    if best >= 0 and not math.isfinite(hoped[best]):
        return -NOT_FINITE
    if best < 0 or tie_floor(hoped[best]) <= home:
        return -PREFERRED
    value = min(hoped[best], max(largest_reward(settings), home))
    set_prices(layout, settings, bounds, value, prices)
    chosen, target = best, proposal if proposal >= 0 else safe
    width = ignorance_at(layout, settings, bounds, prices, target, steps[target])
    if value - lowest_at(bounds, target, steps[target]) <= settings[settings.size - 2] * width:
        if target == safe:
            answer[SAFE_HOPE] = value
            return -PREFERRED
        chosen = proposal
    hoped[chosen] = value
    for j in range(layout[LIMITS]):
        if not pessimistic(layout, settings, bounds, j, chosen, steps[chosen]) <= threshold_of(layout, settings, j):
            return -NOTHING_SAFE
    return chosen


@kernel
def fill_costs(layout: Ints, settings: Floats, bounds: Floats, row: int, sign: float, rule: Floats) -> None:
    """Write c⁺ (sign 1) or c⁻ (sign −1) of every action into rows from `row` on, the safe action's last."""
    for j in range(layout[LIMITS]):
        centre, half, costs, ceiling = (
            bounds[1 + j, CENTRE],
            bounds[1 + j, HALF],
            rule[row + j],
            ceiling_of(layout, settings, j),
        )
        for action in range(costs.size):
            costs[action] = min(centre[action] + sign * half[action], ceiling)


@kernel
def fill_hopes(layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, rule: Floats) -> None:
    """Write r⁺ and c⁻ of every action."""
    hoped = rule[HOPED]
    for action in range(hoped.size):
        hoped[action] = highest(settings, bounds, action)
    fill_costs(layout, settings, bounds, COSTS + layout[LIMITS], -1.0, rule)
    leave_out(layout, eligible, hoped)


@kernel
def leave_out(layout: Ints, eligible: Flags, hoped: Floats) -> None:
    """Let nothing be hoped of what is not offered; the safe arm stands beside the list, as every safe action does."""
    for action in range(eligible.size):
        if not eligible[action]:
            hoped[action] = -math.inf
    if layout[HOME] >= 0:
        hoped[layout[HOME]] = -math.inf


@kernel
def pair_price(rule: Floats, row: int, shares: Floats, places: Ints) -> float:
    """Return what a unit of the cost in this row is worth to the mixture of two, or of one, that stands in front."""
    if shares[1] == 0.0:
        return 0.0
    hoped, costs, safe = rule[HOPED], rule[row], rule.shape[1] - 1
    cheap, dear = safe if places[0] < 0 else places[0], places[1]
    return (hoped[dear] - hoped[cheap]) / (costs[dear] - costs[cheap])


@kernel
def set_draw_prices(
    layout: Ints, settings: Floats, rule: Floats, basis: Floats | None, shares: Floats, places: Ints, prices: Floats
) -> None:
    """Write what a unit of each cost is worth in the drawn program, most of the way to what all of it is worth, v/Δ.

    No share is worth more than the room it takes: the price of a limit is 0 where it does not bind.
    """
    m, safe = layout[LIMITS], rule.shape[1] - 1
    value = mean_of(rule[HOPED], shares, places) - rule[HOPED, safe]
    for j in range(m):
        start = rule[COSTS + m + j, safe]
        slack = limit_of(layout, settings, j) - start
        if basis is None:
            price = pair_price(rule, COSTS + m, shares, places)
        else:
            price = basis[m + (m + 1) * (m + 1) + 1 + j] / slack
        prices[j] = price + LIFT * (value / slack - price) if price > 0.0 else 0.0


@kernel
def propose_mixture(
    layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, rule: Floats, prices: Floats, basis: Floats | None,
    limits: Floats, shares: Floats, places: Ints,
) -> None:  # fmt: skip
    """Write the best safe mixture by the draw, where what a cost may be below its upper end is paid for.

    maximise E[r̃ + Σ_j p_j (c⁺_j − c̃_j)]  subject to  E[c⁺_j] ≤ τ_j,    p the prices of the drawn program
    """
    m, hoped = layout[LIMITS], rule[HOPED]
    cut_draws(layout, settings, bounds)
    for action in range(hoped.size):
        hoped[action] = bounds[0, SAMPLED, action]
    for j in range(m):
        for action in range(hoped.size):
            rule[COSTS + m + j, action] = bounds[1 + j, SAMPLED, action]
    leave_out(layout, eligible, hoped)
    if basis is not None:
        basis[:] = 0.0
    solve(rule, COSTS + m, limits, basis, shares, places)
    set_draw_prices(layout, settings, rule, basis, shares, places, prices)
    for j in range(m):
        for action in range(hoped.size):
            hoped[action] += prices[j] * (rule[COSTS + j, action] - rule[COSTS + m + j, action])
    solve(rule, COSTS, limits, basis, shares, places)


@kernel
def choose_certified_mixture(
    layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, doubt: int, rule: Floats, prices: Floats,
    basis: Floats | None, shares: Floats, places: Ints, lottery: float, answer: Floats,
) -> int:  # fmt: skip
    """Return the action drawn from the mixture that is played, or minus the reason for the safe action alone."""
    m, safe = layout[LIMITS], bounds.shape[2] - 1
    limits = settings[FIRST_TERM + m : FIRST_TERM + 2 * m]
    certain = weigh(layout, settings, bounds, prices)
    fill_costs(layout, settings, bounds, COSTS, 1.0, rule)
    fill_hopes(layout, settings, bounds, eligible, rule)
    home = rule[HOPED, safe]
    code, value = -doubt if doubt > 0 else (0 if certain else -WARMING), home
    if code == 0:
        solve(rule, COSTS + m, limits, basis, shares, places)
        value = mean_of(rule[HOPED], shares, places)
        if not math.isfinite(value):
            code = -NOT_FINITE
        elif tie_floor(value) <= home:
            code = -PREFERRED
    if code == 0:
        propose_mixture(layout, settings, bounds, eligible, rule, prices, basis, limits, shares, places)
        set_prices(layout, settings, bounds, value, prices)
        certified = 0.0
        for place in range(shares.size):
            if shares[place] != 0.0:
                action = safe if places[place] < 0 else places[place]
                width = ignorance(layout, settings, bounds, prices, action)
                certified += shares[place] * (lowest(bounds, action) + settings[settings.size - 2] * width)
        fill_hopes(layout, settings, bounds, eligible, rule)
        if certified < value:
            solve(rule, COSTS + m, limits, basis, shares, places)
            mix_back(m, rule, limits, shares, places)
        for j in range(m):
            if not mean_of(rule[COSTS + j], shares, places) <= threshold_of(layout, settings, j):
                code = -NOTHING_SAFE
        if code == 0 and not listed_share(shares, places) > 0.0:
            code = -PREFERRED
    if code < 0:
        stay(shares, places)
    else:
        code = drawn(shares, places, lottery)
        code = code if code >= 0 else -DRAWN
    answer[STEP], answer[SAFE_HOPE], answer[HOPE] = 1.0, home, value
    for j in range(m):
        answer[FIRST_COST + j] = mean_of(rule[COSTS + j], shares, places)
    return code
