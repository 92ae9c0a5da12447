"""CAPS on mixtures: the posterior sample's proposal, or the optimistic mixture made safe."""

import math

from stagewise.kernels.answer import FIRST_COST, OPTIMISTIC_REWARD, SAFE_OPTIMISTIC_REWARD, STEP
from stagewise.kernels.bounds import CENTRE, COSTS, HALF, OPTIMISTIC_REWARDS, SAMPLED
from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.constraints import (
    BOUNDS_NOT_FINITE,
    NO_BETTER_ACTION,
    NO_CERTIFIED_ACTION,
    SAFE_ACTION_COST_UNCERTAIN,
    SAFE_ACTION_DRAWN,
    compute_bonus_factors,
    get_ceiling,
    get_limit,
    get_threshold,
)
from stagewise.kernels.layout import FIRST_THRESHOLD, LIMITS, SAFE_INDEX, get_certificate_factor
from stagewise.kernels.rules.mixture import (
    compute_mixture_mean,
    compute_unsafe_share,
    draw_from_mixture,
    mix_back,
    set_safe_mixture,
    solve_mixture,
)
from stagewise.kernels.rules.regret_certificate import (
    clip_draws,
    compute_highest_reward,
    compute_lowest_reward,
    fill_prices,
)
from stagewise.kernels.rules.simplex import get_limit_price
from stagewise.kernels.rules.tie import tie_floor

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
        centre, half, costs, ceiling = (
            bounds[1 + j, CENTRE],
            bounds[1 + j, HALF],
            rule[row + j],
            get_ceiling(layout, settings, j),
        )
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
    code, value = (
        -contradiction if contradiction > 0 else (0 if certain else -SAFE_ACTION_COST_UNCERTAIN),
        safe_optimistic,
    )
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
                compute_lowest_reward(bounds, action) + get_certificate_factor(settings) * width
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
