"""What was declared, held against the data (docs/theory/watch.md): contradictions, each a reason to stay safe.

Level a of the tests is no part of δ: a false alarm plays the safe action, which breaks no limit.
"""

import math

from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.promise import BASELINE, CEILING, NOISE, UNSAFE, Promise, disputed
from stagewise.kernels.radius import Belief

TAKEN, SAFE_TAKEN, SQUARES = 1, 2, 3  # where a regression's tally holds them (see `ridge.Ridge`)


@kernel
def noise_by(share: float, squares: float, count: float, alarm: float) -> float:
    return share * squares / (2.0 * (alarm + math.log(3.0)) - count * math.log1p(-share))


@kernel
def least_noise(squares: float, count: float, alarm: float) -> float:
    """Return the least R for which n R-sub-Gaussian numbers may have squares that add up to Q, or to more.

    R² ≥ s Q/(2 log(3/a) − n log(1 − s)) for s = .9, .3 and .05 and all n at once, but with probability a.
    """
    few, some = noise_by(0.9, squares, count, alarm), noise_by(0.3, squares, count, alarm)
    return math.sqrt(max(few, some, noise_by(0.05, squares, count, alarm), 0.0))


@kernel
def farthest(count: float, noise: float, alarm: float) -> float:
    """Return how far the sum of n R-sub-Gaussian numbers may be from 0: R √((n + 1)(log(n + 1) + 2 log 1/a)), all n."""
    return noise * math.sqrt((count + 1.0) * (math.log1p(count) + 2.0 * alarm))


@kernel
def surely_noise(squares: float, bound: float, ridge: float, neglected: float) -> float:
    """Return what of a regression's squares noise must have made: (√(Σe²/(1 + w²) − λS²) − S √Σρ)², each at least 0."""
    rest = max(math.sqrt(max(squares - ridge * bound * bound, 0.0)) - bound * neglected, 0.0)
    return rest * rest


@kernel
def contradiction(promise: Promise, belief: Belief, tally: Floats, neglected: float) -> int:
    """Return which declared noise, or value at the safe action, of a cost the regression's data contradict; 0: none.

    `neglected` is √Σρ of what a kernel's basis leaves out. The costs are the last m of the k signals.
    """
    m, signals = promise.limits.size, belief.noise.size
    for j in range(m):
        signal = signals - m + j
        noise, squares, taken = belief.noise[signal], tally[SQUARES + signal], tally[TAKEN]
        if squares > taken * noise * noise:  # else no share of them needs more: −log(1 − s) ≥ s
            least = surely_noise(squares, belief.norm_bound[signal], belief.ridge, neglected)
            if least_noise(least, taken, promise.alarm) > noise:
                return disputed(NOISE, j)
        stray = abs(tally[SQUARES + signals + signal])
        if promise.cost_known and stray > 0.0 and stray > farthest(tally[SAFE_TAKEN], noise, promise.alarm):
            return disputed(BASELINE, j)
    return 0


@kernel
def overrun(promise: Promise, costs: Floats, widths: Floats, start: Floats, radii: Floats) -> int:
    """Return whose lower bound, estimate − β width, is above its ceiling, or at x₀ above its threshold; 0: none.

    Costs (m, M) of candidates; `start` (m + 3,) and `radii` (1 + m,) are those of a sight.
    """
    m = promise.ceilings.size
    if promise.alarm == math.inf:
        return 0
    for j in range(m):
        ceiling, radius, estimates = promise.ceilings[j], radii[1 + j], costs[j]
        least = start[1 + j] - radius * start[2 + m]
        above = least > ceiling
        for candidate in range(widths.size):
            above |= estimates[candidate] - radius * widths[candidate] > ceiling
        if above:
            return disputed(CEILING, j)
        if not promise.cost_known and least > promise.thresholds[j]:
            return disputed(UNSAFE, j)
    return 0


@kernel
def note_safe(tally: Floats, values: Floats, known: Floats) -> None:
    """Take down what was seen (k,) at the safe action itself, beside what is known of it."""
    tally[SAFE_TAKEN] += 1.0
    for signal in range(values.size):
        tally[SQUARES + values.size + signal] += values[signal] - known[signal]


@kernel
def longest(features: Floats) -> float:
    """Return the largest norm of the rows; four sums side by side, since each addition waits for the one before."""
    largest, quads = 0.0, features.shape[1] // 4
    for row in range(features.shape[0]):
        action, a, b, c, d = features[row], 0.0, 0.0, 0.0, 0.0
        for quad in range(quads):
            i = 4 * quad
            a += action[i] * action[i]
            b += action[i + 1] * action[i + 1]
            c += action[i + 2] * action[i + 2]
            d += action[i + 3] * action[i + 3]
        for i in range(4 * quads, action.size):
            a += action[i] * action[i]
        largest = max(largest, (a + b) + (c + d))
    return math.sqrt(largest)


@kernel
def same(one: Floats, other: Floats) -> bool:
    """Say whether two actions are one, to the bit."""
    equal = True
    for i in range(one.size):
        equal &= one[i] == other[i]
    return equal
