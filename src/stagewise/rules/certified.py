"""CAPS: play the posterior sample's proposal if its regret is certified; else the optimistic choice.

The lowest and the highest plausible mean of the reward and of every cost are known for every action. On rays and on
mixtures, the rule computes

    V̄     the largest plausible reward: an upper bound on the optimum
    w      = (r⁺ − r⁻) + max_j κ_j (c⁺_j − c⁻_j),  κ_j = (V̄ − r₀⁻)/(τ_j − c₀⁺_j)    the uncertainty of an action

and plays the proposal where V̄ − (its lowest plausible reward) ≤ C w. Otherwise it plays the choice that attains V̄,
mixed back to safety, which satisfies this with C = 1 (docs/theory/caps.md). Safety depends on c⁺ alone. ν, C and the
largest possible mean reward are at the end of the settings (see `layout`).

On rays the sample's ray is played at its longest safe step; on mixtures the optimistic mixture is made safe.
"""

import math

from stagewise.engine.compile import Flags, Floats, Ints, kernel
from stagewise.engine.layout import (
    FIRST_THRESHOLD,
    LIMITS,
    SAFE_INDEX,
    get_largest_reward,
    get_max_regret_ratio,
)
from stagewise.engine.mixture_program import compute_mixture_mean, solve_mixture
from stagewise.engine.model import EVERY, Rule
from stagewise.engine.pair import first_best, tie_floor
from stagewise.engine.simplex import get_limit_price
from stagewise.engine.workspace import (
    BOUNDS_NOT_FINITE,
    CENTRE,
    COSTS,
    CROSS,
    FIRST_COST,
    HALF,
    NO_BETTER_ACTION,
    NO_CERTIFIED_ACTION,
    OPTIMISTIC_REWARD,
    OPTIMISTIC_REWARDS,
    PLAUSIBLE,
    SAFE_ACTION_COST_UNCERTAIN,
    SAFE_ACTION_DRAWN,
    SAFE_OPTIMISTIC_REWARD,
    SAMPLED,
    STEP,
    STEPS,
    clip_upper_bound,
    compute_bonus_factors,
    compute_safe_cost,
    get_ceiling,
    get_limit,
    get_threshold,
    safe_step,
)
from stagewise.rules.mixture import (
    build_mixture_player,
    compute_unsafe_share,
    draw_from_mixture,
    mix_back,
    set_safe_mixture,
)
from stagewise.rules.ray import (
    build_ray_player,
    compute_clipped_width_along,
    compute_pessimistic_cost,
    compute_safe_norm,
    fill_plausible_steps,
    fill_safe_steps,
)


@kernel
def compute_lowest_reward(bounds: Floats, action: int) -> float:
    """Return r⁻, the lowest plausible reward of an action."""
    return bounds[0, CENTRE, action] - bounds[0, HALF, action]


@kernel
def compute_highest_reward(settings: Floats, bounds: Floats, action: int) -> float:
    """Return r⁺, the highest plausible reward; a declared bound that the data contradict does not clip it below r⁻."""
    return clip_upper_bound(
        bounds[0, CENTRE, action] + bounds[0, HALF, action],
        compute_lowest_reward(bounds, action),
        get_largest_reward(settings),
    )


@kernel
def fill_prices(layout: Ints, settings: Floats, bounds: Floats, value: float, prices: Floats) -> None:
    """Write κ_j = (V̄ − r₀⁻)/(τ_j − c₀⁺_j)."""
    gain = max(value - compute_lowest_reward(bounds, bounds.shape[2] - 1), 0.0)
    for j in range(layout[LIMITS]):
        prices[j] = gain / (get_limit(layout, settings, j) - compute_safe_cost(layout, settings, bounds, j))


@kernel
def clip_draws(layout: Ints, settings: Floats, bounds: Floats) -> None:
    """Clip every draw at its a-priori bound; it lies within the confidence bounds already."""
    drawn = bounds[0, SAMPLED]
    for action in range(drawn.size):
        drawn[action] = min(drawn[action], compute_highest_reward(settings, bounds, action))
    for j in range(layout[LIMITS]):
        drawn, ceiling = bounds[1 + j, SAMPLED], get_ceiling(layout, settings, j)
        for action in range(drawn.size):
            drawn[action] = min(drawn[action], ceiling)


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
    if value - compute_lowest_reward_at(bounds, target, steps[target]) <= get_max_regret_ratio(settings) * width:
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


LIFT = 0.75  # how far a drawn price is raised towards v/Δ; without it, uncertain actions are explored too late


@kernel
def compute_uncertainty(layout: Ints, settings: Floats, bounds: Floats, prices: Floats, action: int) -> float:
    """Return w, the uncertainty of an action: its reward's width plus the largest price times a cost's width."""
    most = 0.0
    for j in range(layout[LIMITS]):
        centre, half = bounds[1 + j, CENTRE, action], bounds[1 + j, HALF, action]
        most = max(most, prices[j] * (min(centre + half, get_ceiling(layout, settings, j)) - (centre - half)))
    return compute_highest_reward(settings, bounds, action) - compute_lowest_reward(bounds, action) + most


@kernel
def fill_costs(layout: Ints, settings: Floats, bounds: Floats, row: int, sign: float, rule: Floats) -> None:
    """Write c⁺ (sign 1) or c⁻ (sign −1) of every action into the rows from `row` on, the safe action last."""
    for j in range(layout[LIMITS]):
        centre, half, costs = bounds[1 + j, CENTRE], bounds[1 + j, HALF], rule[row + j]
        ceiling = get_ceiling(layout, settings, j)
        for action in range(costs.size):
            costs[action] = min(centre[action] + sign * half[action], ceiling)


@kernel
def fill_optimistic_rows(layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, rule: Floats) -> None:
    """Write r⁺ and c⁻, the highest plausible reward and the lowest plausible costs, of every action."""
    optimistic = rule[OPTIMISTIC_REWARDS]
    for action in range(optimistic.size):
        optimistic[action] = compute_highest_reward(settings, bounds, action)
    fill_costs(layout, settings, bounds, COSTS + layout[LIMITS], -1.0, rule)
    mask_ineligible(layout, eligible, optimistic)


@kernel
def mask_ineligible(layout: Ints, eligible: Flags, optimistic_reward: Floats) -> None:
    """Set the optimistic reward of ineligible actions to −∞, and of a listed safe arm, which is a separate column."""
    for action in range(eligible.size):
        if not eligible[action]:
            optimistic_reward[action] = -math.inf
    if layout[SAFE_INDEX] >= 0:
        optimistic_reward[layout[SAFE_INDEX]] = -math.inf


@kernel
def compute_pair_price(rule: Floats, row: int, shares: Floats, indices: Ints) -> float:
    """Return the price of a unit of the cost in this row for the mixture of one or two actions at the front."""
    if shares[1] == 0.0:
        return 0.0
    optimistic, costs, safe = rule[OPTIMISTIC_REWARDS], rule[row], rule.shape[1] - 1
    low, high = safe if indices[0] < 0 else indices[0], indices[1]
    return (optimistic[high] - optimistic[low]) / (costs[high] - costs[low])


@kernel
def fill_draw_prices(
    layout: Ints, settings: Floats, rule: Floats, basis: Floats | None, shares: Floats, indices: Ints, prices: Floats
) -> None:
    """Write the price of each cost in the drawn program, raised most of the way to v/Δ, the value per unit of slack.

    The price of a limit that does not bind is 0.
    """
    m, safe = layout[LIMITS], rule.shape[1] - 1
    value = compute_mixture_mean(rule[OPTIMISTIC_REWARDS], shares, indices) - rule[OPTIMISTIC_REWARDS, safe]
    for j in range(m):
        start = rule[COSTS + m + j, safe]
        slack = get_limit(layout, settings, j) - start
        if basis is None:
            price = compute_pair_price(rule, COSTS + m, shares, indices)
        else:
            price = get_limit_price(basis[m:].reshape(m + 3, m + 1), j) / slack
        prices[j] = price + LIFT * (value / slack - price) if price > 0.0 else 0.0


@kernel
def propose_mixture(
    layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, rule: Floats, prices: Floats, basis: Floats | None,
    limits: Floats, shares: Floats, indices: Ints,
) -> None:  # fmt: skip
    """Write the best safe mixture for the draw, with a bonus for costs that may be below their upper bounds.

    maximise E[r̃ + Σ_j p_j (c⁺_j − c̃_j)]  subject to  E[c⁺_j] ≤ τ_j,    p the prices of the drawn program
    """
    m, optimistic = layout[LIMITS], rule[OPTIMISTIC_REWARDS]
    clip_draws(layout, settings, bounds)
    for action in range(optimistic.size):
        optimistic[action] = bounds[0, SAMPLED, action]
    for j in range(m):
        for action in range(optimistic.size):
            rule[COSTS + m + j, action] = bounds[1 + j, SAMPLED, action]
    mask_ineligible(layout, eligible, optimistic)
    if basis is not None:
        basis[:] = 0.0
    solve_mixture(rule, COSTS + m, limits, basis, shares, indices)
    fill_draw_prices(layout, settings, rule, basis, shares, indices, prices)
    for j in range(m):
        for action in range(optimistic.size):
            optimistic[action] += prices[j] * (rule[COSTS + j, action] - rule[COSTS + m + j, action])
    solve_mixture(rule, COSTS, limits, basis, shares, indices)


@kernel
def choose_certified_mixture(
    layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, contradiction: int, rule: Floats, prices: Floats,
    basis: Floats | None, shares: Floats, indices: Ints, uniform_draw: float, answer: Floats,
) -> int:  # fmt: skip
    """Return the action drawn from the mixture that is played, or minus the reason code of the safe action."""
    m, safe = layout[LIMITS], bounds.shape[2] - 1
    limits = settings[FIRST_THRESHOLD + m : FIRST_THRESHOLD + 2 * m]
    certain = compute_bonus_factors(layout, settings, bounds, prices)
    fill_costs(layout, settings, bounds, COSTS, 1.0, rule)
    fill_optimistic_rows(layout, settings, bounds, eligible, rule)
    safe_optimistic = rule[OPTIMISTIC_REWARDS, safe]
    value, code = safe_optimistic, 0 if certain else -SAFE_ACTION_COST_UNCERTAIN
    code = -contradiction if contradiction > 0 else code
    if code == 0:
        solve_mixture(rule, COSTS + m, limits, basis, shares, indices)
        value = compute_mixture_mean(rule[OPTIMISTIC_REWARDS], shares, indices)
        if not math.isfinite(value):
            code = -BOUNDS_NOT_FINITE
        elif tie_floor(value) <= safe_optimistic:
            code = -NO_BETTER_ACTION
    if code == 0:
        propose_mixture(layout, settings, bounds, eligible, rule, prices, basis, limits, shares, indices)
        code = certify_mixture(layout, settings, bounds, eligible, value, rule, prices, basis, shares, indices)
    answer[SAFE_OPTIMISTIC_REWARD], answer[OPTIMISTIC_REWARD] = safe_optimistic, value
    return finish_mixture(layout, code, rule, shares, indices, uniform_draw, answer)


@kernel
def certify_mixture(
    layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, value: float, rule: Floats, prices: Floats,
    basis: Floats | None, shares: Floats, indices: Ints,
) -> int:  # fmt: skip
    """Keep the proposed mixture if its regret is certified, else write the optimistic one, mixed back to safety.

    Return 0, or minus the reason code of the safe action.
    """
    m, safe, certified = layout[LIMITS], bounds.shape[2] - 1, 0.0
    limits = settings[FIRST_THRESHOLD + m : FIRST_THRESHOLD + 2 * m]
    fill_prices(layout, settings, bounds, value, prices)
    for position in range(shares.size):
        if shares[position] != 0.0:
            action = safe if indices[position] < 0 else indices[position]
            width = compute_uncertainty(layout, settings, bounds, prices, action)
            certified += shares[position] * (
                compute_lowest_reward(bounds, action) + get_max_regret_ratio(settings) * width
            )
    fill_optimistic_rows(layout, settings, bounds, eligible, rule)
    if certified < value:
        solve_mixture(rule, COSTS + m, limits, basis, shares, indices)
        mix_back(m, rule, limits, shares, indices)
    for j in range(m):
        if not compute_mixture_mean(rule[COSTS + j], shares, indices) <= get_threshold(layout, settings, j):
            return -NO_CERTIFIED_ACTION
    return 0 if compute_unsafe_share(shares, indices) > 0.0 else -NO_BETTER_ACTION


@kernel
def finish_mixture(
    layout: Ints, code: int, rule: Floats, shares: Floats, indices: Ints, uniform_draw: float, answer: Floats
) -> int:
    """Draw from the mixture, or play the safe action; write the answer and return the code of what is played."""
    if code < 0:
        set_safe_mixture(shares, indices)
    else:
        code = draw_from_mixture(shares, indices, uniform_draw)
        code = code if code >= 0 else -SAFE_ACTION_DRAWN
    answer[STEP] = 1.0
    for j in range(layout[LIMITS]):
        answer[FIRST_COST + j] = compute_mixture_mean(rule[COSTS + j], shares, indices)
    return code


play_certified_ray = build_ray_player(choose_certified_ray)
play_certified_mixture = build_mixture_player(choose_certified_mixture)
CERTIFIED_RAY = Rule("stagewise.rules.certified:CERTIFIED_RAY", play_certified_ray, samples=EVERY, prepare=swap_crosses)
CERTIFIED_MIXTURE = Rule("stagewise.rules.certified:CERTIFIED_MIXTURE", play_certified_mixture, mixes=1, samples=EVERY)
