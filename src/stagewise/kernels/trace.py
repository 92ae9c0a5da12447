"""What is kept of a run: sums over intervals, and what must be known of every single round."""

from typing import NamedTuple

from stagewise.kernels.compile import Floats, Ints, kernel

INTERVAL, REGRET, VIOLATIONS = 0, 1, 2  # so far, in what is kept while a run goes on,
BEST_SUM, REWARD_SUM, COST_SUMS = 3, 4, 5  # and the interval's sums: what was possible, the reward, every cost


class Trace(NamedTuple):
    """One run's record. The rounds 1 to T are cut into R intervals, each closed by a recorded round."""

    ends: Ints  # (R,) the recorded rounds
    regret: Floats  # (R,) up to and including the recorded round
    reward: Floats  # (R,) mean of the true expected rewards of the interval
    cost: Floats  # (R, m)
    best: Floats  # (R,) mean of what was possible
    largest: Floats  # (m,) largest true expected cost of all rounds
    running: Floats  # (running_size,) what is kept while the run goes on, from INTERVAL to COST_SUMS
    audit: Ints  # (4 + m,) see `audit.py`; empty: none is kept


def running_size(m: int) -> int:
    """Return how many numbers are kept while a run with m costs goes on."""
    return COST_SUMS + m


@kernel
def note(trace: Trace, round_: int, best: float, means: Floats, thresholds: Floats) -> None:
    """Take down one round (counted from 0): what was possible, and the true expected reward and costs (1 + m,)."""
    running, m = trace.running, trace.largest.size
    running[REGRET] += best - means[0]
    running[BEST_SUM] += best
    running[REWARD_SUM] += means[0]
    broken = 0.0
    for j in range(m):
        running[COST_SUMS + j] += means[1 + j]
        trace.largest[j] = max(trace.largest[j], means[1 + j])
        if j < thresholds.size and not means[1 + j] <= thresholds[j]:  # NaN keeps no limit
            broken = 1.0
    running[VIOLATIONS] += broken
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
