"""Rules of a guard: somebody else's proposal, or scores, under the limits (docs/theory/guard.md).

Rule F, a proposal q over the actions. With upper bounds u of the costs and the safe action 0 let

    g = min(1, min_j (τ_j − u_j(0)) / (Σ_{a≠0} q_a (u_j(a) − u_j(0)))₊)        the share at which all of q fits

    maximise    Σ_{a≠0} π_a
    subject to  φ g q_a ≤ π_a ≤ q_a                                    a ≠ 0, φ = 0.3
                Σ_{a≠0} π_a (u_j(a) − u_j(0)) ≤ τ_j − u_j(0)           for every limit j;        the rest to 0

g q is feasible, so at least the share g of the proposal is played. The floor keeps every proposed action in play, so
that its bound can fall. One limit is a knapsack, filled from the lowest cost on; several are a linear program, solved
by a simplex with bounded variables that starts at the floor, so that whatever it reaches is feasible.

Rule S, scores f of the actions: the certified mixture of `rules.certified` with a reward that is given, r⁺ = r⁻ = f.

The caller gives q or f as the last column of the features.
"""

import math
from typing import NamedTuple

from stagewise.engine.compile import INDEX_TYPE, Flags, Floats, Ints, called, kernel
from stagewise.engine.layout import LIMITS, SAFE_INDEX
from stagewise.engine.model import EVERY, Rule
from stagewise.engine.random import POLICY, uniform
from stagewise.engine.workspace import (
    BOUNDS_NOT_FINITE,
    CENTRE,
    COSTS,
    ESTIMATE,
    FIRST_COST,
    HALF,
    OPTIMISTIC_REWARD,
    OPTIMISTIC_REWARDS,
    PLAUSIBLE,
    PROPOSAL_NOT_CERTIFIED,
    SAFE_ACTION_COST_UNCERTAIN,
    SAFE_ACTION_DRAWN,
    SAFE_OPTIMISTIC_REWARD,
    SAMPLED,
    STEP,
    WEIGHTS,
    compute_bonus_factors,
    compute_weighted_mean,
    get_decision_views,
    get_limit,
    get_threshold,
)
from stagewise.rules.certified import compute_highest_reward, fill_costs, mask_ineligible, play_certified_mixture
from stagewise.rules.mixture import set_safe_mixture, write_action

FLOOR = 0.3  # φ: the least part of the common share that every proposed action keeps
AT_FLOOR, AT_PROPOSAL, BASIC = 0.0, 1.0, 2.0  # where an action stands in the linear program
TOLERANCE = 1e-12
MAX_PIVOTS = 10_000


@kernel
def compute_rise(rule: Floats, constraint: int, action: int) -> float:
    """Return u_j(a) − u_j(0)."""
    costs = rule[COSTS + constraint]
    return costs[action] - costs[costs.size - 1]


@kernel
def compute_common_share(layout: Ints, settings: Floats, proposal: Floats, rule: Floats) -> float:
    """Return g, the largest share at which all of the proposal is within the limits."""
    share = 1.0
    for j in range(layout[LIMITS]):
        slack, rise = get_limit(layout, settings, j) - rule[COSTS + j, rule.shape[1] - 1], 0.0
        for action in range(proposal.size):
            if proposal[action] > 0.0:
                rise += proposal[action] * compute_rise(rule, j, action)
        if rise > slack:
            share = min(share, slack / rise)
    return share


@kernel
def fill_knapsack(proposal: Floats, share: float, slack: float, rule: Floats) -> None:
    """Write the floor of every proposed action, then fill them up in order of their cost, the lowest first."""
    weights, costs, left = rule[WEIGHTS], rule[COSTS], slack
    for action in range(proposal.size):
        weights[action] = 0.0
        if proposal[action] > 0.0:
            rise = compute_rise(rule, 0, action)
            weights[action] = proposal[action] if rise <= 0.0 else FLOOR * share * proposal[action]
            left -= weights[action] * rise
    last_cost, last = -math.inf, -1
    while left > 0.0:
        best = -1
        for action in range(proposal.size):
            is_after = costs[action] > last_cost or (costs[action] == last_cost and action > last)
            if is_after and weights[action] < proposal[action] and (best < 0 or costs[action] < costs[best]):
                best = action
        if best < 0:
            return
        rise, missing = compute_rise(rule, 0, best), proposal[best] - weights[best]
        if missing * rise <= left:
            weights[best] = proposal[best]
            left -= missing * rise
        else:
            weights[best] += left / rise
            return
        last_cost, last = costs[best], best


class Tableau(NamedTuple):
    """The basis of the linear program: variables, inverse, values, prices and direction, as views of one array.

    A variable is an action, or ~j for the slack of limit j. Rows are in units of each limit's slack at the safe action.
    """

    support: Ints  # (m,)
    inverse: Floats  # (m, m)
    values: Floats  # (m,) of the basic variables
    prices: Floats  # (m,)
    direction: Floats  # (m,)


@kernel
def get_tableau(m: int, basis: Floats) -> Tableau:
    """Split the scratch `basis` into the parts of the tableau."""
    return Tableau(
        basis[:m].view(INDEX_TYPE),
        basis[m : m + m * m].reshape(m, m),
        basis[m + m * m : 2 * m + m * m],
        basis[2 * m + m * m : 3 * m + m * m],
        basis[3 * m + m * m : 4 * m + m * m],
    )


@kernel
def get_row(layout: Ints, settings: Floats, rule: Floats, constraint: int, variable: int) -> float:
    """Return the coefficient of a variable in the row of a limit."""
    if variable < 0:
        return 1.0 if ~variable == constraint else 0.0
    slack = get_limit(layout, settings, constraint) - rule[COSTS + constraint, rule.shape[1] - 1]
    return compute_rise(rule, constraint, variable) / slack


@kernel
def get_range(proposal: Floats, share: float, variable: int) -> float:
    """Return how far a variable may rise: an action from its floor to its proposal, a slack without end."""
    return math.inf if variable < 0 else (1.0 - FLOOR * share) * proposal[variable]


@kernel
def choose_entering(
    layout: Ints, settings: Floats, proposal: Floats, rule: Floats, tableau: Tableau, is_first: bool
) -> int:
    """Return the variable that gains most, or the first that gains; the number of actions: none does."""
    m, best, most = layout[LIMITS], proposal.size, TOLERANCE
    for variable in range(-m, proposal.size):
        is_basic = False
        for position in range(m):
            is_basic |= bool(tableau.support[position] == variable)
        if is_basic or (variable >= 0 and proposal[variable] <= 0.0):
            continue
        gain = 1.0 if variable >= 0 else 0.0
        for j in range(m):
            gain -= tableau.prices[j] * get_row(layout, settings, rule, j, variable)
        if variable >= 0 and rule[PLAUSIBLE, variable] == AT_PROPOSAL:
            gain = -gain
        if gain > most:
            best = variable
            if is_first:
                return best
            most = gain
    return best


@called
def fill_program(layout: Ints, settings: Floats, proposal: Floats, share: float, rule: Floats, basis: Floats) -> None:
    """Write the weights that maximise Σ π_a under all limits, by a simplex with bounded variables from the floor.

    Bland's rule takes over where the steepest entering variable has not finished, so it ends.
    """
    m, weights, standing = layout[LIMITS], rule[WEIGHTS], rule[PLAUSIBLE]
    tableau = get_tableau(m, basis)
    for action in range(proposal.size):
        weights[action], standing[action] = FLOOR * share * proposal[action], AT_FLOOR
    for position in range(m):
        tableau.support[position], tableau.values[position] = ~position, 1.0
        for j in range(m):
            tableau.inverse[position, j] = 1.0 if position == j else 0.0
        for action in range(proposal.size):
            if weights[action] > 0.0:
                tableau.values[position] -= weights[action] * get_row(layout, settings, rule, position, action)
    for pivot in range(MAX_PIVOTS):
        for j in range(m):
            tableau.prices[j] = 0.0
            for position in range(m):
                if tableau.support[position] >= 0:
                    tableau.prices[j] += tableau.inverse[position, j]
        entering = choose_entering(layout, settings, proposal, rule, tableau, pivot > 2 * (m + proposal.size))
        if entering == proposal.size or not enter(layout, settings, proposal, share, rule, tableau, entering):
            break
    for action in range(proposal.size):
        if standing[action] == AT_PROPOSAL:
            weights[action] = proposal[action]
    for position in range(m):
        if tableau.support[position] >= 0:
            action = tableau.support[position]
            weights[action] = min(max(weights[action] + tableau.values[position], weights[action]), proposal[action])


@kernel
def enter(
    layout: Ints, settings: Floats, proposal: Floats, share: float, rule: Floats, tableau: Tableau, entering: int
) -> bool:
    """Move a variable as far as every basic one stays within its range; where one reaches an end, they change places.

    Return whether there is such an end; only rounding can hide it.
    """
    m, standing = layout[LIMITS], rule[PLAUSIBLE]
    sign = -1.0 if entering >= 0 and standing[entering] == AT_PROPOSAL else 1.0
    step, leaving = get_range(proposal, share, entering), -1
    for position in range(m):
        fall = 0.0
        for j in range(m):
            fall += tableau.inverse[position, j] * get_row(layout, settings, rule, j, entering)
        tableau.direction[position] = sign * fall
        length = math.inf
        if sign * fall > TOLERANCE:
            length = max(tableau.values[position], 0.0) / (sign * fall)
        elif sign * fall < -TOLERANCE:
            room = get_range(proposal, share, tableau.support[position]) - tableau.values[position]
            length = max(room, 0.0) / (-sign * fall)
        if length < step or (length == step and leaving >= 0 and tableau.support[position] < tableau.support[leaving]):
            step, leaving = length, position
    if step == math.inf:
        return False
    for position in range(m):
        tableau.values[position] -= step * tableau.direction[position]
    if leaving < 0:
        standing[entering] = AT_FLOOR if sign < 0.0 else AT_PROPOSAL
        return True
    left, rate = tableau.support[leaving], sign * tableau.direction[leaving]
    if left >= 0:
        standing[left] = AT_FLOOR if tableau.direction[leaving] > 0.0 else AT_PROPOSAL
    for j in range(m):
        tableau.inverse[leaving, j] /= rate
    for position in range(m):
        if position != leaving:
            factor = sign * tableau.direction[position]
            for j in range(m):
                tableau.inverse[position, j] -= factor * tableau.inverse[leaving, j]
    tableau.values[leaving] = step if sign > 0.0 else get_range(proposal, share, entering) - step
    tableau.support[leaving] = entering
    if entering >= 0:
        standing[entering] = BASIC
    return True


@kernel
def scale_within_limits(layout: Ints, settings: Floats, rule: Floats, count: int) -> float:
    """Scale the weights down by what rounding put them over a limit; return their sum."""
    weights, factor, total = rule[WEIGHTS], 1.0, 0.0
    for j in range(layout[LIMITS]):
        slack, rise = get_limit(layout, settings, j) - rule[COSTS + j, rule.shape[1] - 1], 0.0
        for action in range(count):
            if weights[action] > 0.0:
                rise += weights[action] * compute_rise(rule, j, action)
        if rise > slack:
            factor = min(factor, slack / rise)
    for action in range(count):
        weights[action] *= factor
        total += weights[action]
    return total


@kernel
def fill_guarded_weights(layout: Ints, settings: Floats, proposal: Floats, rule: Floats, basis: Floats | None) -> int:
    """Write the weights (K + 1,) of rule F, the safe action's last; return 0, or minus the reason code."""
    weights, safe, asked = rule[WEIGHTS], rule.shape[1] - 1, 0.0
    for action in range(proposal.size):
        asked += proposal[action]
    share = compute_common_share(layout, settings, proposal, rule)
    if share >= 1.0:
        for action in range(proposal.size):
            weights[action] = proposal[action]
    elif basis is None:
        slack = get_limit(layout, settings, 0) - rule[COSTS, safe]
        fill_knapsack(proposal, share, slack, rule)
    else:
        fill_program(layout, settings, proposal, share, rule, basis)
    total = scale_within_limits(layout, settings, rule, proposal.size)
    weights[safe] = max(1.0 - total, 0.0)
    if asked > 0.0 and not total > 0.0:
        return -PROPOSAL_NOT_CERTIFIED
    for j in range(layout[LIMITS]):
        if not compute_weighted_mean(rule[COSTS + j], weights) <= get_threshold(layout, settings, j):
            return -PROPOSAL_NOT_CERTIFIED
    return 0


@kernel
def fill_proposal(features: Floats, eligible: Flags, layout: Ints, proposal: Floats) -> None:
    """Write the proposal (K,) of the last column, without the safe action and without ineligible actions."""
    last = features.shape[1] - 1
    for action in range(proposal.size):
        proposal[action] = features[action, last] if eligible.size == 0 or eligible[action] else 0.0
    if layout[SAFE_INDEX] >= 0:
        proposal[layout[SAFE_INDEX]] = 0.0


@kernel
def is_finite(layout: Ints, rule: Floats, proposal: Floats) -> bool:
    """Return whether the upper bounds of everything proposed, and of the safe action, are finite."""
    finite = True
    for j in range(layout[LIMITS]):
        costs = rule[COSTS + j]
        finite &= math.isfinite(costs[costs.size - 1])
        for action in range(proposal.size):
            finite &= math.isfinite(costs[action]) or proposal[action] == 0.0
    return finite


@kernel
def draw_from_weights(weights: Floats, uniform_draw: float) -> int:
    """Return the action that a uniform number in (0, 1) picks; minus a code for the safe action, which is last."""
    cumulative, drawn = 0.0, -SAFE_ACTION_DRAWN
    for action in range(weights.size - 1):
        if weights[action] > 0.0:
            cumulative += weights[action]
            drawn = action
            if uniform_draw < cumulative:
                return drawn
    return drawn if weights[weights.size - 1] == 0.0 else -SAFE_ACTION_DRAWN


@kernel
def play_proposal(
    features: Floats, eligible: Flags, contradiction: int, layout: Ints, settings: Floats, bounds: Floats, rule: Floats,
    factors: Floats, basis: Floats | None, answer: Floats, seed: int, run: int, round_: int,
) -> int:  # fmt: skip
    """Return the action that is drawn from the guarded proposal, or minus the reason code of the safe action."""
    weights, safe, views = rule[WEIGHTS], rule.shape[1] - 1, get_decision_views(layout, answer)
    certain = compute_bonus_factors(layout, settings, bounds, factors)
    fill_costs(layout, settings, bounds, COSTS, 1.0, rule)
    for action in range(rule.shape[1]):
        rule[OPTIMISTIC_REWARDS, action] = compute_highest_reward(settings, bounds, action)
    mask_ineligible(layout, eligible, rule[OPTIMISTIC_REWARDS])
    proposal = rule[COSTS + layout[LIMITS]][:safe]  # no optimistic costs are needed
    fill_proposal(features, eligible, layout, proposal)
    code = 0 if certain else -SAFE_ACTION_COST_UNCERTAIN
    code = -contradiction if contradiction > 0 else code
    if code == 0 and not is_finite(layout, rule, proposal):
        code = -BOUNDS_NOT_FINITE
    if code == 0:
        code = fill_guarded_weights(layout, settings, proposal, rule, basis)
    if code < 0:
        weights[:] = 0.0
        weights[safe] = 1.0
    else:
        code = draw_from_weights(weights, uniform(seed, run, round_, POLICY, 0))
    set_safe_mixture(views.shares, views.places)  # the mixture is in the rows of the rule
    answer[STEP], answer[SAFE_OPTIMISTIC_REWARD] = 1.0, rule[OPTIMISTIC_REWARDS, safe]
    answer[OPTIMISTIC_REWARD] = compute_weighted_mean(rule[OPTIMISTIC_REWARDS], weights)
    for j in range(layout[LIMITS]):
        answer[FIRST_COST + j] = compute_weighted_mean(rule[COSTS + j], weights)
    write_action(code, features, layout, settings, views.action)
    return code


@kernel
def play_scores(
    features: Floats, eligible: Flags, contradiction: int, layout: Ints, settings: Floats, bounds: Floats, rule: Floats,
    factors: Floats, basis: Floats | None, answer: Floats, seed: int, run: int, round_: int,
) -> int:  # fmt: skip
    """Return the action that is drawn from the certified mixture, with the scores as rewards that are known."""
    safe, last = bounds.shape[2] - 1, features.shape[1] - 1
    for action in range(safe + 1):
        score = features[action if action < safe else layout[SAFE_INDEX], last]
        bounds[0, CENTRE, action], bounds[0, HALF, action] = score, 0.0
        bounds[0, SAMPLED, action], bounds[0, ESTIMATE, action] = score, score
    return play_certified_mixture(
        features, eligible, contradiction, layout, settings, bounds, rule, factors, basis, answer, seed, run, round_
    )


PROPOSAL = Rule("stagewise.rules.guard:PROPOSAL", play_proposal, mixes=1, given=1, dense=1)
SCORES = Rule("stagewise.rules.guard:SCORES", play_scores, mixes=1, samples=EVERY, given=1)
