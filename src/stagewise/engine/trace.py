"""Record of a run: sums over intervals, and quantities that need every round.

Audit of a run against the truth: interval misses, violations and optimism failures.

An audit is an integer array (4 + m,): the first round with a cost above its threshold (counted from 1; 0: none), the
number of rounds whose optimistic reward was below the optimum, the first near-optimal round (0: none), and for the
reward and every cost the number of rounds in which an interval missed the true mean. −1: not applicable.
"""

from typing import NamedTuple

from stagewise.engine.compile import Floats, Ints, kernel
from stagewise.engine.workspace import CENTRE, HALF

INTERVAL, REGRET, VIOLATIONS = 0, 1, 2  # in `running`: progress so far,
BEST_SUM, REWARD_SUM, COST_SUMS = 3, 4, 5  # and sums over the current interval: optimum, reward, every cost


class Trace(NamedTuple):
    """The record of one run. The rounds 1 to T are divided into R intervals, each ending at a recorded round."""

    ends: Ints  # (R,) the recorded rounds
    regret: Floats  # (R,) up to and including the recorded round
    reward: Floats  # (R,) mean of the true expected rewards of the interval
    cost: Floats  # (R, m)
    best: Floats  # (R,) mean of the optimum
    largest: Floats  # (m,) largest true expected cost of all rounds
    running: Floats  # (running_size,) state while the run goes on, from INTERVAL to COST_SUMS
    audit: Ints  # (4 + m,) see `audit.py`; empty: no audit


def running_size(m: int) -> int:
    """Return the length of `Trace.running` for m costs."""
    return COST_SUMS + m


@kernel
def record_round(trace: Trace, round_: int, best: float, means: Floats, thresholds: Floats) -> None:
    """Record one round (counted from 0): the optimum, and the true expected reward and costs (1 + m,)."""
    running, m = trace.running, trace.largest.size
    running[REGRET] += best - means[0]
    running[BEST_SUM] += best
    running[REWARD_SUM] += means[0]
    violated = 0.0
    for j in range(m):
        running[COST_SUMS + j] += means[1 + j]
        trace.largest[j] = max(trace.largest[j], means[1 + j])
        if j < thresholds.size and not means[1 + j] <= thresholds[j]:  # NaN keeps no limit
            violated = 1.0
    running[VIOLATIONS] += violated
    interval = int(running[INTERVAL])
    if round_ + 1 == trace.ends[interval]:
        first = trace.ends[interval - 1] if interval > 0 else 0
        length = float(round_ + 1 - first)
        trace.regret[interval] = running[REGRET]
        trace.best[interval] = running[BEST_SUM] / length
        trace.reward[interval] = running[REWARD_SUM] / length
        for j in range(m):
            trace.cost[interval, j] = running[COST_SUMS + j] / length
        running[BEST_SUM:] = 0.0
        running[INTERVAL] += 1.0


FIRST_VIOLATION, OPTIMISM_FAILURES, FIRST_NEAR_OPTIMAL_ROUND, INTERVAL_MISSES = 0, 1, 2, 3
UNKNOWN = -1
NEAR_OPTIMAL_SHARE = 0.9  # share of the optimum's gain over the safe action
ROUNDING = 1e-9  # relative; differences below it are arithmetic


def audit_size(m: int) -> int:
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
