"""Online tests of the assumptions (docs/theory/watch.md); a contradiction makes the policy play the safe action.

The level a of the tests is no part of δ: a false alarm plays the safe action, which violates no limit.
"""

import math

from stagewise.kernels.bounds import CENTRE, HALF
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.constraints import (
    ALARM,
    COST_BOUND,
    NOISE,
    SAFE_COST,
    UNSAFE,
    encode_contradiction,
    get_ceiling,
    get_threshold,
)
from stagewise.kernels.layout import LIMITS, ModelBlock
from stagewise.kernels.models.ridge import OBSERVATIONS, SAFE_OBSERVATIONS, SQUARES, get_ridge_assumptions

FEW, SOME, MANY = 0.9, 0.3, 0.05  # values of s at which squared residuals are tested against the noise
SPENT = math.log(3.0)
LEAST_RATIO = 1.025  # −log(1 − s) ≥ 1.025 s at all three: mean squares below 1.025 R² cannot contradict R
PER_FEW, PER_SOME, PER_MANY = -math.log1p(-FEW), -math.log1p(-SOME), -math.log1p(-MANY)


@kernel
def compute_max_squares(count: float, alarm: float) -> float:
    """Return an upper bound on the sum of squares of n numbers, in units of R²: min_s (2 log(3/a) − n log(1 − s))/s."""
    spent = 2.0 * (alarm + SPENT)
    few, some = (spent + count * PER_FEW) / FEW, (spent + count * PER_SOME) / SOME
    return min(few, some, (spent + count * PER_MANY) / MANY)


@kernel
def compute_least_noise(squares: float, count: float, alarm: float) -> float:
    """Return the least R for which n R-sub-Gaussian numbers may have squares that add up to Q or more.

    R² ≥ s Q/(2 log(3/a) − n log(1 − s)) for s = .9, .3 and .05 and all n at once, with probability 1 − a.
    """
    return math.sqrt(max(squares, 0.0) / compute_max_squares(count, alarm))


@kernel
def compute_max_deviation(count: float, noise: float, alarm: float) -> float:
    """Return a bound on |Σ of n R-sub-Gaussian numbers|: R √((n + 1)(log(n + 1) + 2 log 1/a)), for all n at once."""
    return noise * math.sqrt((count + 1.0) * (math.log1p(count) + 2.0 * alarm))


@kernel
def compute_certain_noise(squares: float, bound: float, ridge: float, neglected: float) -> float:
    """Return the squares that only noise explains: (√(Σe²/(1 + w²) − λS²) − S √Σρ)², each term at least 0."""
    rest = max(math.sqrt(max(squares - ridge * bound * bound, 0.0)) - bound * neglected, 0.0)
    return rest * rest


@kernel
def check_regression(block: ModelBlock, settings: Floats, memory: Floats, neglected: float) -> int:
    """Return the code of the first contradicted noise, or value at the safe action, of a regression's cost; 0: none.

    `neglected` is √Σρ of what a reproducing kernel's basis leaves out.
    """
    tally, declared, k, alarm = block.tally, get_ridge_assumptions(block, settings), block.signals, settings[ALARM]
    for signal in range(k):
        if block.first + signal == 0:
            continue  # a reward has no limit
        noise, squares, observations = declared.noise[signal], tally[SQUARES + signal], tally[OBSERVATIONS]
        if squares > LEAST_RATIO * observations * noise * noise:
            least = compute_certain_noise(squares, declared.bound[signal], settings[block.settings], neglected)
            if least > compute_max_squares(observations, alarm) * noise * noise:
                return encode_contradiction(NOISE, block.first + signal - 1)
        deviation = abs(tally[SQUARES + k + signal])
        if (
            block.anchored == 1
            and deviation > 0.0
            and deviation > compute_max_deviation(tally[SAFE_OBSERVATIONS], noise, alarm)
        ):
            return encode_contradiction(SAFE_COST, block.first + signal - 1)
    return 0


@kernel
def record_safe_outcome(block: ModelBlock, settings: Floats, memory: Floats, values: Floats) -> None:
    """Add an outcome (k,) at the safe action to the sums, less the known values."""
    tally, known = block.tally, get_ridge_assumptions(block, settings).known
    tally[SAFE_OBSERVATIONS] += 1.0
    for signal in range(block.signals):
        tally[SQUARES + block.signals + signal] += values[signal] - known[signal]


@kernel
def check_ceilings(layout: Ints, settings: Floats, bounds: Floats) -> int:
    """Return the code of a cost whose lower bound exceeds its ceiling, or its threshold at an unknown x₀; 0: none."""
    safe = bounds.shape[2] - 1
    for j in range(layout[LIMITS]):
        ceiling, centre, half, above = (
            get_ceiling(layout, settings, j),
            bounds[1 + j, CENTRE],
            bounds[1 + j, HALF],
            False,
        )
        for candidate in range(safe + 1):
            above |= centre[candidate] - half[candidate] > ceiling
        if above:
            return encode_contradiction(COST_BOUND, j)
        if half[safe] != 0.0 and centre[safe] - half[safe] > get_threshold(layout, settings, j):
            return encode_contradiction(UNSAFE, j)
    return 0


@kernel
def is_same_action(one: Floats, other: Floats) -> bool:
    """Return whether two actions are equal to the bit."""
    i = 0
    while i < one.size and one[i] == other[i]:
        i += 1
    return i == one.size
