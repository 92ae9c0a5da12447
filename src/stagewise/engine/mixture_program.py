"""True means of a mixture, summed in the order of the action list.

The optimum of a round, against which regret is measured.

The truths (1 + m, K + 1) are the means of every candidate and, last, of the safe action; costs are signed.
"""

import math

from stagewise.engine.compile import Floats, Ints, kernel
from stagewise.engine.pair import find_best_pair
from stagewise.engine.simplex import find_best_mixture
from stagewise.engine.workspace import COSTS, OPTIMISTIC_REWARDS, PLAUSIBLE, safe_step


@kernel
def solve_mixture(
    rule: Floats, costs: int, limits: Floats, basis: Floats | None, shares: Floats, indices: Ints
) -> None:
    """Maximise Σ p_i reward_i subject to Σ p_i cost_ji ≤ limit_j; costs are the rows of the rule from row `costs` on.

    The safe action's column is masked meanwhile, because it is passed separately. No `basis`: there is one limit, for
    which a pair of actions is optimal, so that the simplex is not compiled.
    """
    optimistic, safe = rule[OPTIMISTIC_REWARDS], rule.shape[1] - 1
    safe_optimistic = optimistic[safe]
    optimistic[safe] = -math.inf
    indices[:] = -1
    shares[:] = 0.0
    if basis is None:
        pair = find_best_pair(optimistic, rule[costs], safe_optimistic, rule[costs, safe], limits[0])
        indices[0], indices[1] = pair.cheap, pair.costly
        shares[0], shares[1] = 1.0 - pair.share, pair.share
    else:
        m = limits.size
        start, table = basis[:m], basis[m:].reshape(m + 3, m + 1)
        for j in range(m):
            start[j] = rule[costs + j, safe]
        find_best_mixture(
            optimistic, rule[costs : costs + m], safe_optimistic, start, limits, indices[: m + 1], shares[: m + 1],
            table, rule[PLAUSIBLE],
        )  # fmt: skip
    optimistic[safe] = safe_optimistic


@kernel
def compute_mixture_mean(row: Floats, shares: Floats, indices: Ints) -> float:
    """Return Σ_i p_i value_i over the mixture, in its order; the safe action's value is the last."""
    total = 0.0
    for position in range(shares.size):
        if shares[position] != 0.0:
            total += shares[position] * (row[row.size - 1] if indices[position] < 0 else row[indices[position]])
    return total


NO_INDEX = 2**62


@kernel
def find_next_action(shares: Floats, indices: Ints, safe_index: int, after: int) -> int:
    """Return the lowest index in the mixture above `after`, or NO_INDEX; the safe action has index `safe_index`."""
    lowest = NO_INDEX
    for position in range(indices.size):
        index = indices[position] if indices[position] >= 0 else safe_index
        if shares[position] > 0.0 and after < index < lowest:
            lowest = index
    return lowest


@kernel
def get_share(shares: Floats, indices: Ints, safe_index: int, index: int) -> float:
    """Return the probability of one action in the mixture."""
    share = 0.0
    for position in range(indices.size):
        if index == (indices[position] if indices[position] >= 0 else safe_index):
            share += shares[position]
    return share


@kernel
def fill_mixture_means(truths: Floats, safe_index: int, shares: Floats, indices: Ints, values: Floats) -> None:
    """Write Σ_a π(a) means(a) of the true means (1 + m, K + 1); the safe action is the column `safe_index`."""
    values[:] = 0.0
    index = find_next_action(shares, indices, safe_index, -1)
    while index != NO_INDEX:
        share = get_share(shares, indices, safe_index, index)
        for signal in range(values.size):
            values[signal] += share * truths[signal, index]
        index = find_next_action(shares, indices, safe_index, index)


@kernel
def compute_optimal_value_on_rays(truths: Floats, thresholds: Floats) -> float:
    """Return the largest mean reward on the rays from x₀ under the thresholds.

    Along a ray everything is affine: the best point is x₀ or the longest feasible step.
    """
    safe = truths.shape[1] - 1
    start = truths[0, safe]
    best = start
    for ray in range(safe):
        step = 1.0
        for j in range(thresholds.size):
            first = truths[1 + j, safe]
            step = min(step, safe_step(truths[1 + j, ray] - first, thresholds[j] - first))
        best = max(best, start + step * (truths[0, ray] - start))
    return best


@kernel
def compute_optimal_mixture_value(
    truths: Floats, thresholds: Floats, rule: Floats, basis: Floats | None, shares: Floats, indices: Ints
) -> float:
    """Return the largest expected reward of a mixture under the thresholds; without thresholds, of one action.

    If the safe action itself violates a threshold, it is the reference, because no other action is known to be allowed.
    """
    m, safe = thresholds.size, truths.shape[1] - 1
    if m == 0:
        best = truths[0, 0]
        for action in range(1, safe):
            best = max(best, truths[0, action])
        return best
    for j in range(m):
        if truths[1 + j, safe] > thresholds[j]:
            return truths[0, safe]
    for action in range(safe + 1):
        rule[OPTIMISTIC_REWARDS, action] = truths[0, action]
        for j in range(m):
            rule[COSTS + j, action] = truths[1 + j, action]
    solve_mixture(rule, COSTS, thresholds, basis, shares, indices)
    return compute_mixture_mean(rule[OPTIMISTIC_REWARDS], shares, indices)
