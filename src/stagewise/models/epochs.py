"""Bounds of a mean that moves: sums of the outcomes since several times, and the age of each sum.

With p the mean, t̄ the mean time of the n outcomes since an epoch began, S their sum, and δ_b its share of δ',

    p(t) ≤ U(S, n, δ_b) + ω̄,   ω̄ = B + ρ (t − t̄)        (docs/theory/drift.md, Theorem 1)

at all times t and for all epochs at once with probability 1 − δ'; U is `average_bounds`. A slope has B = 0, a budget B
in any time W has ρ = B/W, and only B while every outcome is younger than W. All ends age alike, so the least of them
is two numbers: a bound, and its time. Bounds are those of the epochs of now, not the tightest so far, so that users may
differ (docs/theory/drift.md, Users who differ). A lower end of an epoch above what others ever allowed shows that the
mean has moved further than declared: what is older than that epoch is forgotten.

    header:   newest epoch, 0: none | time of the first epoch | newest epoch when an outcome came out of order |
              number of every kept epoch, from 1, in order; 0: free
    cell:     pulls | mean | lower bound at T | distance of the upper bound at T from the upper end | T |
              time of the last change that was found, 0: none | distance of the bound of young outcomes | its expiry |
              distance of the tightest upper bound since then, which the mean is tested against |
              for each kept epoch: n, −1: forgotten | S | Σ of times since the epoch began
    settings: column of the time | length of a step in seconds | ρ per step | B | W in steps, 0: no budget |
              R, where outcomes are R-sub-Gaussian about their means: then U = S/n + R h(n); 0: `average_bounds`
"""

import math

from stagewise.engine.compile import Floats, kernel
from stagewise.models.arms import ANYTIME, unit_radius
from stagewise.models.average_bounds import (
    CLOSE,
    FACTORS,
    LOG_WEIGHTS,
    TERMS,
    UPPER_ETAS,
    compute_average_lower,
    compute_average_upper,
)

NEWEST, ORIGIN, DISORDERED, FIRST_BEGIN = 0, 1, 2, 3  # in the header
PULLS, MEAN, LOW, BELOW, AT, CHANGED, YOUNG, EXPIRY, TIGHTEST, FIRST_EPOCH = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9  # in a cell
TIME_COLUMN, STEP, SLOPE, BUDGET, WINDOW, NOISE = 0, 1, 2, 3, 4, 5  # in the settings
EPOCHS = 10  # kept at once, at most
SPAN = 64  # steps: the longest time that an epoch is kept
DENSE = 1, 3  # the first and the last level of which two epochs are kept; of each other, one
HEADER_SIZE, CELL_SIZE, SETTINGS_SIZE = FIRST_BEGIN + EPOCHS, FIRST_EPOCH + 3 * EPOCHS, 6
WEIGHTS = (1.0, 3.0, 6.0, 8.0, 6.0, 3.0, 1.0)  # of the levels
WEIGHT_SUM = 28.0
EVERY_ROW, ROWS = 64, 16  # bounds are computed after each of the first outcomes, then after every 16
MIX_STEPS = 4
EARLIEST = 1e-6  # in place of the time 0, which says that no change was found


@kernel
def get_level(epoch: int) -> int:
    """Return k: how often 2 divides the number of steps before an epoch, at most as often as it divides SPAN."""
    before, level = epoch - 1, 0
    while before % 2 == 0 and (1 << level) < SPAN:
        before //= 2
        level += 1
    return level


@kernel
def is_kept(epoch: int, newest: int) -> bool:
    """Return whether an epoch is kept: for every look back of L steps some epoch began more than L/4 steps ago.

    Level k is kept for 4·2^k steps where it is dense, else for 2·2^k, but none for longer than SPAN.
    """
    level = get_level(epoch)
    return newest - epoch < min((4 if DENSE[0] <= level <= DENSE[1] else 2) * (1 << level), SPAN)


@kernel
def compute_log_share(epoch: int) -> float:
    """Return log 1/share of an epoch: ½ of the first, ½ · w_k/28 · 5/(i + 4)(i + 5) of the i-th of level k ≤ 6.

    They add up to 1. The look backs that decide where a limit is nearly out of reach cost least.
    """
    if epoch == 1:
        return math.log(2.0)
    level = get_level(epoch)
    i = (epoch - 1) // (1 << level)
    i = (i + 1) // 2 if (1 << level) < SPAN else i
    return math.log(2.0 * WEIGHT_SUM / WEIGHTS[level]) + math.log((i + 4.0) * (i + 5.0) / 5.0)


@kernel
def find_epoch(header: Floats, settings: Floats, time: float) -> int:
    if header[NEWEST] == 0.0:
        return 1
    return max(math.floor((time - header[ORIGIN]) / settings[STEP]) + 1, 1)


@kernel
def get_begin(header: Floats, settings: Floats, epoch: float) -> float:
    """Return the time at which an epoch began."""
    return header[ORIGIN] + (epoch - 1.0) * settings[STEP]


@kernel
def advance_cell(header: Floats, newest: int, cell: Floats) -> None:
    """Drop the sums of epochs that are no longer kept; the header is the old one."""
    last = 0
    for i in range(EPOCHS):
        if header[FIRST_BEGIN + i] > 0.0 and is_kept(int(header[FIRST_BEGIN + i]), newest):
            for j in range(3):
                cell[FIRST_EPOCH + 3 * last + j] = cell[FIRST_EPOCH + 3 * i + j]
            last += 1
    for i in range(FIRST_EPOCH + 3 * last, CELL_SIZE):
        cell[i] = 0.0


@kernel
def advance_header(header: Floats, settings: Floats, newest: int, time: float) -> None:
    """Begin the epochs up to the newest, after every cell."""
    old, last = int(header[NEWEST]), 0
    if old == 0:
        header[ORIGIN] = time
    for i in range(EPOCHS):
        epoch = header[FIRST_BEGIN + i]
        header[FIRST_BEGIN + i] = 0.0
        if epoch > 0.0 and is_kept(int(epoch), newest):
            header[FIRST_BEGIN + last] = epoch
            last += 1
    for epoch in range(max(old + 1, newest - SPAN), newest + 1):
        if is_kept(epoch, newest) and last < EPOCHS:
            header[FIRST_BEGIN + last] = epoch
            last += 1
    header[NEWEST] = newest


@kernel
def learn_in_epochs(
    header: Floats, settings: Floats, time: float, value: float, low: float, high: float, cell: Floats
) -> None:
    """Add an outcome in [0, 1], counted in pulls already; `low` and `high` are log 1/δ' of either end."""
    if cell[PULLS] == 1.0:
        cell[AT] = time
    age_cell(settings, max(time, cell[AT]), cell)
    if time < get_begin(header, settings, header[NEWEST]):
        header[DISORDERED] = header[NEWEST]
    for i in range(EPOCHS):
        at = FIRST_EPOCH + 3 * i
        if header[FIRST_BEGIN + i] > 0.0 and cell[at] >= 0.0:
            cell[at] += 1.0
            cell[at + 1] += value
            cell[at + 2] += time - get_begin(header, settings, header[FIRST_BEGIN + i])
    if cell[PULLS] < EVERY_ROW or cell[PULLS] % ROWS == 0.0:
        update_ends(header, settings, low, high, cell)


@kernel
def age_cell(settings: Floats, time: float, cell: Floats) -> None:
    """Let the bounds of a cell age up to a time that is not before theirs."""
    grown = settings[SLOPE] * (time - cell[AT]) / settings[STEP]
    cell[LOW], cell[BELOW], cell[AT] = max(cell[LOW] - grown, 0.0), max(cell[BELOW] - grown, 0.0), time
    cell[TIGHTEST] = max(cell[TIGHTEST] - grown, 0.0)


@kernel
def compute_upper_end(settings: Floats, pulls: float, total: float, confidence: float) -> float:
    """Return the upper end of the average mean of n outcomes; `confidence` is log 1/δ'."""
    if settings[NOISE] > 0.0:
        return min(total / pulls + settings[NOISE] * unit_radius(ANYTIME, pulls, confidence), 1.0)
    return compute_average_upper(pulls, total, confidence)


@kernel
def compute_lower_end(settings: Floats, pulls: float, total: float, confidence: float) -> float:
    """Return the lower end of the average mean of n outcomes; `confidence` is log 1/δ'."""
    if settings[NOISE] > 0.0:
        return max(total / pulls - settings[NOISE] * unit_radius(ANYTIME, pulls, confidence), 0.0)
    return compute_average_lower(pulls, total, confidence)


@kernel
def update_ends(header: Floats, settings: Floats, low: float, high: float, cell: Floats) -> None:
    """Compute the bounds from the ends of all epochs, oldest first, and look for a change."""
    now = cell[AT]
    cell[LOW], cell[BELOW], cell[YOUNG], cell[EXPIRY] = 0.0, 0.0, 0.0, 0.0
    slope, budget, line = settings[SLOPE] / settings[STEP], settings[BUDGET], math.inf
    for i in range(EPOCHS):
        epoch, at = header[FIRST_BEGIN + i], FIRST_EPOCH + 3 * i
        if epoch == 0.0 or not cell[at] > 0.0:
            continue
        pulls, mean, spent = cell[at], cell[at + 1] / cell[at], compute_log_share(int(epoch))
        begin = get_begin(header, settings, epoch)
        middle = begin + cell[at + 2] / pulls
        added, upper = budget + slope * (now - middle), 1.0
        is_young = settings[WINDOW] > 0.0 and epoch > header[DISORDERED]
        is_young = is_young and begin + settings[WINDOW] * settings[STEP] > now
        if mean + added < 1.0 - cell[BELOW] or mean - slope * middle < line or is_young:  # mean ≤ upper
            upper = compute_upper_end(settings, pulls, cell[at + 1], high + spent)
            line = min(line, upper - slope * middle)
            cell[BELOW] = max(cell[BELOW], 1.0 - (upper + added))
            if is_young and 1.0 - (upper + budget) > cell[YOUNG]:
                cell[YOUNG], cell[EXPIRY] = 1.0 - (upper + budget), begin + settings[WINDOW] * settings[STEP]
        most = min(line + slope * middle, 1.0 - cell[TIGHTEST] + slope * (now - middle)) + budget
        if mean > most or mean - added > cell[LOW]:  # lower ≤ mean
            lower = compute_lower_end(settings, pulls, cell[at + 1], low + spent)
            if lower > most:
                forget_before(header, settings, begin, cell)
                upper = compute_upper_end(settings, pulls, cell[at + 1], high + spent)
                line, cell[BELOW] = upper - slope * middle, max(1.0 - (upper + added), 0.0)
                cell[CHANGED] = begin if begin != 0.0 else EARLIEST
            cell[LOW] = max(cell[LOW], lower - added)
    if cell[BELOW] > 0.0 and not settings[NOISE] > 0.0:
        cell[BELOW] = 1.0 - mix_epochs(header, settings, high, 1.0 - cell[BELOW], cell)
    cell[TIGHTEST] = max(cell[TIGHTEST], cell[BELOW])


@kernel
def mix_epochs(header: Floats, settings: Floats, high: float, bound: float, cell: Floats) -> float:
    """Return the upper bound of all epochs together, from one that is valid, by Newton's method from outside."""
    now, slope, q = cell[AT], settings[SLOPE] / settings[STEP], bound
    for _ in range(MIX_STEPS):
        value, rise = 0.0, 0.0
        for i in range(EPOCHS):
            epoch, at = header[FIRST_BEGIN + i], FIRST_EPOCH + 3 * i
            if epoch == 0.0 or not cell[at] > 0.0:
                continue
            pulls, total = cell[at], cell[at + 1]
            middle = get_begin(header, settings, epoch) + cell[at + 2] / pulls
            p = q - settings[BUDGET] - slope * (now - middle)
            if p <= total / pulls:
                continue
            share = compute_log_share(int(epoch)) + high
            for j in range(TERMS):
                left = 1.0 - FACTORS[j] * p
                term = math.exp(LOG_WEIGHTS[j] - UPPER_ETAS[j] * total - pulls * math.log(left) - share)
                value += term
                rise += term * pulls * FACTORS[j] / left
        step = math.log(value) * value / rise if value > 1.0 else 0.0
        if not step > CLOSE * q:
            break
        q -= step
    return q


@kernel
def forget_before(header: Floats, settings: Floats, time: float, cell: Floats) -> None:
    """Forget the bounds, and the epochs that began before a time."""
    cell[LOW], cell[BELOW], cell[YOUNG], cell[EXPIRY], cell[TIGHTEST] = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(EPOCHS):
        epoch, at = header[FIRST_BEGIN + i], FIRST_EPOCH + 3 * i
        if epoch > 0.0 and get_begin(header, settings, epoch) < time:
            cell[at], cell[at + 1], cell[at + 2] = -1.0, 0.0, 0.0


@kernel
def compute_low_now(settings: Floats, time: float, cell: Floats) -> float:
    """Return the lower bound at a time."""
    return max(cell[LOW] - settings[SLOPE] * abs(time - cell[AT]) / settings[STEP], 0.0)


@kernel
def compute_high_now(settings: Floats, time: float, cell: Floats) -> float:
    """Return the upper bound at a time."""
    below = max(cell[BELOW] - settings[SLOPE] * abs(time - cell[AT]) / settings[STEP], 0.0)
    if time <= cell[EXPIRY] and time >= cell[AT] - settings[WINDOW] * settings[STEP]:
        below = max(below, cell[YOUNG])
    return 1.0 - below


@kernel
def find_longest(cell: Floats) -> int:
    """Return the position in a cell of the epoch that has most outcomes; −1: none has any."""
    longest, most = -1, 0.0
    for i in range(EPOCHS):
        if cell[FIRST_EPOCH + 3 * i] > most:
            longest, most = FIRST_EPOCH + 3 * i, cell[FIRST_EPOCH + 3 * i]
    return longest
