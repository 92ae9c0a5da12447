"""What only one who knows the truth can say of a run: where an interval missed it, and where a promise was broken.

An audit is an array (4 + m,) of whole numbers: the first round with a cost above its threshold (counted from 1; 0:
none), the rounds in which less was hoped for than was possible, the first round that was nearly as good as possible (0:
none), then for the reward and every cost the rounds in which an interval missed the truth. −1: nothing to count.
"""

from stagewise.kernels.bounds import CENTRE, HALF
from stagewise.kernels.compile import Floats, Ints, kernel

FIRST, HOPELESS, SETTLED, MISSED = 0, 1, 2, 3
UNKNOWN = -1
NEARLY = 0.9  # of what the optimum gains over the safe action
ROUNDING = 1e-9  # relative; differences below it are arithmetic


def audit_size(m: int) -> int:
    """Return the length of an audit."""
    return 4 + m


@kernel
def watch(audit: Ints, round_: int, best: float, safe: float, means: Floats, thresholds: Floats) -> None:
    """Take down one round (counted from 0) of true expected reward and costs (1 + m,).

    A round has settled when  reward − r₀ ≥ 0.9 (optimum − r₀),  where there is anything to gain.
    """
    if audit[FIRST] == 0:
        for j in range(thresholds.size):
            if not means[1 + j] <= thresholds[j]:  # NaN keeps no limit
                audit[FIRST] = round_ + 1
    if audit[SETTLED] == 0 and best > safe and means[0] - safe >= NEARLY * (best - safe):
        audit[SETTLED] = round_ + 1


@kernel
def weigh_hope(audit: Ints, best: float, hoped: float) -> None:
    """Count a round that hoped for less than was possible."""
    if audit[HOPELESS] != UNKNOWN and not hoped >= best - ROUNDING * max(1.0, abs(best)):
        audit[HOPELESS] += 1


@kernel
def count_misses(audit: Ints, bounds: Floats, truths: Floats, pulls: Floats) -> None:
    """Count, for every signal of the policy, a round in which an interval missed the true mean of a candidate.

    Of arms only those with pulls count: before that their interval is what was assumed of them. No pulls: all count.
    """
    for signal in range(bounds.shape[0]):
        centre, half, true, found = bounds[signal, CENTRE], bounds[signal, HALF], truths[signal], False
        for candidate in range(true.size - 1):
            allowed = half[candidate] + ROUNDING * max(1.0, abs(true[candidate]))
            missed = not abs(centre[candidate] - true[candidate]) <= allowed
            found |= missed and (pulls.size == 0 or pulls[candidate] > 0.0)
        if found:
            audit[MISSED + signal] += 1
