"""Audit of a run against the truth: interval misses, violations and optimism failures.

An audit is an integer array (4 + m,): the first round with a cost above its threshold (counted from 1; 0: none), the
number of rounds whose optimistic reward was below the optimum, the first near-optimal round (0: none), and for the
reward and every cost the number of rounds in which an interval missed the true mean. −1: not applicable.
"""

from stagewise.kernels.bounds import CENTRE, HALF
from stagewise.kernels.compile import Floats, Ints, kernel

FIRST_VIOLATION, OPTIMISM_FAILURES, FIRST_NEAR_OPTIMAL_ROUND, INTERVAL_MISSES = 0, 1, 2, 3
UNKNOWN = -1
NEAR_OPTIMAL_SHARE = 0.9  # share of the optimum's gain over the safe action
ROUNDING = 1e-9  # relative; differences below it are arithmetic


def audit_size(m: int) -> int:
    """Return the length of an audit."""
    return 4 + m


@kernel
def audit_round(audit: Ints, round_: int, best: float, safe: float, means: Floats, thresholds: Floats) -> None:
    """Record one round (counted from 0) with its true expected reward and costs (1 + m,).

    A round is near-optimal when  reward − r₀ ≥ 0.9 (optimum − r₀),  if the optimum is better than the safe action.
    """
    if audit[FIRST_VIOLATION] == 0:
        for j in range(thresholds.size):
            if not means[1 + j] <= thresholds[j]:  # NaN keeps no limit
                audit[FIRST_VIOLATION] = round_ + 1
    if audit[FIRST_NEAR_OPTIMAL_ROUND] == 0 and best > safe and means[0] - safe >= NEAR_OPTIMAL_SHARE * (best - safe):
        audit[FIRST_NEAR_OPTIMAL_ROUND] = round_ + 1


@kernel
def count_optimism_failure(audit: Ints, best: float, optimistic_reward: float) -> None:
    """Count a round whose optimistic reward was below the optimum."""
    if audit[OPTIMISM_FAILURES] != UNKNOWN and not optimistic_reward >= best - ROUNDING * max(1.0, abs(best)):
        audit[OPTIMISM_FAILURES] += 1


@kernel
def count_interval_misses(audit: Ints, bounds: Floats, truths: Floats, pulls: Floats) -> None:
    """Count, for every signal of the policy, the rounds in which an interval missed the true mean of a candidate.

    For arms, only arms with pulls count: an unpulled arm has its a-priori interval. An empty `pulls` counts all.
    """
    for signal in range(bounds.shape[0]):
        centre, half, true, found = bounds[signal, CENTRE], bounds[signal, HALF], truths[signal], False
        for candidate in range(true.size - 1):
            allowed = half[candidate] + ROUNDING * max(1.0, abs(true[candidate]))
            missed = not abs(centre[candidate] - true[candidate]) <= allowed
            found |= missed and (pulls.size == 0 or pulls[candidate] > 0.0)
        if found:
            audit[INTERVAL_MISSES + signal] += 1
