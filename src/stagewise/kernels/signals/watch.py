"""What was declared, held against the data (docs/theory/watch.md): contradictions, each a reason to stay safe.

Level a of the tests is no part of δ: a false alarm plays the safe action, which breaks no limit.
"""

import math

from stagewise.kernels.bounds import CENTRE, HALF
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.layout import LIMITS, Part
from stagewise.kernels.promise import ALARM, BASELINE, CEILING, NOISE, UNSAFE, ceiling_of, disputed, threshold_of
from stagewise.kernels.signals.ridge import SAFE_TAKEN, SQUARES, TAKEN, declared_of_ridge

FEW, SOME, MANY = 0.9, 0.3, 0.05  # shares s at which squares are held against noise
SPENT = math.log(3.0)
LEAST = 1.025  # −log(1 − s) ≥ 1.025 s at all three: squares that come to less than so many R² each need no more noise
PER_FEW, PER_SOME, PER_MANY = -math.log1p(-FEW), -math.log1p(-SOME), -math.log1p(-MANY)


@kernel
def loudest(count: float, alarm: float) -> float:
    """Return what the squares of n numbers add up to at most, in units of R²: min_s (2 log(3/a) − n log(1 − s))/s."""
    spent = 2.0 * (alarm + SPENT)
    few, some = (spent + count * PER_FEW) / FEW, (spent + count * PER_SOME) / SOME
    return min(few, some, (spent + count * PER_MANY) / MANY)


@kernel
def least_noise(squares: float, count: float, alarm: float) -> float:
    """Return the least R for which n R-sub-Gaussian numbers may have squares that add up to Q, or to more.

    R² ≥ s Q/(2 log(3/a) − n log(1 − s)) for s = .9, .3 and .05 and all n at once, but with probability a.
    """
    return math.sqrt(max(squares, 0.0) / loudest(count, alarm))


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
def mistold_regression(part: Part, settings: Floats, memory: Floats, neglected: float) -> int:
    """Return which declared noise, or value at the safe action, of a cost the regression's data contradict; 0: none.

    `neglected` is √Σρ of what a reproducing kernel's basis leaves out.
    """
    tally, declared, k, alarm = part.tally, declared_of_ridge(part, settings), part.signals, settings[ALARM]
    for signal in range(k):
        if part.first + signal == 0:
            continue  # a reward breaks no limit
        noise, squares, taken = declared.noise[signal], tally[SQUARES + signal], tally[TAKEN]
        if squares > LEAST * taken * noise * noise:
            least = surely_noise(squares, declared.bound[signal], settings[part.settings], neglected)
            if least > loudest(taken, alarm) * noise * noise:
                return disputed(NOISE, part.first + signal - 1)
        stray = abs(tally[SQUARES + k + signal])
        if part.anchored == 1 and stray > 0.0 and stray > farthest(tally[SAFE_TAKEN], noise, alarm):
            return disputed(BASELINE, part.first + signal - 1)
    return 0


@kernel
def note_safe(part: Part, settings: Floats, memory: Floats, values: Floats) -> None:
    """Take down what was seen (k,) at the safe action itself, beside what is known of it."""
    tally, known = part.tally, declared_of_ridge(part, settings).known
    tally[SAFE_TAKEN] += 1.0
    for signal in range(part.signals):
        tally[SQUARES + part.signals + signal] += values[signal] - known[signal]


@kernel
def overrun(layout: Ints, settings: Floats, bounds: Floats) -> int:
    """Return whose lower bound is above its ceiling, or at an unknown safe action above its threshold; 0: none."""
    safe = bounds.shape[2] - 1
    for j in range(layout[LIMITS]):
        ceiling, centre, half, above = (
            ceiling_of(layout, settings, j),
            bounds[1 + j, CENTRE],
            bounds[1 + j, HALF],
            False,
        )
        for candidate in range(safe + 1):
            above |= centre[candidate] - half[candidate] > ceiling
        if above:
            return disputed(CEILING, j)
        if half[safe] != 0.0 and centre[safe] - half[safe] > threshold_of(layout, settings, j):
            return disputed(UNSAFE, j)
    return 0


@kernel
def same(one: Floats, other: Floats) -> bool:
    """Say whether two actions are one, to the bit."""
    i = 0
    while i < one.size and one[i] == other[i]:
        i += 1
    return i == one.size
