"""Arms: means of what was seen, and an interval around every one of them, kept arm by arm.

    memory:   a table of rows, K numbers each: pulls | centres | halves | means | summed squares, k rows each;
              then the pulls of all arms, and for each signal the summed squares of all deviations (1 + k,)
    settings: log 1/δ', blind | R | lowest value | known at the safe arm, all (k,);
              and for RATES: the rate that is expected | log 1/δ' of the lower end | of the upper end, all (k,)

RATES keeps the tightest ends so far. Where they have passed each other half is below 0: means have changed, or it is
bad luck that δ allows for. The larger end then stands above (see `look_arms`).

A new interval is a number here, a branch of `interval`, and a name in `models.arms`; a number without a branch is every
value that is possible.
"""

import math
from typing import NamedTuple

from stagewise.kernels.bounds import CENTRE, HALF
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.layout import HOME, Part
from stagewise.kernels.promise import ALARM, BASELINE, NOISE, disputed
from stagewise.kernels.signals.interval import (
    Interval,
    bernstein_interval,
    kl_interval,
    log_likelihood,
    log_mixture,
)
from stagewise.kernels.signals.rates import rate_ends
from stagewise.kernels.signals.watch import LEAST, farthest, loudest

ANYTIME, UNION, UNION_ANYTIME, KL, BERNSTEIN, RATES = 0, 1, 2, 3, 4, 5


@kernel
def is_ranged(kind: int) -> bool:
    """Say whether an interval is for numbers in [low, low + 1]; others are for noise of a known size."""
    return kind in (KL, BERNSTEIN, RATES)


@kernel
def unit_radius(kind: int, pulls: float, confidence: float) -> float:
    """Return the radius of the mean of n 1-sub-Gaussian numbers; `confidence` is log 1/δ'. No pull counts as one.

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
def interval(kind: int, pulls: float, mean: float, squares: float, low: float, confidence: float) -> Interval:
    """Return where the mean of numbers in [low, low + 1] may lie after n pulls: by KL, or by BERNSTEIN."""
    within = Interval(0.0, 1.0)
    if kind == KL:
        within = kl_interval(pulls, mean - low, confidence)
    if kind == BERNSTEIN:
        within = bernstein_interval(pulls, mean - low, squares, confidence)
    return Interval(low + within.low, low + within.high)


class Pulled(NamedTuple):
    """What a part remembers of its K arms, as views of the memory."""

    table: Floats  # (1 + 4k, K) pulls | centres | halves | means | squares, row after row
    spread: Floats  # (1 + k,) the pulls of all arms, and the summed squares of every signal


class DeclaredOfArms(NamedTuple):
    """What was declared of k signals."""

    noise: Floats  # R
    low: Floats  # the lowest value, where a range is promised
    known: Floats  # at the safe arm
    expected: Floats  # by RATES: the rate that is expected, above the lowest value,
    lower: Floats  # and log 1/δ' of either end
    upper: Floats


@kernel
def pulled(part: Part, memory: Floats) -> Pulled:
    """Return what a part remembers of its arms."""
    rows = 1 + 4 * part.signals
    at = part.memory + rows * part.size
    return Pulled(memory[part.memory : at], memory[at : at + 1 + part.signals])


class KeptEnds(NamedTuple):
    """The intervals that a part keeps of its arms."""

    rows: Floats  # (2k, K) centres | halves


@kernel
def kept_ends(part: Part, memory: Floats) -> KeptEnds:
    """Return the intervals that a part keeps, as a view of the memory."""
    return KeptEnds(pulled(part, memory).table[part.size : (1 + 2 * part.signals) * part.size])


class Shown(NamedTuple):
    """What pulls have shown of one signal: of all arms, and of one."""

    pulls: float  # of all arms,
    squares: float  # and the summed squares of their deviations
    at_arm: float  # pulls of one arm,
    mean: float  # and their mean


@kernel
def shown_at(part: Part, memory: Floats, arm: int, signal: int) -> Shown:
    """Return what was seen of a signal at all arms, and at one."""
    table, spread = pulled(part, memory).table, pulled(part, memory).spread
    return Shown(spread[0], spread[1 + signal], table[arm], table[(1 + 2 * part.signals + signal) * part.size + arm])


class Means(NamedTuple):
    """How often every arm was pulled, and the means of what was seen."""

    pulls: Floats  # (K,)
    means: Floats  # (k, K)


@kernel
def means_of(part: Part, memory: Floats) -> Means:
    """Return the pulls and the means of every arm, as views of the memory."""
    table, k, count = pulled(part, memory).table, part.signals, part.size
    return Means(table[:count], table[(1 + 2 * k) * count : (1 + 3 * k) * count].reshape(k, count))


@kernel
def declared_of_arms(part: Part, settings: Floats) -> DeclaredOfArms:
    """Return what was declared of a part's signals, as views of the settings."""
    at, k = part.settings + 2, part.signals
    ends = at + 3 * k
    more = k if part.radius == RATES else 0
    return DeclaredOfArms(
        settings[at : at + k],
        settings[at + k : at + 2 * k],
        settings[at + 2 * k : ends],
        settings[ends : ends + more],
        settings[ends + more : ends + 2 * more],
        settings[ends + 2 * more : ends + 3 * more],
    )


@kernel
def confidence_in(part: Part, settings: Floats) -> float:
    """Return log 1/δ' of one interval."""
    return settings[part.settings]


@kernel
def start_arms(part: Part, settings: Floats, memory: Floats) -> None:
    """Write that nothing was seen: an interval that reaches `blind`, every a-priori bound, or the whole range."""
    table, declared, k = pulled(part, memory).table, declared_of_arms(part, settings), part.signals
    confidence, blind = settings[part.settings], settings[part.settings + 1]
    for signal in range(k):
        centre, half = 0.0, max(declared.noise[signal] * unit_radius(part.radius, 0.0, confidence), blind)
        if is_ranged(part.radius):
            centre, half = declared.low[signal] + 0.5, 0.5
        centres, halves = (1 + signal) * part.size, (1 + k + signal) * part.size
        for arm in range(part.size):
            table[centres + arm], table[halves + arm] = centre, half


@kernel
def learn_arms(part: Part, arm: int, values: Floats, settings: Floats, memory: Floats) -> None:
    """Take in what was seen (k,) of one pull."""
    kept, declared, k = pulled(part, memory), declared_of_arms(part, settings), part.signals
    table, spread = kept.table, kept.spread
    table[arm] += 1.0
    spread[0] += 1.0
    pulls, block = table[arm], k * part.size  # rows of one kind
    wide = unit_radius(part.radius, pulls, settings[part.settings])
    for signal in range(k):
        centre = (1 + signal) * part.size + arm  # and from it, one block on each, half, mean and squares
        before = table[centre + 2 * block]
        mean = before + (values[signal] - before) / pulls
        square = (values[signal] - before) * (values[signal] - mean)
        spread[1 + signal] += square
        table[centre + 2 * block] = mean
        table[centre + 3 * block] += square
        noise, low, squares = declared.noise[signal], declared.low[signal], table[centre + 3 * block]
        if not is_ranged(part.radius):
            table[centre] = mean
            table[centre + block] = noise * wide
        elif part.radius == RATES:
            narrow_arm(part, arm, signal, settings, memory)
        else:
            ends = interval(part.radius, pulls, mean, squares, low, settings[part.settings])
            table[centre] = 0.5 * (ends.low + ends.high)
            table[centre + block] = 0.5 * (ends.high - ends.low)


@kernel
def narrow_arm(part: Part, arm: int, signal: int, settings: Floats, memory: Floats) -> None:
    """Keep the tighter ends of what is kept and of what the pulls of an arm show, by RATES."""
    table, declared, block = pulled(part, memory).table, declared_of_arms(part, settings), part.signals * part.size
    at, low = (1 + signal) * part.size + arm, declared.low[signal]
    expected, lower, upper = declared.expected[signal], declared.lower[signal], declared.upper[signal]
    ends = rate_ends(table[arm], table[at + 2 * block] - low, expected, lower, upper)
    least = max(table[at] - table[at + block], low + ends.low)
    most = min(table[at] + table[at + block], low + ends.high)
    table[at], table[at + block] = 0.5 * (least + most), 0.5 * (most - least)


@kernel
def look_arms(layout: Ints, part: Part, settings: Floats, memory: Floats, bounds: Floats) -> None:
    """Write the bounds of every arm, and of the safe arm: what is known of it has no width.

    By RATES the safe arm is known where it is listed, too: its ends take no part of δ then.
    """
    table, declared, k, last = pulled(part, memory).table, declared_of_arms(part, settings), part.signals, part.size
    for signal in range(k):
        centre, half = bounds[part.first + signal, CENTRE], bounds[part.first + signal, HALF]
        at, other = (1 + signal) * last, (1 + k + signal) * last
        centres, halves = table[at : at + last], table[other : other + last]
        for arm in range(last):
            centre[arm] = centres[arm]
            half[arm] = abs(halves[arm])
        home = layout[HOME]
        if part.anchored == 1 or home < 0:
            centre[last], half[last] = declared.known[signal], 0.0
            if part.radius == RATES and home >= 0:
                centre[home], half[home] = centre[last], 0.0
        else:
            centre[last], half[last] = centre[home], half[home]


@kernel
def mistold_arms(layout: Ints, part: Part, settings: Floats, memory: Floats) -> int:
    """Return which declared noise, or value at the safe arm, of a cost the pulls contradict; 0: none."""
    spread, declared, alarm = pulled(part, memory).spread, declared_of_arms(part, settings), settings[ALARM]
    for signal in range(part.signals):
        if part.first + signal == 0:
            continue  # a reward breaks no limit
        noise = declared.noise[signal]
        loud = not is_ranged(part.radius) and spread[1 + signal] > LEAST * spread[0] * noise * noise
        if loud and spread[1 + signal] > loudest(spread[0], alarm) * noise * noise:
            return disputed(NOISE, part.first + signal - 1)
        if part.anchored == 1 and dearer(layout[HOME], part, settings, memory, signal):
            return disputed(BASELINE, part.first + signal - 1)
    return 0


@kernel
def dearer(arm: int, part: Part, settings: Floats, memory: Floats, signal: int) -> bool:
    """Say whether the pulls of an arm show that its mean is above what is known, by the radius' own kind of interval.

    By "kl" where log mixture − log likelihood(known) > log 1/a. A signal that is at least 0 and known to be 0 on
    average never is more, so there one pull shows it.
    """
    table, declared, k, alarm = (
        pulled(part, memory).table,
        declared_of_arms(part, settings),
        part.signals,
        settings[ALARM],
    )
    pulls, mean = table[arm], table[(1 + 2 * k + signal) * part.size + arm]
    squares = table[(1 + 3 * k + signal) * part.size + arm]
    noise, low, known = declared.noise[signal], declared.low[signal], declared.known[signal]
    if not mean > known:
        return False
    if not is_ranged(part.radius):
        return pulls * (mean - known) > farthest(pulls, noise, alarm)
    if part.radius == BERNSTEIN:
        return bernstein_interval(pulls, mean - low, squares, alarm).low > known - low
    if alarm == math.inf:
        return False
    if not known > low:
        return True
    ones = pulls * min(mean - low, 1.0)
    return log_mixture(ones, pulls - ones) - log_likelihood(known - low, ones, pulls - ones) > alarm
