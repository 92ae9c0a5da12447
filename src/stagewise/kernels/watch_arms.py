"""What was declared of arms, held against the data (docs/theory/watch.md)."""

import math

from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.counts import BERNSTEIN, KL, Radius, Tally
from stagewise.kernels.interval import bernstein_interval, log_likelihood, log_mixture
from stagewise.kernels.promise import BASELINE, CEILING, NOISE, UNSAFE, Promise, disputed
from stagewise.kernels.watch import farthest, least_noise


@kernel
def dearer(radius: Radius, tally: Tally, signal: int, arm: int, known: float, alarm: float) -> bool:
    """Say whether the pulls of an arm show that its mean is above what is known, by the radius' own kind of interval.

    By "kl" where log mixture − log likelihood(known) > log 1/a. A signal that is at least 0 and known to be 0 on
    average never is more, so there one pull shows it.
    """
    pulls, mean, low = tally.pulls[arm], tally.means[signal, arm], radius.lows[signal]
    if not mean > known:
        return False
    if radius.kind < KL:
        return pulls * (mean - known) > farthest(pulls, radius.noise[signal], alarm)
    if radius.kind == BERNSTEIN:
        return bernstein_interval(pulls, mean - low, tally.squares[signal, arm], alarm).low > known - low
    if not known > low:
        return True
    ones = pulls * min(mean - low, 1.0)
    return log_mixture(ones, pulls - ones) - log_likelihood(known - low, ones, pulls - ones) > alarm


@kernel
def mistold_arms(promise: Promise, radius: Radius, tally: Tally, safe: int, known: Floats) -> int:
    """Return what was declared of a cost and is contradicted, or 0: noise, ceilings, and the safe arm's own cost."""
    if promise.alarm == math.inf:
        return 0
    for j in range(promise.limits.size):
        signal, ceiling = 1 + j, promise.ceilings[j]
        if radius.kind < KL:
            least = least_noise(tally.spread[1 + signal], tally.spread[0], promise.alarm)
            if least > radius.noise[signal]:
                return disputed(NOISE, j)
        if promise.cost_known and dearer(radius, tally, signal, safe, known[signal], promise.alarm):
            return disputed(BASELINE, j)
        centres, halves, above = tally.centres[signal], tally.halves[signal], False
        for arm in range(centres.size):
            above |= centres[arm] - halves[arm] > ceiling
        if above:
            return disputed(CEILING, j)
        if not promise.cost_known and centres[safe] - halves[safe] > promise.thresholds[j]:
            return disputed(UNSAFE, j)
    return 0
