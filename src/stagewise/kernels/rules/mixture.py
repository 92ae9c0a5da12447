"""One safe mixture: the best under the pessimistic costs, or the most hopeful one mixed back to what is safe."""

import math

from stagewise.kernels.answer import FIRST_COST, HOPE, SAFE_HOPE, STEP
from stagewise.kernels.bounds import CENTRE, COSTS, HALF, HOPED, PLAUSIBLE
from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.layout import DIRECTIONAL, FIRST_TERM, HOME, LIMITS, RETURNS
from stagewise.kernels.promise import (
    COST_SCALE,
    DRAWN,
    NOT_FINITE,
    NOTHING_SAFE,
    PREFERRED,
    TOO_LITTLE,
    WARMING,
    ceiling_of,
    has,
    safe_cost,
    threshold_of,
    weigh,
)
from stagewise.kernels.rules.pair import best_pair
from stagewise.kernels.rules.simplex import best_mixture
from stagewise.kernels.rules.tie import tie_floor


@kernel
def fill_odds(layout: Ints, settings: Floats, bounds: Floats, factors: Floats, rule: Floats) -> None:
    """Write hoped = r̂ + h_r + max_j factor_j h_j and dearest, cheapest = ĉ ± α_c h for every action, the safe one last.

    Costs are clipped at their ceiling. The bonus is not: optimism rests on it (docs/explanation/errata.md).
    """
    m, safe, scale, hoped = layout[LIMITS], bounds.shape[2] - 1, settings[COST_SCALE], rule[HOPED]
    for action in range(safe + 1):
        hoped[action] = 0.0
    for j in range(m):
        ceiling, factor, centre, half = (
            ceiling_of(layout, settings, j),
            factors[j],
            bounds[1 + j, CENTRE],
            bounds[1 + j, HALF],
        )
        dearest, cheapest = rule[COSTS + j], rule[COSTS + m + j]
        for action in range(safe + 1):
            hoped[action] = max(hoped[action], factor * half[action])
            dearest[action] = min(centre[action] + scale * half[action], ceiling)
        if has(layout, DIRECTIONAL):
            for action in range(safe + 1):
                cheapest[action] = centre[action] - scale * half[action]
        dearest[safe] = safe_cost(layout, settings, bounds, j)
        cheapest[safe] = centre[safe] - scale * half[safe]
    centre, half = bounds[0, CENTRE], bounds[0, HALF]
    for action in range(safe + 1):
        hoped[action] += centre[action] + half[action]
    if layout[HOME] >= 0:
        hoped[layout[HOME]] = -math.inf  # it stands beside the list, as every safe action does


@kernel
def solve(rule: Floats, costs: int, limits: Floats, basis: Floats | None, shares: Floats, places: Ints) -> None:
    """Maximise Σ p_i hoped_i subject to Σ p_i cost_ji ≤ limit_j; the costs are rows of the rule, from row `costs` on.

    The safe action's column is taken out of the list for as long, since it stands beside it. No `basis`: there is one
    limit, for which two actions are the answer, and no simplex need be compiled.
    """
    hoped, safe = rule[HOPED], rule.shape[1] - 1
    safe_hoped = hoped[safe]
    hoped[safe] = -math.inf
    places[:] = -1
    shares[:] = 0.0
    if basis is None:
        pair = best_pair(hoped, rule[costs], safe_hoped, rule[costs, safe], limits[0])
        places[0], places[1] = pair.cheap, pair.dear
        shares[0], shares[1] = 1.0 - pair.share, pair.share
    else:
        m = limits.size
        start, table = basis[:m], basis[m:].reshape(m + 3, m + 1)
        for j in range(m):
            start[j] = rule[costs + j, safe]
        best_mixture(
            hoped, rule[costs : costs + m], safe_hoped, start, limits, places[: m + 1], shares[: m + 1], table,
            rule[PLAUSIBLE],
        )  # fmt: skip
    hoped[safe] = safe_hoped


@kernel
def mean_of(row: Floats, shares: Floats, places: Ints) -> float:
    """Return Σ_i p_i value_i over the mixture, in its order; the safe action's value is the last."""
    total = 0.0
    for place in range(shares.size):
        if shares[place] != 0.0:
            total += shares[place] * (row[row.size - 1] if places[place] < 0 else row[places[place]])
    return total


@kernel
def mix_back(m: int, rule: Floats, limits: Floats, shares: Floats, places: Ints) -> None:
    """Move as little weight to the safe action as makes the mixture safe: η = min_j (τ_j − c₀_j)/(C_j − c₀_j)."""
    weight, safe = 1.0, rule.shape[1] - 1
    for j in range(m):
        start = rule[COSTS + j, safe]
        rise, slack = mean_of(rule[COSTS + j], shares, places) - start, limits[j] - start
        if rise > slack:
            weight = min(weight, slack / rise)
    if weight < 1.0:
        for place in range(shares.size):
            shares[place] *= weight
        last = shares.size - 1
        places[last] = -1
        shares[last] += 1.0 - weight


@kernel
def drawn(shares: Floats, places: Ints, lottery: float) -> int:
    """Return the action that a uniform number in (0, 1) picks from the mixture."""
    passed, action = 0.0, -1
    for place in range(shares.size):
        if shares[place] > 0.0:
            passed += shares[place]
            action = places[place]
            if lottery < passed:
                return action
    return action


@kernel
def stay(shares: Floats, places: Ints) -> None:
    """Put the whole weight on the safe action."""
    places[:] = -1
    shares[:] = 0.0
    shares[0] = 1.0


@kernel
def choose_mixture(
    layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, dispute: int, rule: Floats, factors: Floats,
    basis: Floats | None, shares: Floats, places: Ints, lottery: float, answer: Floats,
) -> int:  # fmt: skip
    """Return the action drawn from the best safe mixture, or minus the reason for the safe action alone.

    Maximise E hoped subject to E dearest ≤ τ. Directional: subject to E cheapest ≤ τ, then mixed back to the safe
    action until E dearest ≤ τ (docs/theory/tractable-oplb.md). An empty `eligible` means all; `dispute` is what was
    declared and is contradicted, or 0.
    """
    m = layout[LIMITS]
    certain = weigh(layout, settings, bounds, factors)
    fill_odds(layout, settings, bounds, factors, rule)
    for action in range(eligible.size):
        if not eligible[action]:
            rule[HOPED, action] = -math.inf
    code = -dispute if dispute > 0 else (0 if certain else -WARMING)
    if code == 0:
        code = fill_best_mixture(layout, settings, rule, basis, shares, places)
    if code < 0:
        stay(shares, places)
    else:
        code = drawn(shares, places, lottery)
        code = code if code >= 0 else -DRAWN
    answer[STEP], answer[SAFE_HOPE] = 1.0, rule[HOPED, rule.shape[1] - 1]
    answer[HOPE] = mean_of(rule[HOPED], shares, places)
    for j in range(m):
        answer[FIRST_COST + j] = mean_of(rule[COSTS + j], shares, places)
    return code


@kernel
def fill_best_mixture(
    layout: Ints, settings: Floats, rule: Floats, basis: Floats | None, shares: Floats, places: Ints
) -> int:
    """Write the best safe mixture; return 0, or minus the reason for the safe action alone."""
    m = layout[LIMITS]
    limits = settings[FIRST_TERM + m : FIRST_TERM + 2 * m]
    directional = has(layout, DIRECTIONAL)
    solve(rule, COSTS + m if directional else COSTS, limits, basis, shares, places)
    if directional and has(layout, RETURNS):
        mix_back(m, rule, limits, shares, places)
    if not math.isfinite(mean_of(rule[HOPED], shares, places)):
        return -NOT_FINITE
    for j in range(m):
        within = mean_of(rule[COSTS + j], shares, places) <= threshold_of(layout, settings, j)
        if has(layout, RETURNS) and not within:
            return -NOTHING_SAFE
    if share_beside_safe(shares, places) != 0.0:
        return 0
    return -TOO_LITTLE if outdone(rule[HOPED]) else -PREFERRED


@kernel
def share_beside_safe(shares: Floats, places: Ints) -> float:
    """Return the share of everything but the safe action."""
    total = 0.0
    for place in range(shares.size):
        if places[place] >= 0:
            total += shares[place]
    return total


@kernel
def outdone(hoped: Floats) -> bool:
    """Say whether a listed action promises more than the safe one, ties apart.

    Beside a slack above 0 some share of it would then be safe, and better: the safe action alone is never optimal.
    """
    largest = -math.inf
    for action in range(hoped.size - 1):
        largest = max(largest, hoped[action])
    return tie_floor(largest) > hoped[hoped.size - 1]
