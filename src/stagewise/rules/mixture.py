"""Safe mixtures: the best under pessimistic costs, under every plausible function, or mixed back until it is safe.

The best mixture when costs are bounded per function: a linear program with a row for every function.

Measured from the safe action, in units of each row's slack, all rows have the same form:

    Σ_i p_i a_ki ≤ 1,    a_ki = (f_k(x_i) − f_k(x₀)) / (limit_k − f_k(x₀)),    Σ_i p_i ≤ 1,    p ≥ 0

The share of the safe action is 1 less the sum; it alone is feasible.
"""

import math
from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Flags, Floats, Ints, as_python, kernel
from stagewise.engine.layout import DIRECTIONAL, ENFORCES_LIMITS, FIRST_THRESHOLD, LIMITS, SAFE_INDEX, get_safe_action
from stagewise.engine.mixture_program import compute_mixture_mean, solve_mixture
from stagewise.engine.model import Kernel, Rule
from stagewise.engine.pair import tie_floor
from stagewise.engine.random import POLICY, uniform
from stagewise.engine.simplex import OPTIMAL, find_best_mixture, get_limit_price, scratch_shape
from stagewise.engine.workspace import (
    BOUNDS_NOT_FINITE,
    CENTRE,
    COST_SCALE,
    COSTS,
    FIRST_COST,
    HALF,
    NO_BETTER_ACTION,
    NO_CERTIFIED_ACTION,
    OPTIMISTIC_REWARD,
    OPTIMISTIC_REWARDS,
    SAFE_ACTION_COST_UNCERTAIN,
    SAFE_ACTION_DRAWN,
    SAFE_OPTIMISTIC_REWARD,
    SAFE_SHARE_TOO_SMALL,
    STEP,
    compute_bonus_factors,
    compute_safe_cost,
    get_ceiling,
    get_decision_views,
    get_threshold,
    has_switch,
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


GET_LIMIT_PRICE = as_python(get_limit_price)
SHARE_TOLERANCE = 1e-12  # smaller shares are rounding


class Vertex(NamedTuple):
    """A mixture and an upper bound on the best one."""

    shares: Floats  # (n + 1,) of the listed actions, then of the safe one
    value: float
    bound: float  # upper bound on the value of any feasible mixture
    solved: bool  # False: a program failed, and the previous solution is used
    programs: int  # number of linear programs solved


def scale_rows(table: Floats, limit: float) -> Floats:
    """Return the rows (F, n) of cost functions (F, n + 1)."""
    start = table[:, -1:]
    rows: Floats = (table[:, :-1] - start) / (limit - start)
    return rows


def build_shares(listed: Floats) -> Floats:
    """Return the shares (n + 1,) of a mixture from a solver's shares (n,) of the listed actions, normalised."""
    shares = np.where(listed > SHARE_TOLERANCE, listed, 0.0)
    total = float(shares.sum())
    if total > 1.0 - SHARE_TOLERANCE:
        shares /= total
        return np.append(shares, 0.0)
    return np.append(shares, 1.0 - total)


def compute_dual_bounds(values: Floats, prices: Floats, rows: Floats) -> Floats:
    """Return an upper bound on the value of feasible mixtures, for each row of values (n + 1,), at any prices λ ≥ 0.

    values₀ + Σ_k λ_k + max(0, max_i values_i − values₀ − Σ_k λ_k a_ki)        (weak duality)
    """
    table = np.atleast_2d(values)
    gains = table[:, :-1] - table[:, -1:] - prices @ rows
    bounds: Floats = table[:, -1] + prices.sum() + np.maximum(0.0, gains.max(axis=1, initial=0.0))
    return bounds


def find_best_under_rows(values: Floats, tables: tuple[Floats, ...], limits: Floats) -> Vertex:
    """Maximise E_p values subject to E_p f ≤ limit_j for every cost function f of every table j; the safe action last.

    `values` is (n + 1,), a table (F, n + 1). The safe action must be strictly within every limit. Few rows are ever
    tight: the compiled simplex solves with some, and the most violated row is added until none is violated.
    """
    rows = np.concatenate([scale_rows(table, limit) for table, limit in zip(tables, limits, strict=True)])
    active = [int(np.argmax(rows[:, np.argmax(values[:-1])]))]
    while True:
        columns, prices, solved = solve_under_rows(rows[active], values)
        costs = rows @ columns
        worst = int(np.argmax(costs))
        if not costs[worst] > 1.0 or worst in active:
            break
        active.append(worst)
    shares = mix_back_to_safe(build_shares(columns), tables, limits)
    bound = float(compute_dual_bounds(values, prices, rows[active])[0])
    return Vertex(shares, float(values @ shares), bound, solved and bool(np.isfinite(bound)), len(active))


def solve_under_rows(rows: Floats, values: Floats) -> tuple[Floats, Floats, bool]:
    """Maximise Σ p_i value_i over mixtures that a few rows (R, n) allow, by the compiled simplex.

    Return the shares of the listed actions (n,), the prices of the rows (R,), and whether it was solved.
    """
    count = len(rows)
    support, shares = np.empty(count + 1, dtype=np.int64), np.empty(count + 1)
    basis, gains = np.zeros(scratch_shape(count)), np.empty(values.size - 1)
    start, ends = np.zeros(count), np.ones(count)
    status = find_best_mixture(values[:-1].copy(), rows, float(values[-1]), start, ends, support, shares, basis, gains)
    columns, prices = np.zeros(values.size), np.array([GET_LIMIT_PRICE(basis, row) for row in range(count)])
    np.add.at(columns, support, shares)  # −1, the safe action, is the last
    return columns[:-1], np.maximum(prices, 0.0), bool(status == OPTIMAL)


def mix_back_to_safe(shares: Floats, tables: tuple[Floats, ...], limits: Floats) -> Floats:
    """Return the mixture with the least weight moved to the safe action, last, that satisfies every cost function.

        η = min_f (limit − f(x₀)) / (E f − f(x₀)) over the functions with E f > limit

    and a little more to compensate rounding, so that `compute_pessimistic_costs` is at most the limits to the bit.
    """
    result, guard = shares, 0.0
    while not np.all(compute_pessimistic_costs(result, tables) <= limits):
        if guard > 1.0:
            return np.append(np.zeros(shares.size - 1), 1.0)
        weight = min(compute_kept_weight(result, table, limit) for table, limit in zip(tables, limits, strict=True))
        result = max(0.0, weight - guard) * result
        result[-1] += 1.0 - float(result.sum())
        guard = 2.0 * guard + 2.0**-52
    return result


def compute_kept_weight(shares: Floats, table: Floats, limit: float) -> float:
    """Return the largest η in [0, 1] for which η shares + (1 − η) safe action costs at most the limit."""
    start, costs = table[:, -1], table @ shares
    over = costs > limit
    return float(np.min((limit - start[over]) / (costs[over] - start[over]), initial=1.0))


def compute_pessimistic_costs(shares: Floats, tables: tuple[Floats, ...]) -> Floats:
    """Return the largest expected cost (m,) of a mixture over the functions of each table."""
    return np.array([float(np.max(table @ shares)) for table in tables])
