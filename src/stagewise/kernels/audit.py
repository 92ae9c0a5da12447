"""What only one who knows the truth can say of a run: where an interval missed it, and where a promise was broken.

An audit is an array (4 + m,) of whole numbers: the first round with a cost above its threshold (counted from 1; 0:
none), the rounds in which less was hoped for than was possible, the first round that was nearly as good as possible (0:
none), then for the reward and every cost the rounds in which an interval missed the truth. −1: nothing to count.
"""

from stagewise.kernels.blend import Odds, solve
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.counts import Tally
from stagewise.kernels.sight import Sight
from stagewise.kernels.world import fill_means

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
def misses(estimates: Floats, widths: Floats, radius: float, truths: Floats) -> bool:
    """Say whether |estimate − truth| ≤ β ‖x‖ fails for a candidate."""
    found = False
    for candidate in range(truths.size):
        room = radius * widths[candidate] + ROUNDING * max(1.0, abs(truths[candidate]))
        found |= not abs(estimates[candidate] - truths[candidate]) <= room
    return found


@kernel
def count_misses(audit: Ints, rewards: Floats, sight: Sight, truths: Floats) -> None:
    """Count a round in which an interval missed the true means (1 + m, M) of a candidate."""
    if misses(rewards, sight.reward_widths, sight.radii[0], truths[0]):
        audit[MISSED] += 1
    for j in range(sight.costs.shape[0]):
        if misses(sight.costs[j], sight.cost_widths, sight.radii[1 + j], truths[1 + j]):
            audit[MISSED + 1 + j] += 1


@kernel
def count_missed_arms(audit: Ints, tally: Tally, truths: Floats) -> None:
    """Count a round in which the interval of an arm that was pulled missed its true mean (1 + m, K)."""
    for signal in range(tally.centres.shape[0]):
        found = False
        for arm in range(tally.pulls.size):
            room = tally.halves[signal, arm] + ROUNDING
            within = abs(tally.centres[signal, arm] - truths[signal, arm]) <= room
            found |= tally.pulls[arm] > 0.0 and not within
        if found:
            audit[MISSED + signal] += 1


@kernel
def fill_truths(parameters: Floats, features: Floats, means: Floats, truths: Floats) -> None:
    """Write the true means (1 + m, M) of the candidates; `means` (1 + m,) is work."""
    for candidate in range(features.shape[0]):
        fill_means(parameters, features[candidate], means)
        for signal in range(means.size):
            truths[signal, candidate] = means[signal]


@kernel
def hope_of(odds: Odds, directional: bool, limits: Floats) -> float:
    """Return what a mixture promises: its hoped reward; where directional, that of the mixture it came back from.

    The latter is solved for once more, over the support and shares, which are no longer needed then.
    """
    if not directional:
        return odds.total[0]
    solve(odds, odds.cheapest, odds.safe_cheapest, limits)
    value = 0.0
    for place in range(odds.support.size):
        if odds.shares[place] > 0.0:
            action = odds.support[place]
            value += odds.shares[place] * (odds.safe_hoped[0] if action < 0 else odds.hoped[action])
    return value
