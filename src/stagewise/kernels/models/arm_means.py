"""Arms: the mean of every arm's outcomes, with a confidence interval around it.

    memory:   a table of rows, K numbers each: pulls | centres | halves | means | summed squares, k rows each;
              then the pulls of all arms, and for each signal the summed squares of all deviations (1 + k,)
    settings: log 1/δ', blind | R | lowest value | known at the safe arm, all (k,);
              and for RATES: the reference rate | log 1/δ' of the lower end | of the upper end, all (k,)

RATES keeps the tightest ends so far. If they have crossed, the half-width is below 0: either the means have changed, or
an interval has failed, which has probability at most δ. The larger end is then used (see `compute_arm_bounds`).

To add an interval, add a number here, a branch in `compute_interval` and a name in `models.arms_model`. A number
without a branch gives the interval of all possible values.
"""

import math
from typing import NamedTuple

from stagewise.kernels.bounds import CENTRE, HALF
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.constraints import ALARM, NOISE, SAFE_COST, encode_contradiction
from stagewise.kernels.layout import SAFE_INDEX, ModelBlock
from stagewise.kernels.models.assumption_tests import LEAST_RATIO, compute_max_deviation, compute_max_squares
from stagewise.kernels.models.interval import (
    Interval,
    compute_bernstein_interval,
    compute_kl_interval,
    log_likelihood,
    log_mixture,
)
from stagewise.kernels.models.rate_interval import compute_rate_interval

ANYTIME, UNION, UNION_ANYTIME, KL, BERNSTEIN, RATES = 0, 1, 2, 3, 4, 5


@kernel
def is_ranged(kind: int) -> bool:
    """Return whether an interval is for outcomes in [low, low + 1]; the others are for noise of a known scale."""
    return kind in (KL, BERNSTEIN, RATES)


@kernel
def unit_radius(kind: int, pulls: float, confidence: float) -> float:
    """Return the radius of the mean of n 1-sub-Gaussian numbers; `confidence` is log 1/δ'. Zero pulls count as one.

    ANYTIME:        √((1 + 1/n) (log(1 + n) + 2 log 1/δ') / n)        all n at once, two-sided (Robbins' normal mixture)
    UNION:          √(2 log(1/δ') / n)                                δ' already divided by the horizon
    UNION_ANYTIME:  √(2 log(n (n + 1)/δ') / n)                        Σ 1/n(n+1) = 1
    """
    n = max(pulls, 1.0)
    if kind == ANYTIME:
        return math.sqrt((1.0 + 1.0 / n) * (math.log1p(n) + 2.0 * confidence) / n)
    if kind == UNION:
        return math.sqrt(2.0 * confidence / n)
    if kind == UNION_ANYTIME:
        return math.sqrt(2.0 * (math.log(n * (n + 1.0)) + confidence) / n)
    return math.inf


@kernel
def compute_interval(kind: int, pulls: float, mean: float, squares: float, low: float, confidence: float) -> Interval:
    """Return the interval of the mean of numbers in [low, low + 1] after n pulls, by KL or BERNSTEIN."""
    within = Interval(0.0, 1.0)
    if kind == KL:
        within = compute_kl_interval(pulls, mean - low, confidence)
    if kind == BERNSTEIN:
        within = compute_bernstein_interval(pulls, mean - low, squares, confidence)
    return Interval(low + within.low, low + within.high)


class ArmTable(NamedTuple):
    """The state of a block's K arms, as views of the memory."""

    table: Floats  # (1 + 4k, K) pulls | centres | halves | means | squares, row after row
    deviation_sums: Floats  # (1 + k,) the pulls of all arms, and the summed squares of every signal


class ArmsAssumptions(NamedTuple):
    """The assumptions about k signals."""

    noise: Floats  # R
    low: Floats  # the lowest value, where a range is declared
    known: Floats  # at the safe arm
    reference_rate: Floats  # for RATES: the reference rate, above the lowest value
    lower: Floats  # log 1/δ' of the lower end
    upper: Floats  # log 1/δ' of the upper end


@kernel
def get_arm_table(block: ModelBlock, memory: Floats) -> ArmTable:
    """Return the state of a block's arms."""
    rows = 1 + 4 * block.signals
    at = block.memory + rows * block.size
    return ArmTable(memory[block.memory : at], memory[at : at + 1 + block.signals])


class KeptIntervals(NamedTuple):
    """The intervals that a block keeps of its arms."""

    rows: Floats  # (2k, K) centres | halves


@kernel
def get_kept_intervals(block: ModelBlock, memory: Floats) -> KeptIntervals:
    """Return the intervals that a block keeps, as a view of the memory."""
    return KeptIntervals(get_arm_table(block, memory).table[block.size : (1 + 2 * block.signals) * block.size])


class PullSummary(NamedTuple):
    """Statistics of one signal: over all arms, and of one arm."""

    pulls: float  # of all arms
    squares: float  # summed squared deviations of all arms
    at_arm: float  # pulls of the one arm
    mean: float  # mean of the one arm


@kernel
def get_pull_summary(block: ModelBlock, memory: Floats, arm: int, signal: int) -> PullSummary:
    """Return the statistics of a signal over all arms and of one arm."""
    table, deviation_sums = get_arm_table(block, memory).table, get_arm_table(block, memory).deviation_sums
    return PullSummary(
        deviation_sums[0],
        deviation_sums[1 + signal],
        table[arm],
        table[(1 + 2 * block.signals + signal) * block.size + arm],
    )


class ArmMeans(NamedTuple):
    """The number of pulls and the mean outcomes of every arm."""

    pulls: Floats  # (K,)
    means: Floats  # (k, K)


@kernel
def get_arm_means(block: ModelBlock, memory: Floats) -> ArmMeans:
    """Return the pulls and the means of every arm, as views of the memory."""
    table, k, count = get_arm_table(block, memory).table, block.signals, block.size
    return ArmMeans(table[:count], table[(1 + 2 * k) * count : (1 + 3 * k) * count].reshape(k, count))


@kernel
def get_arms_assumptions(block: ModelBlock, settings: Floats) -> ArmsAssumptions:
    """Return the assumptions about a block's signals, as views of the settings."""
    at, k = block.settings + 2, block.signals
    ends = at + 3 * k
    extra = k if block.radius == RATES else 0
    return ArmsAssumptions(
        settings[at : at + k],
        settings[at + k : at + 2 * k],
        settings[at + 2 * k : ends],
        settings[ends : ends + extra],
        settings[ends + extra : ends + 2 * extra],
        settings[ends + 2 * extra : ends + 3 * extra],
    )


@kernel
def get_confidence(block: ModelBlock, settings: Floats) -> float:
    """Return log 1/δ' of one interval."""
    return settings[block.settings]


@kernel
def start_arms(block: ModelBlock, settings: Floats, memory: Floats) -> None:
    """Write the state without data: an interval of half-width `blind`, the a-priori bound, or the whole range."""
    table, declared, k = get_arm_table(block, memory).table, get_arms_assumptions(block, settings), block.signals
    confidence, blind = settings[block.settings], settings[block.settings + 1]
    for signal in range(k):
        centre, half = 0.0, max(declared.noise[signal] * unit_radius(block.radius, 0.0, confidence), blind)
        if is_ranged(block.radius):
            centre, half = declared.low[signal] + 0.5, 0.5
        centres, halves = (1 + signal) * block.size, (1 + k + signal) * block.size
        for arm in range(block.size):
            table[centres + arm], table[halves + arm] = centre, half


@kernel
def learn_arms(block: ModelBlock, arm: int, values: Floats, settings: Floats, memory: Floats) -> None:
    """Learn the outcome (k,) of one pull."""
    kept, declared, k = get_arm_table(block, memory), get_arms_assumptions(block, settings), block.signals
    table, deviation_sums = kept.table, kept.deviation_sums
    table[arm] += 1.0
    deviation_sums[0] += 1.0
    pulls, stride = table[arm], k * block.size  # length of the rows of one kind
    wide = unit_radius(block.radius, pulls, settings[block.settings])
    for signal in range(k):
        centre = (1 + signal) * block.size + arm  # half-width, mean and squares follow at distances of one stride
        before = table[centre + 2 * stride]
        mean = before + (values[signal] - before) / pulls
        square = (values[signal] - before) * (values[signal] - mean)
        deviation_sums[1 + signal] += square
        table[centre + 2 * stride] = mean
        table[centre + 3 * stride] += square
        noise, low, squares = declared.noise[signal], declared.low[signal], table[centre + 3 * stride]
        if not is_ranged(block.radius):
            table[centre] = mean
            table[centre + stride] = noise * wide
        elif block.radius == RATES:
            tighten_arm(block, arm, signal, settings, memory)
        else:
            ends = compute_interval(block.radius, pulls, mean, squares, low, settings[block.settings])
            table[centre] = 0.5 * (ends.low + ends.high)
            table[centre + stride] = 0.5 * (ends.high - ends.low)


@kernel
def tighten_arm(block: ModelBlock, arm: int, signal: int, settings: Floats, memory: Floats) -> None:
    """Tighten the ends of an arm's interval by the interval of its pulls, for RATES."""
    table, declared, stride = (
        get_arm_table(block, memory).table,
        get_arms_assumptions(block, settings),
        block.signals * block.size,
    )
    at, low = (1 + signal) * block.size + arm, declared.low[signal]
    reference_rate, lower, upper = declared.reference_rate[signal], declared.lower[signal], declared.upper[signal]
    ends = compute_rate_interval(table[arm], table[at + 2 * stride] - low, reference_rate, lower, upper)
    least = max(table[at] - table[at + stride], low + ends.low)
    most = min(table[at] + table[at + stride], low + ends.high)
    table[at], table[at + stride] = 0.5 * (least + most), 0.5 * (most - least)


@kernel
def compute_arm_bounds(layout: Ints, block: ModelBlock, settings: Floats, memory: Floats, bounds: Floats) -> None:
    """Write the bounds of every arm, and of the safe arm; a known value has no width.

    With RATES the safe arm is known where it is listed too, so its ends take no share of δ.
    """
    table, declared, k, last = (
        get_arm_table(block, memory).table,
        get_arms_assumptions(block, settings),
        block.signals,
        block.size,
    )
    for signal in range(k):
        centre, half = bounds[block.first + signal, CENTRE], bounds[block.first + signal, HALF]
        at, other = (1 + signal) * last, (1 + k + signal) * last
        centres, halves = table[at : at + last], table[other : other + last]
        for arm in range(last):
            centre[arm] = centres[arm]
            half[arm] = abs(halves[arm])
        safe_index = layout[SAFE_INDEX]
        if block.anchored == 1 or safe_index < 0:
            centre[last], half[last] = declared.known[signal], 0.0
            if block.radius == RATES and safe_index >= 0:
                centre[safe_index], half[safe_index] = centre[last], 0.0
        else:
            centre[last], half[last] = centre[safe_index], half[safe_index]


@kernel
def check_arms(layout: Ints, block: ModelBlock, settings: Floats, memory: Floats) -> int:
    """Return the code of the first contradicted noise, or value at the safe arm, of a cost; 0: none."""
    deviation_sums, declared, alarm = (
        get_arm_table(block, memory).deviation_sums,
        get_arms_assumptions(block, settings),
        settings[ALARM],
    )
    for signal in range(block.signals):
        if block.first + signal == 0:
            continue  # a reward has no limit
        noise = declared.noise[signal]
        is_suspicious = (
            not is_ranged(block.radius) and deviation_sums[1 + signal] > LEAST_RATIO * deviation_sums[0] * noise * noise
        )
        if is_suspicious and deviation_sums[1 + signal] > compute_max_squares(deviation_sums[0], alarm) * noise * noise:
            return encode_contradiction(NOISE, block.first + signal - 1)
        if block.anchored == 1 and exceeds_known_mean(layout[SAFE_INDEX], block, settings, memory, signal):
            return encode_contradiction(SAFE_COST, block.first + signal - 1)
    return 0


@kernel
def exceeds_known_mean(arm: int, block: ModelBlock, settings: Floats, memory: Floats, signal: int) -> bool:
    """Return whether the pulls of an arm show that its mean is above the known one, by the radius' kind of interval.

    For "kl": where log mixture − log likelihood(known) > log 1/a. A signal that is at least 0 and has a known mean of 0
    is always 0, so one larger outcome is enough.
    """
    table, declared, k, alarm = (
        get_arm_table(block, memory).table,
        get_arms_assumptions(block, settings),
        block.signals,
        settings[ALARM],
    )
    pulls, mean = table[arm], table[(1 + 2 * k + signal) * block.size + arm]
    squares = table[(1 + 3 * k + signal) * block.size + arm]
    noise, low, known = declared.noise[signal], declared.low[signal], declared.known[signal]
    if not mean > known:
        return False
    if not is_ranged(block.radius):
        return pulls * (mean - known) > compute_max_deviation(pulls, noise, alarm)
    if block.radius == BERNSTEIN:
        return compute_bernstein_interval(pulls, mean - low, squares, alarm).low > known - low
    if alarm == math.inf:
        return False
    if not known > low:
        return True
    ones = pulls * min(mean - low, 1.0)
    return log_mixture(ones, pulls - ones) - log_likelihood(known - low, ones, pulls - ones) > alarm
