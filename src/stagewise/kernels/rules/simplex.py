"""The best mixture under several limits: a revised simplex that starts at the safe action.

Measured from the safe action, in units of each limit's slack, every row of the program reads the same:

    Σ_i p_i a_ki ≤ 1,    a_0i = 1,    a_ki = (cost_ki − safe_k) / (limit_k − safe_k)  for k = 1..m

The slack of row 0 is the share of the safe action. So the first basis is the identity, the basic variables' values are
the row sums of the inverse, and the value above the safe action is the sum of the prices. A variable is a listed action
i ≥ 0, or ~k for the slack of row k; ~0 = -1 is the safe action.
"""

import math

from stagewise.kernels.compile import Floats, Ints, called, kernel
from stagewise.kernels.rules.basis import (
    Basis,
    Program,
    exchange,
    falls,
    head_for,
    holds,
    refactorise,
    step_until_empty,
    total,
)
from stagewise.kernels.rules.pair import ROUNDING, SAFE, of
from stagewise.kernels.rules.tie import TIE, first_best, tie_floor

OPTIMAL, GAVE_UP = 0, 1
NOBODY = -(2**62)
PATIENCE = 10_000
REFRESH = 64
NOISE = 1e-12
DUST = 1e-13


@kernel
def scratch_shape(constraints: int) -> tuple[int, int]:
    """Return the shape of the scratch `basis`; the scratch `gains` is as long as the list of actions."""
    return constraints + 3, constraints + 1


@kernel
def price_in(basis: Floats, constraint: int) -> float:
    """Return the price of a limit, in units of its slack, that a solved program leaves in the scratch `basis`."""
    return basis[basis.shape[1], 1 + constraint]


@called
def best_mixture(
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
    an unused place holds the safe action with share 0. Every `mixture_cost` is at most its limit, in floating point.
    A reward of −∞ is never played. Requires safe_cost < limits. `basis`, of `scratch_shape(m)`, and `gains`, as long
    as the list, are scratch.

    Returns OPTIMAL, or GAVE_UP with the safe action alone.
    """
    program = Program(reward, cost, safe_reward, safe_cost, limits)
    alone = best_alone(program)
    if alone != NOBODY:
        play_alone(alone, support, shares)
        return OPTIMAL
    size = support.size
    # The shares are written last, so until then their room serves for the noise floors.
    working = Basis(support, basis[:size], basis[size], basis[size + 1], shares, gains)
    if climb(program, working):
        displace_safe(program, working)
        if settle(program, working, shares):
            return OPTIMAL
    play_alone(SAFE, support, shares)
    return GAVE_UP


@kernel
def mixture_cost(cost: Floats, safe_cost: float, support: Ints, shares: Floats) -> float:
    """Return Σ_l shares_l cost_l over the support, in its order."""
    total = 0.0
    for place in range(support.size):
        total += shares[place] * of(support[place], cost, safe_cost)
    return total


@kernel
def best_alone(program: Program) -> int:
    """Return the first action within every limit that ties for the largest reward of all, or NOBODY."""
    largest = program.safe_reward
    for action in range(program.reward.size):
        largest = max(largest, program.reward[action])
    floor = tie_floor(largest)
    for action in range(program.reward.size):
        if program.reward[action] >= floor and affordable(program, action):
            return action
    return SAFE if program.safe_reward >= floor else NOBODY


@kernel
def affordable(program: Program, action: int) -> bool:
    """Say whether an action alone keeps every limit."""
    within = True
    for j in range(program.limits.size):
        within &= bool(program.cost[j, action] <= program.limits[j])
    return within


@kernel
def play_alone(action: int, support: Ints, shares: Floats) -> None:
    """Write one action with share 1."""
    for place in range(support.size):
        support[place], shares[place] = SAFE, 0.0
    support[0], shares[0] = action, 1.0


@kernel
def climb(program: Program, basis: Basis) -> bool:
    """Pivot from the safe action until nothing gains, at an inverse made afresh; False when patience runs out.

    After a run of pivots that gain nothing Bland's rule takes over, because it cannot cycle.
    """
    size = basis.support.size
    for row in range(size):
        basis.support[row] = ~row
    refactorise(program, basis)
    stalled, fresh = 0, True
    for count in range(PATIENCE):
        price(program, basis)
        careful, least = stalled > size, tolerance(program, basis)
        variable = first_gaining(basis, least) if careful else most_gaining(basis, least)
        if variable == NOBODY or holds(basis.support, variable):
            if fresh:
                return True
            refactorise(program, basis)
            fresh = True
            continue
        head_for(variable, program, basis)
        place = leaving(basis, careful)
        if place == NOBODY:
            return False
        stalled = 0 if total(basis.inverse[place]) > NOISE else stalled + 1
        exchange(basis, place, variable)
        fresh = count % REFRESH == REFRESH - 1
        if fresh:
            refactorise(program, basis)
    return False


@kernel
def displace_safe(program: Program, basis: Basis) -> None:
    """Let the first action that ties with the basis take the place of the safe action, unless strictly better."""
    home = NOBODY
    for place in range(basis.support.size):
        home = place if basis.support[place] == SAFE else home
    largest = 0.0
    for action in range(basis.gains.size):
        largest = max(largest, basis.gains[action])
    least = largest - tolerance(program, basis)
    for action in range(basis.gains.size):
        if home != NOBODY and basis.gains[action] >= least and falls(home, action, program, basis):
            head_for(action, program, basis)
            if leaving(basis, False) == home:
                exchange(basis, home, action)
                home = NOBODY


@kernel
def price(program: Program, basis: Basis) -> None:
    """Write the prices of the rows, free of rounding, and what a unit share of each action would gain at them.

    y_k = Σ_l (reward_l − r₀) B⁻¹_lk over the basic actions l,    gain_i = reward_i − r₀ − Σ_k y_k a_ki
    """
    for row in range(basis.prices.size):
        found, size = 0.0, 0.0
        for place in range(basis.support.size):
            if basis.support[place] >= 0:
                term = (program.reward[basis.support[place]] - program.safe_reward) * basis.inverse[place, row]
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
def tolerance(program: Program, basis: Basis) -> float:
    """Return the gain up to which an action ties with the basis: TIE times its value, and what may be rounding."""
    scale = abs(program.safe_reward)
    for row in range(basis.prices.size):
        scale += abs(basis.prices[row])
    return TIE * abs(program.safe_reward + total(basis.prices)) + NOISE * scale


@kernel
def most_gaining(basis: Basis, least: float) -> int:
    """Return the variable that gains most, a slack only where strictly better than every action, or NOBODY."""
    variable, gain = NOBODY, 0.0
    action = first_best(basis.gains)
    if action >= 0 and basis.gains[action] > least:
        variable, gain = action, basis.gains[action]
    for row in range(basis.prices.size):
        if slack_gains(basis, row, least) and -basis.prices[row] > gain + TIE * gain:
            variable, gain = ~row, -basis.prices[row]
    return variable


@kernel
def first_gaining(basis: Basis, least: float) -> int:
    """Return the lowest variable that gains, or NOBODY."""
    for row in range(basis.prices.size - 1, -1, -1):
        if slack_gains(basis, row, least):
            return ~row
    for action in range(basis.gains.size):
        if basis.gains[action] > least:
            return action
    return NOBODY


@kernel
def slack_gains(basis: Basis, row: int, least: float) -> bool:
    """Say whether a row is better left slack; only row 0, the safe action's share, is bounded and may tie."""
    return bool(-basis.prices[row] > (least if row == 0 else 0.0))


@kernel
def leaving(basis: Basis, careful: bool) -> int:
    """Return the place that is empty first; of several the steepest or, when careful, that of the lowest variable."""
    step, chosen = math.inf, NOBODY
    for place in range(basis.support.size):
        step = min(step, step_until_empty(basis, place))
    for place in range(basis.support.size):
        if step_until_empty(basis, place) <= step + DUST and step < math.inf:
            if chosen == NOBODY:
                chosen = place
            elif careful:
                chosen = place if basis.support[place] < basis.support[chosen] else chosen
            else:
                chosen = place if basis.direction[place] > basis.direction[chosen] else chosen
    return chosen


@kernel
def settle(program: Program, basis: Basis, shares: Floats) -> bool:
    """Write the shares of the basis, and retreat from the limits until rounding leaves none exceeded.

    To retreat is to move towards the safe action. Where it has no place, the same move within the actions that do is
    −B⁻¹ (0, 1, ..., 1), which lowers every cost alike.
    """
    home = read_shares(basis, shares)
    step = ROUNDING
    while step <= 1.0 and not keeps_limits(program, basis.support, shares):
        for place in range(shares.size):
            retreat = total(basis.inverse[place, 1:]) if home == NOBODY else shares[place] - (place == home)
            shares[place] -= step * retreat
        step *= 2.0
    return keeps_limits(program, basis.support, shares)


@kernel
def read_shares(basis: Basis, shares: Floats) -> int:
    """Write the basic values B⁻¹ 1, without slacks and what is rounding, and return the place of the safe action."""
    for place in range(shares.size):
        shares[place] = total(basis.inverse[place])
        if basis.support[place] < SAFE or shares[place] < DUST:
            basis.support[place], shares[place] = SAFE, 0.0
    whole, home = total(shares), NOBODY
    for place in range(shares.size):
        shares[place] /= whole
        if basis.support[place] == SAFE and (home == NOBODY or shares[place] > shares[home]):
            home = place
    return home


@kernel
def keeps_limits(program: Program, support: Ints, shares: Floats) -> bool:
    """Say whether the shares are a mixture that costs at most each limit."""
    for place in range(support.size):
        if not shares[place] >= 0.0:
            return False
    for j in range(program.limits.size):
        if not mixture_cost(program.cost[j], program.safe_cost[j], support, shares) <= program.limits[j]:
            return False
    return True
