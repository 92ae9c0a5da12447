"""The optimum of a round, against which regret is measured.

The truths (1 + m, K + 1) are the means of every candidate and, last, of the safe action; costs are signed.
"""

from stagewise.kernels.bounds import COSTS, OPTIMISTIC_REWARDS
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.rules.mixture import compute_mixture_mean, solve_mixture
from stagewise.kernels.rules.ray import safe_step


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
