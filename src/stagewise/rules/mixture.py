"""Safe mixtures: the best under pessimistic costs, or the optimistic one mixed back until it is safe."""

import math

from stagewise.engine.compile import Flags, Floats, Ints, kernel
from stagewise.engine.layout import DIRECTIONAL, ENFORCES_LIMITS, FIRST_THRESHOLD, LIMITS, SAFE_INDEX, get_safe_action
from stagewise.engine.limits import (
    BOUNDS_NOT_FINITE,
    COST_SCALE,
    NO_BETTER_ACTION,
    NO_CERTIFIED_ACTION,
    SAFE_ACTION_COST_UNCERTAIN,
    SAFE_ACTION_DRAWN,
    SAFE_SHARE_TOO_SMALL,
    compute_bonus_factors,
    compute_safe_cost,
    get_ceiling,
    get_threshold,
    has_switch,
)
from stagewise.engine.mixture_program import compute_mixture_mean, solve_mixture
from stagewise.engine.model import Kernel, Rule
from stagewise.engine.pair import tie_floor
from stagewise.engine.random import POLICY, uniform
from stagewise.engine.workspace import (
    CENTRE,
    COSTS,
    FIRST_COST,
    HALF,
    OPTIMISTIC_REWARD,
    OPTIMISTIC_REWARDS,
    SAFE_OPTIMISTIC_REWARD,
    STEP,
    get_decision_views,
)


@kernel
def fill_rule_rows(layout: Ints, settings: Floats, bounds: Floats, factors: Floats, rule: Floats) -> None:
    """Write optimistic rewards r̂ + h_r + max_j factor_j h_j and costs ĉ ± α_c h of every action, the safe one last.

    Costs are clipped at their ceiling. The bonus is not: optimism needs it (docs/explanation/errata.md).
    """
    m, safe, scale, optimistic = layout[LIMITS], bounds.shape[2] - 1, settings[COST_SCALE], rule[OPTIMISTIC_REWARDS]
    for action in range(safe + 1):
        optimistic[action] = 0.0
    for j in range(m):
        ceiling, factor, centre = get_ceiling(layout, settings, j), factors[j], bounds[1 + j, CENTRE]
        half = bounds[1 + j, HALF]
        pessimistic_costs, optimistic_costs = rule[COSTS + j], rule[COSTS + m + j]
        for action in range(safe + 1):
            optimistic[action] = max(optimistic[action], factor * half[action])
            pessimistic_costs[action] = min(centre[action] + scale * half[action], ceiling)
        if has_switch(layout, DIRECTIONAL):
            for action in range(safe + 1):
                optimistic_costs[action] = centre[action] - scale * half[action]
        pessimistic_costs[safe] = compute_safe_cost(layout, settings, bounds, j)
        optimistic_costs[safe] = centre[safe] - scale * half[safe]
    centre, half = bounds[0, CENTRE], bounds[0, HALF]
    for action in range(safe + 1):
        optimistic[action] += centre[action] + half[action]
    if layout[SAFE_INDEX] >= 0:
        optimistic[layout[SAFE_INDEX]] = -math.inf  # the safe action is a separate column


@kernel
def mix_back(m: int, rule: Floats, limits: Floats, shares: Floats, indices: Ints) -> None:
    """Move the least weight to the safe action that makes the mixture safe: η = min_j (τ_j − c₀_j)/(C_j − c₀_j)."""
    weight, safe = 1.0, rule.shape[1] - 1
    for j in range(m):
        start = rule[COSTS + j, safe]
        rise, slack = compute_mixture_mean(rule[COSTS + j], shares, indices) - start, limits[j] - start
        if rise > slack:
            weight = min(weight, slack / rise)
    if weight < 1.0:
        for position in range(shares.size):
            shares[position] *= weight
        last = shares.size - 1
        indices[last] = -1
        shares[last] += 1.0 - weight


@kernel
def draw_from_mixture(shares: Floats, indices: Ints, uniform_draw: float) -> int:
    """Return the action that a uniform number in (0, 1) picks from the mixture."""
    cumulative, action = 0.0, -1
    for position in range(shares.size):
        if shares[position] > 0.0:
            cumulative += shares[position]
            action = indices[position]
            if uniform_draw < cumulative:
                return action
    return action


@kernel
def set_safe_mixture(shares: Floats, indices: Ints) -> None:
    """Put the whole weight on the safe action."""
    indices[:] = -1
    shares[:] = 0.0
    shares[0] = 1.0


@kernel
def choose_mixture(
    layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, contradiction: int, rule: Floats, factors: Floats,
    basis: Floats | None, shares: Floats, indices: Ints, uniform_draw: float, answer: Floats,
) -> int:  # fmt: skip
    """Return the action drawn from the best safe mixture, or minus the reason code of the safe action.

    Maximise the expected optimistic reward subject to expected pessimistic costs ≤ τ. Directional: subject to expected
    optimistic costs ≤ τ, then mixed back to the safe action until the pessimistic costs are ≤ τ
    (docs/theory/tractable-oplb.md). An empty `eligible` means all; `contradiction` is a contradiction code, or 0.
    """
    m = layout[LIMITS]
    certain = compute_bonus_factors(layout, settings, bounds, factors)
    fill_rule_rows(layout, settings, bounds, factors, rule)
    for action in range(eligible.size):
        if not eligible[action]:
            rule[OPTIMISTIC_REWARDS, action] = -math.inf
    code = -contradiction if contradiction > 0 else (0 if certain else -SAFE_ACTION_COST_UNCERTAIN)
    if code == 0:
        code = fill_best_mixture(layout, settings, rule, basis, shares, indices)
    if code < 0:
        set_safe_mixture(shares, indices)
    else:
        code = draw_from_mixture(shares, indices, uniform_draw)
        code = code if code >= 0 else -SAFE_ACTION_DRAWN
    answer[STEP], answer[SAFE_OPTIMISTIC_REWARD] = 1.0, rule[OPTIMISTIC_REWARDS, rule.shape[1] - 1]
    answer[OPTIMISTIC_REWARD] = compute_mixture_mean(rule[OPTIMISTIC_REWARDS], shares, indices)
    for j in range(m):
        answer[FIRST_COST + j] = compute_mixture_mean(rule[COSTS + j], shares, indices)
    return code


@kernel
def fill_best_mixture(
    layout: Ints, settings: Floats, rule: Floats, basis: Floats | None, shares: Floats, indices: Ints
) -> int:
    """Write the best safe mixture; return 0, or minus the reason code of the safe action."""
    m = layout[LIMITS]
    limits = settings[FIRST_THRESHOLD + m : FIRST_THRESHOLD + 2 * m]
    directional = has_switch(layout, DIRECTIONAL)
    solve_mixture(rule, COSTS + m if directional else COSTS, limits, basis, shares, indices)
    if directional and has_switch(layout, ENFORCES_LIMITS):
        mix_back(m, rule, limits, shares, indices)
    if not math.isfinite(compute_mixture_mean(rule[OPTIMISTIC_REWARDS], shares, indices)):
        return -BOUNDS_NOT_FINITE
    for j in range(m):
        within = compute_mixture_mean(rule[COSTS + j], shares, indices) <= get_threshold(layout, settings, j)
        if has_switch(layout, ENFORCES_LIMITS) and not within:
            return -NO_CERTIFIED_ACTION
    if compute_unsafe_share(shares, indices) != 0.0:
        return 0
    return -SAFE_SHARE_TOO_SMALL if has_better_action(rule[OPTIMISTIC_REWARDS]) else -NO_BETTER_ACTION


@kernel
def compute_unsafe_share(shares: Floats, indices: Ints) -> float:
    """Return the total share of all actions but the safe one."""
    total = 0.0
    for position in range(shares.size):
        if indices[position] >= 0:
            total += shares[position]
    return total


@kernel
def has_better_action(optimistic_reward: Floats) -> bool:
    """Return whether a listed action has a larger optimistic reward than the safe one, beyond ties.

    With a positive slack some share of it would then be safe and better, so the safe action alone is never optimal.
    """
    largest = -math.inf
    for action in range(optimistic_reward.size - 1):
        largest = max(largest, optimistic_reward[action])
    return tie_floor(largest) > optimistic_reward[optimistic_reward.size - 1]


@kernel
def write_action(code: int, features: Floats, layout: Ints, settings: Floats, action: Floats) -> None:
    """Write the features of what is played; a listed safe action has a row."""
    safe, row = get_safe_action(layout, settings).features, code if code >= 0 else layout[SAFE_INDEX]
    for i in range(action.size):
        action[i] = features[row, i] if row >= 0 else safe[i]


def build_mixture_player(choose: Kernel) -> Kernel:

    @kernel
    def play_mixture(
        features: Floats, eligible: Flags, contradiction: int, layout: Ints, settings: Floats, bounds: Floats,
        rule: Floats, factors: Floats, basis: Floats | None, answer: Floats, seed: int, run: int, round_: int,
    ) -> int:  # fmt: skip
        """Return the candidate that is drawn from the mixture, or minus the reason code of the safe action."""
        views, uniform_draw = get_decision_views(layout, answer), uniform(seed, run, round_, POLICY, 0)
        code = choose(
            layout, settings, bounds, eligible, contradiction, rule, factors, basis, views.shares, views.places,
            uniform_draw, answer,
        )  # fmt: skip
        write_action(code, features, layout, settings, views.action)
        return code

    return play_mixture


MIXTURE = Rule("stagewise.rules.mixture:MIXTURE", build_mixture_player(choose_mixture), mixes=1)
