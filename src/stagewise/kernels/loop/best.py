"""The best that a round allows to one who knows the truth: what regret is measured against.

The truths (1 + m, K + 1) are the means of every candidate and, last, of the safe action; costs are signed.
"""

from stagewise.kernels.bounds import COSTS, HOPED
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.rules.mixture import mean_of, solve
from stagewise.kernels.rules.ray import safe_step


@kernel
def best_on_rays(truths: Floats, thresholds: Floats) -> float:
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
def best_mixture_of(
    truths: Floats, thresholds: Floats, rule: Floats, basis: Floats | None, shares: Floats, places: Ints
) -> float:
    """Return the largest expected reward of a mixture under the thresholds, or without any of one action.

    Where the safe action itself breaks a threshold, nothing else is known to be allowed: it is measured against.
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
        rule[HOPED, action] = truths[0, action]
        for j in range(m):
            rule[COSTS + j, action] = truths[1 + j, action]
    solve(rule, COSTS, thresholds, basis, shares, places)
    return mean_of(rule[HOPED], shares, places)
