"""CAPS on mixtures: what a draw proposes, or the optimistic mixture, mixed back to what is safe (see `certified`)."""

import math

from stagewise.kernels.answer import FIRST_COST, HOPE, SAFE_HOPE, STEP
from stagewise.kernels.bounds import CENTRE, COSTS, HALF, HOPED, SAMPLED
from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.layout import FIRST_TERM, HOME, LIMITS, patience_of
from stagewise.kernels.promise import (
    DRAWN,
    NOT_FINITE,
    NOTHING_SAFE,
    PREFERRED,
    WARMING,
    ceiling_of,
    limit_of,
    threshold_of,
    weigh,
)
from stagewise.kernels.rules.certified import cut_draws, highest, lowest, set_prices
from stagewise.kernels.rules.mixture import drawn, mean_of, mix_back, share_beside_safe, solve, stay
from stagewise.kernels.rules.simplex import price_in
from stagewise.kernels.rules.tie import tie_floor

LIFT = 0.75  # how far a drawn price is raised towards v/Δ; without it little-known actions wait too long for their turn


@kernel
def ignorance(layout: Ints, settings: Floats, bounds: Floats, prices: Floats, action: int) -> float:
    """Return w, what is unknown of an action: its reward's width and the largest price times a cost's width."""
    most = 0.0
    for j in range(layout[LIMITS]):
        centre, half = bounds[1 + j, CENTRE, action], bounds[1 + j, HALF, action]
        most = max(most, prices[j] * (min(centre + half, ceiling_of(layout, settings, j)) - (centre - half)))
    return highest(settings, bounds, action) - lowest(bounds, action) + most


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
    """Write r⁺ and c⁻, the highest plausible reward and the lowest plausible costs, of every action."""
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
            price = price_in(basis[m:].reshape(m + 3, m + 1), j) / slack
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
    layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, dispute: int, rule: Floats, prices: Floats,
    basis: Floats | None, shares: Floats, places: Ints, lottery: float, answer: Floats,
) -> int:  # fmt: skip
    """Return the action drawn from the mixture that is played, or minus the reason for the safe action alone."""
    m, safe = layout[LIMITS], bounds.shape[2] - 1
    limits = settings[FIRST_TERM + m : FIRST_TERM + 2 * m]
    certain = weigh(layout, settings, bounds, prices)
    fill_costs(layout, settings, bounds, COSTS, 1.0, rule)
    fill_hopes(layout, settings, bounds, eligible, rule)
    safe_hoped = rule[HOPED, safe]
    code, value = -dispute if dispute > 0 else (0 if certain else -WARMING), safe_hoped
    if code == 0:
        solve(rule, COSTS + m, limits, basis, shares, places)
        value = mean_of(rule[HOPED], shares, places)
        if not math.isfinite(value):
            code = -NOT_FINITE
        elif tie_floor(value) <= safe_hoped:
            code = -PREFERRED
    if code == 0:
        propose_mixture(layout, settings, bounds, eligible, rule, prices, basis, limits, shares, places)
        code = certify_mixture(layout, settings, bounds, eligible, value, rule, prices, basis, shares, places)
    answer[SAFE_HOPE], answer[HOPE] = safe_hoped, value
    return settle_mixture(layout, code, rule, shares, places, lottery, answer)


@kernel
def certify_mixture(
    layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, value: float, rule: Floats, prices: Floats,
    basis: Floats | None, shares: Floats, places: Ints,
) -> int:  # fmt: skip
    """Leave the proposed mixture as it is if its regret is certified, else write the optimistic one, mixed back.

    Return 0, or minus the reason for the safe action alone.
    """
    m, safe, certified = layout[LIMITS], bounds.shape[2] - 1, 0.0
    limits = settings[FIRST_TERM + m : FIRST_TERM + 2 * m]
    set_prices(layout, settings, bounds, value, prices)
    for place in range(shares.size):
        if shares[place] != 0.0:
            action = safe if places[place] < 0 else places[place]
            width = ignorance(layout, settings, bounds, prices, action)
            certified += shares[place] * (lowest(bounds, action) + patience_of(settings) * width)
    fill_hopes(layout, settings, bounds, eligible, rule)
    if certified < value:
        solve(rule, COSTS + m, limits, basis, shares, places)
        mix_back(m, rule, limits, shares, places)
    for j in range(m):
        if not mean_of(rule[COSTS + j], shares, places) <= threshold_of(layout, settings, j):
            return -NOTHING_SAFE
    return 0 if share_beside_safe(shares, places) > 0.0 else -PREFERRED


@kernel
def settle_mixture(
    layout: Ints, code: int, rule: Floats, shares: Floats, places: Ints, lottery: float, answer: Floats
) -> int:
    """Draw from the mixture, or stay; write the answer and return what is played."""
    if code < 0:
        stay(shares, places)
    else:
        code = drawn(shares, places, lottery)
        code = code if code >= 0 else -DRAWN
    answer[STEP] = 1.0
    for j in range(layout[LIMITS]):
        answer[FIRST_COST + j] = mean_of(rule[COSTS + j], shares, places)
    return code
