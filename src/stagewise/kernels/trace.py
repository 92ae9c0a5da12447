"""Record of a run: sums over intervals, and quantities that need every round."""

from typing import NamedTuple

from stagewise.kernels.compile import Floats, Ints, kernel

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
