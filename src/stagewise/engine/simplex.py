"""The best mixture under several limits: a revised simplex that starts at the safe action.

Measured from the safe action, in units of each limit's slack, all rows of the program have the same form:

    Σ_i p_i a_ki ≤ 1,    a_0i = 1,    a_ki = (cost_ki − safe_k) / (limit_k − safe_k)  for k = 1..m

The slack of row 0 is the share of the safe action. So the first basis is the identity, the basic variables' values are
the row sums of the inverse, and the value above the safe action is the sum of the prices. A variable is a listed action
i ≥ 0, or ~k for the slack of row k; ~0 = -1 is the safe action.
"""

import math
from typing import NamedTuple

from stagewise.engine.compile import Floats, Ints, called, kernel
from stagewise.engine.pair import ROUNDING, SAFE, TIE, first_best, get_value, tie_floor

PIVOT = 1e-10


class Program(NamedTuple):
    """Maximise Σ p_i reward_i subject to Σ p_i cost_ji ≤ limit_j."""

    reward: Floats
    cost: Floats
    safe_reward: float
    safe_cost: Floats
    limits: Floats


class Basis(NamedTuple):
    """The variable at each position, the inverse of their columns, and the results of the current pivot."""

    support: Ints
    inverse: Floats
    prices: Floats
    direction: Floats
    noise_floor: Floats
    gains: Floats


@kernel
def is_basic(support: Ints, variable: int) -> bool:
    found = False
    for position in range(support.size):
        found |= bool(support[position] == variable)
    return found


@kernel
def sum_values(values: Floats) -> float:
    total = 0.0
    for index in range(values.size):
        total += values[index]
    return total


@kernel
def get_coefficient(program: Program, row: int, variable: int) -> float:
    """Return a_ki: the coefficient of a variable in a row."""
    if variable < 0:
        return 1.0 if row == ~variable else 0.0
    if row == 0:
        return 1.0
    above: float = program.cost[row - 1, variable] - program.safe_cost[row - 1]
    slack: float = program.limits[row - 1] - program.safe_cost[row - 1]
    return above / slack


@kernel
def compute_direction(variable: int, program: Program, basis: Basis) -> None:
    """Write the direction B⁻¹ a: the rate at which each basic variable falls as the entering one grows."""
    for position in range(basis.support.size):
        update_direction(position, variable, program, basis)


@kernel
def compute_step_to_zero(basis: Basis, position: int) -> float:
    """Return how much of the entering variable reduces a basic variable to zero; ∞ if it does not fall."""
    fall = basis.direction[position]
    return max(sum_values(basis.inverse[position]), 0.0) / fall if fall > basis.noise_floor[position] else math.inf


@kernel
def apply_pivot(basis: Basis, position: int, variable: int) -> None:
    """Replace the variable at a position: eliminate so that its direction becomes a unit vector."""
    pivot = basis.direction[position]
    for row in range(basis.support.size):
        basis.inverse[position, row] /= pivot
    for other in range(basis.support.size):
        if other != position:
            for row in range(basis.support.size):
                basis.inverse[other, row] -= basis.direction[other] * basis.inverse[position, row]
    basis.support[position] = variable


@kernel
def refactorise(program: Program, basis: Basis) -> None:
    """Recompute the inverse: from the identity, pivot the basic actions in for the slacks that left."""
    size = basis.support.size
    for position in range(size):
        for row in range(size):
            basis.inverse[position, row] = 1.0 if position == row else 0.0
    for position in range(size):
        while basis.support[position] < 0 and ~basis.support[position] != position:
            own_position = ~basis.support[position]
            basis.support[position], basis.support[own_position] = basis.support[own_position], basis.support[position]
    for position in range(size):
        if basis.support[position] >= 0:
            compute_direction(basis.support[position], program, basis)
            swap_positions(basis, position, find_steepest_position(basis, position))
            apply_pivot(basis, position, basis.support[position])


@kernel
def find_steepest_position(basis: Basis, start: int) -> int:
    """Return the position with the largest direction, from `start` on, whose action is not yet pivoted in."""
    chosen = start
    for position in range(start + 1, basis.support.size):
        if basis.support[position] >= 0 and abs(basis.direction[position]) > abs(basis.direction[chosen]):
            chosen = position
    return chosen


@kernel
def swap_positions(basis: Basis, one: int, other: int) -> None:
    """Swap two positions whose actions are not yet pivoted in."""
    inverse, direction = basis.inverse, basis.direction
    direction[one], direction[other] = direction[other], direction[one]
    for row in range(basis.support.size):
        inverse[one, row], inverse[other, row] = inverse[other, row], inverse[one, row]


@kernel
def update_direction(position: int, variable: int, program: Program, basis: Basis) -> bool:
    """Write the rate at which one basic variable falls, and return whether it does.

    A rate 10¹⁰ times smaller than its terms may be rounding, and a pivot on it would ruin the inverse.
    """
    fall, size = 0.0, 0.0
    for row in range(basis.support.size):
        coefficient = get_coefficient(program, row, variable)
        fall += basis.inverse[position, row] * coefficient
        size += abs(basis.inverse[position, row]) * max(abs(coefficient), 1.0)
    basis.direction[position], basis.noise_floor[position] = fall, PIVOT * size
    return fall > PIVOT * size


OPTIMAL, ITERATION_LIMIT = 0, 1
NO_VARIABLE = -(2**62)
MAX_PIVOTS = 10_000
REFACTOR_EVERY = 64
NOISE = 1e-12
SHARE_TOLERANCE = 1e-13


@kernel
def scratch_shape(constraints: int) -> tuple[int, int]:
    """Return the shape of the scratch `basis`; the scratch `gains` is as long as the list of actions."""
    return constraints + 3, constraints + 1


@kernel
def get_limit_price(basis: Floats, constraint: int) -> float:
    """Return the price of a limit, in units of its slack, that a solved program leaves in the scratch `basis`."""
    return basis[basis.shape[1], 1 + constraint]


@called
def find_best_mixture(
    reward: Floats,
    cost: Floats,
    safe_reward: float,
    safe_cost: Floats,
    limits: Floats,
    support: Ints,
    shares: Floats,
    basis: Floats,
    gains: Floats,
) -> int:
    """Maximise Σ p_i reward_i subject to Σ p_i cost_ji ≤ limit_j over mixtures p of K listed actions and the safe one.

    Writes the m + 1 actions of a vertex that ties with the best into `support` and their probabilities into `shares`;
    an unused position holds the safe action with share 0. Every `mixture_cost` is at most its limit, in floating point.
    A reward of −∞ is never played. Requires safe_cost < limits. `basis`, of `scratch_shape(m)`, and `gains`, as long
    as the list, are scratch.

    Returns OPTIMAL, or ITERATION_LIMIT with the safe action alone.
    """
    program = Program(reward, cost, safe_reward, safe_cost, limits)
    single = find_best_single(program)
    if single != NO_VARIABLE:
        set_single_action(single, support, shares)
        return OPTIMAL
    size = support.size
    # The shares are written last; until then their array holds the noise floors.
    working = Basis(support, basis[:size], basis[size], basis[size + 1], shares, gains)
    if run_simplex(program, working):
        displace_safe(program, working)
        if finish_shares(program, working, shares):
            return OPTIMAL
    set_single_action(SAFE, support, shares)
    return ITERATION_LIMIT


@kernel
def mixture_cost(cost: Floats, safe_cost: float, support: Ints, shares: Floats) -> float:
    """Return Σ_l shares_l cost_l over the support, in its order."""
    total = 0.0
    for position in range(support.size):
        total += shares[position] * get_value(support[position], cost, safe_cost)
    return total


@kernel
def find_best_single(program: Program) -> int:
    """Return the first action within every limit that ties for the largest reward of all, or NO_VARIABLE."""
    largest = program.safe_reward
    for action in range(program.reward.size):
        largest = max(largest, program.reward[action])
    floor = tie_floor(largest)
    for action in range(program.reward.size):
        if program.reward[action] >= floor and is_within_limits(program, action):
            return action
    return SAFE if program.safe_reward >= floor else NO_VARIABLE


@kernel
def is_within_limits(program: Program, action: int) -> bool:
    """Return whether an action alone is within every limit."""
    within = True
    for j in range(program.limits.size):
        within &= bool(program.cost[j, action] <= program.limits[j])
    return within


@kernel
def set_single_action(action: int, support: Ints, shares: Floats) -> None:
    """Write one action with share 1."""
    for position in range(support.size):
        support[position], shares[position] = SAFE, 0.0
    support[0], shares[0] = action, 1.0


@kernel
def run_simplex(program: Program, basis: Basis) -> bool:
    """Pivot from the safe action until nothing gains at a fresh inverse; False at the iteration limit.

    After a sequence of pivots without gain, Bland's rule is used, because it cannot cycle.
    """
    size = basis.support.size
    for row in range(size):
        basis.support[row] = ~row
    refactorise(program, basis)
    stalled, fresh = 0, True
    for count in range(MAX_PIVOTS):
        compute_prices(program, basis)
        use_bland, least = stalled > size, compute_tolerance(program, basis)
        variable = find_first_gaining(basis, least) if use_bland else find_most_gaining(basis, least)
        if variable == NO_VARIABLE or is_basic(basis.support, variable):
            if fresh:
                return True
            refactorise(program, basis)
            fresh = True
            continue
        compute_direction(variable, program, basis)
        position = find_leaving(basis, use_bland)
        if position == NO_VARIABLE:
            return False
        stalled = 0 if sum_values(basis.inverse[position]) > NOISE else stalled + 1
        apply_pivot(basis, position, variable)
        fresh = count % REFACTOR_EVERY == REFACTOR_EVERY - 1
        if fresh:
            refactorise(program, basis)
    return False


@kernel
def displace_safe(program: Program, basis: Basis) -> None:
    """Replace the safe action by the first action that ties with the basis, unless it is strictly better."""
    safe_position = NO_VARIABLE
    for position in range(basis.support.size):
        safe_position = position if basis.support[position] == SAFE else safe_position
    largest = 0.0
    for action in range(basis.gains.size):
        largest = max(largest, basis.gains[action])
    least = largest - compute_tolerance(program, basis)
    for action in range(basis.gains.size):
        if (
            safe_position != NO_VARIABLE
            and basis.gains[action] >= least
            and update_direction(safe_position, action, program, basis)
        ):
            compute_direction(action, program, basis)
            if find_leaving(basis, False) == safe_position:
                apply_pivot(basis, safe_position, action)
                safe_position = NO_VARIABLE


@kernel
def compute_prices(program: Program, basis: Basis) -> None:
    """Write the prices of the rows, without rounding noise, and the gain of a unit share of each action at them.

    y_k = Σ_l (reward_l − r₀) B⁻¹_lk over the basic actions l,    gain_i = reward_i − r₀ − Σ_k y_k a_ki
    """
    for row in range(basis.prices.size):
        found, size = 0.0, 0.0
        for position in range(basis.support.size):
            if basis.support[position] >= 0:
                term = (program.reward[basis.support[position]] - program.safe_reward) * basis.inverse[position, row]
                found += term
                size += abs(term)
        basis.prices[row] = found if abs(found) > NOISE * size else 0.0
    start = program.safe_reward + basis.prices[0]
    for action in range(program.reward.size):
        basis.gains[action] = program.reward[action] - start
    for j in range(program.limits.size):
        safe_cost = program.safe_cost[j]
        slope = basis.prices[1 + j] / (program.limits[j] - safe_cost)
        for action in range(program.reward.size):
            basis.gains[action] -= slope * (program.cost[j, action] - safe_cost)


@kernel
def compute_tolerance(program: Program, basis: Basis) -> float:
    """Return the gain up to which an action ties with the basis: TIE times its value, plus a rounding allowance."""
    scale = abs(program.safe_reward)
    for row in range(basis.prices.size):
        scale += abs(basis.prices[row])
    return TIE * abs(program.safe_reward + sum_values(basis.prices)) + NOISE * scale


@kernel
def find_most_gaining(basis: Basis, least: float) -> int:
    """Return the variable that gains most, a slack only if strictly better than every action, or NO_VARIABLE."""
    variable, gain = NO_VARIABLE, 0.0
    action = first_best(basis.gains)
    if action >= 0 and basis.gains[action] > least:
        variable, gain = action, basis.gains[action]
    for row in range(basis.prices.size):
        if is_slack_gaining(basis, row, least) and -basis.prices[row] > gain + TIE * gain:
            variable, gain = ~row, -basis.prices[row]
    return variable


@kernel
def find_first_gaining(basis: Basis, least: float) -> int:
    """Return the lowest variable that gains, or NO_VARIABLE."""
    for row in range(basis.prices.size - 1, -1, -1):
        if is_slack_gaining(basis, row, least):
            return ~row
    for action in range(basis.gains.size):
        if basis.gains[action] > least:
            return action
    return NO_VARIABLE


@kernel
def is_slack_gaining(basis: Basis, row: int, least: float) -> bool:
    """Return whether a row is better left slack; only row 0, the safe action's share, is bounded and may tie."""
    return bool(-basis.prices[row] > (least if row == 0 else 0.0))


@kernel
def find_leaving(basis: Basis, use_bland: bool) -> int:
    """Return the position that reaches zero first; of several the steepest, or by Bland's rule the lowest variable."""
    step, chosen = math.inf, NO_VARIABLE
    for position in range(basis.support.size):
        step = min(step, compute_step_to_zero(basis, position))
    for position in range(basis.support.size):
        if compute_step_to_zero(basis, position) <= step + SHARE_TOLERANCE and step < math.inf:
            if chosen == NO_VARIABLE:
                chosen = position
            elif use_bland:
                chosen = position if basis.support[position] < basis.support[chosen] else chosen
            else:
                chosen = position if basis.direction[position] > basis.direction[chosen] else chosen
    return chosen


@kernel
def finish_shares(program: Program, basis: Basis, shares: Floats) -> bool:
    """Write the shares of the basis, and reduce them until no limit is exceeded in floating point.

    The reduction moves towards the safe action. Where that is not basic, the same move within the basic actions is
    −B⁻¹ (0, 1, ..., 1), which lowers every cost alike.
    """
    safe_position = read_shares(basis, shares)
    step = ROUNDING
    while step <= 1.0 and not keeps_limits(program, basis.support, shares):
        for position in range(shares.size):
            retreat = (
                sum_values(basis.inverse[position, 1:])
                if safe_position == NO_VARIABLE
                else shares[position] - (position == safe_position)
            )
            shares[position] -= step * retreat
        step *= 2.0
    return keeps_limits(program, basis.support, shares)


@kernel
def read_shares(basis: Basis, shares: Floats) -> int:
    """Write the basic values B⁻¹ 1, without slacks and rounding noise, and return the position of the safe action."""
    for position in range(shares.size):
        shares[position] = sum_values(basis.inverse[position])
        if basis.support[position] < SAFE or shares[position] < SHARE_TOLERANCE:
            basis.support[position], shares[position] = SAFE, 0.0
    share_sum, safe_position = sum_values(shares), NO_VARIABLE
    for position in range(shares.size):
        shares[position] /= share_sum
        if basis.support[position] == SAFE and (
            safe_position == NO_VARIABLE or shares[position] > shares[safe_position]
        ):
            safe_position = position
    return safe_position


@kernel
def keeps_limits(program: Program, support: Ints, shares: Floats) -> bool:
    """Return whether the shares are a mixture that costs at most each limit."""
    for position in range(support.size):
        if not shares[position] >= 0.0:
            return False
    for j in range(program.limits.size):
        if not mixture_cost(program.cost[j], program.safe_cost[j], support, shares) <= program.limits[j]:
            return False
    return True
