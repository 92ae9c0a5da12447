"""What is kept of a run: sums over intervals, and what must be known of every single round."""

from typing import NamedTuple

from stagewise.kernels.compile import Floats, Ints, kernel


class Trace(NamedTuple):
    """One run's record. The rounds 1 to T are cut into R intervals, each closed by a recorded round."""

    ends: Ints  # (R,) the recorded rounds
    regret: Floats  # (R,) up to and including the recorded round
    reward: Floats  # (R,) mean of the true expected rewards of the interval
    cost: Floats  # (R, m)
    best: Floats  # (R,) mean of what was possible
    largest: Floats  # (m,) largest true expected cost of all rounds
    running: Floats  # (5 + m,) interval, regret, violations so far; then the interval's sums of best, reward and costs
    audit: Ints  # (4 + m,) see `audit.py`; empty: none is kept


@kernel
def note(trace: Trace, round_: int, best: float, means: Floats, thresholds: Floats) -> None:
    """Take down one round (counted from 0): what was possible, and the true expected reward and costs (1 + m,)."""
    running, m = trace.running, trace.largest.size
    running[1] += best - means[0]
    running[3] += best
    running[4] += means[0]
    broken = 0.0
    for j in range(m):
        running[5 + j] += means[1 + j]
        trace.largest[j] = max(trace.largest[j], means[1 + j])
        if j < thresholds.size and not means[1 + j] <= thresholds[j]:  # NaN keeps no limit
            broken = 1.0
    running[2] += broken
    interval = int(running[0])
    if round_ + 1 == trace.ends[interval]:
        first = trace.ends[interval - 1] if interval > 0 else 0
        length = float(round_ + 1 - first)
        trace.regret[interval] = running[1]
        trace.best[interval] = running[3] / length
        trace.reward[interval] = running[4] / length
        for j in range(m):
            trace.cost[interval, j] = running[5 + j] / length
        running[3:] = 0.0
        running[0] += 1.0
