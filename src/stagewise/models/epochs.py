"""Bounds of a mean that moves or jumps: sums of the outcomes since several times, and the age of each sum.

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

Bounds of a mean that jumps: sums of an action's outcomes since several of them, and a test whether the mean changed.

Nothing is declared but that the mean is constant between changes. Epochs begin every STEP outcomes of a cell; at any
time, one is kept of each level (b − 1 = (2i − 1) 2^k), one of the longest, and the first. With U_b and L_b of
`average_bounds` at the share of each, V is the least U_b since the last change. L_e > V shows a change: if V is that of
a younger epoch the mean fell, and what is older is forgotten; else all is, since e may hold outcomes of before. Until
then, with m outcomes since the change, the mean is at most V + U_e − L_e, where e has about m/4 outcomes or more
(docs/theory/drift.md, Theorem 2). The upper bound is the least U_b of now, so that users may differ. Once the first
epoch is forgotten it begins anew, so that an action that recovers learns from all outcomes since then.

    cell: as in `models.epochs`, but for EXPIRY: how often the first epoch began anew; slots by level, then the longest,
          then the first, and for each n, −1: forgotten | S | time of its first outcome
"""

import math

from stagewise.engine.compile import Floats, kernel
from stagewise.models.arms import ANYTIME, unit_radius
from stagewise.models.intervals import (
    AVERAGE_CLOSE,
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
        if not step > AVERAGE_CLOSE * q:
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


JUMP_STEP = 40  # outcomes
LEVELS = EPOCHS - 2  # of the grid; the longest epochs begin every 2^LEVELS steps
LONGEST, FIRST = LEVELS, LEVELS + 1  # slots
LOG_SHARE = math.log(2.0) + math.log(LEVELS + 1.0)  # of the epochs of one level, after the first epoch
FIRST_SHARE, RESTART_SHARE = 0.45, 0.05  # of the first epoch, and of all that begin anew in its place
RESTARTS = EXPIRY  # in a cell, whose bounds never expire


@kernel
def get_jump_level(epoch: int) -> int:
    before, level = epoch - 1, 0
    if before == 0:
        return FIRST
    while before % 2 == 0 and level < LEVELS:
        before //= 2
        level += 1
    return level


@kernel
def find_in_slot(slot: int, newest: int) -> int:
    """Return the newest epoch of a slot; 0: none has begun."""
    if slot == FIRST:
        return 1
    length = 1 << slot
    if newest - 1 < length:
        return 0
    if slot == LONGEST:
        return (newest - 1) // length * length + 1
    return (newest - 1 - length) // (2 * length) * (2 * length) + length + 1


@kernel
def compute_jump_log_share(slot: int, epoch: int, restarts: float) -> float:
    """Return log 1/share: ½ · 1/(LEVELS + 1) · 1/i(i + 1) of the i-th of each level; ½ of the first ones.

    Of these the first of all has 9/10, and the one that began anew k times 1/10 · 1/k(k + 1).
    """
    if slot == FIRST:
        return -math.log(RESTART_SHARE / (restarts * (restarts + 1.0)) if restarts > 0.0 else FIRST_SHARE)
    i = (epoch - 1) // (1 << slot)
    i = i if slot == LONGEST else (i + 1) // 2
    return LOG_SHARE + math.log(i * (i + 1.0))


@kernel
def compute_jump_spent(slot: int, cell: Floats) -> float:
    """Return log 1/share of the epoch that a slot of a cell holds."""
    return compute_jump_log_share(slot, find_in_slot(slot, (int(cell[PULLS]) - 1) // JUMP_STEP + 1), cell[RESTARTS])


@kernel
def learn_jumping(time: float, value: float, low: float, high: float, cell: Floats) -> None:
    """Add an outcome in [0, 1], counted in pulls already; `low` and `high` are log 1/δ' of either end."""
    pulls = int(cell[PULLS])
    newest, first = (pulls - 1) // JUMP_STEP + 1, FIRST_EPOCH + 3 * FIRST
    if cell[first] == 0.0:
        cell[first + 2] = time
    if (pulls - 1) % JUMP_STEP == 0:
        at = FIRST_EPOCH + 3 * get_jump_level(newest)
        cell[at], cell[at + 1], cell[at + 2] = 0.0, 0.0, time
    cell[AT] = max(time, cell[AT]) if pulls > 1 else time
    for slot in range(EPOCHS):
        at = FIRST_EPOCH + 3 * slot
        if find_in_slot(slot, newest) > 0 and cell[at] >= 0.0:
            cell[at] += 1.0
            cell[at + 1] += value
    if pulls < EVERY_ROW or pulls % ROWS == 0:
        update_jumping(low, high, cell)


@kernel
def update_jumping(low: float, high: float, cell: Floats) -> None:
    """Compute the bounds, and forget what a change makes obsolete: all if the mean rose, else what is older."""
    newest, since, changed = (int(cell[PULLS]) - 1) // JUMP_STEP + 1, 0.0, False
    for _ in range(EPOCHS):
        fallen = fill_jumping_ends(newest, low, high, cell)
        if fallen < 0:
            break
        since, changed = cell[FIRST_EPOCH + 3 * fallen + 2], True
        forget_jumping(since, cell)
    cell[TIGHTEST] = max(cell[TIGHTEST], cell[BELOW])
    risen, best = -1, 1.0 - cell[TIGHTEST]
    if cell[LOW] > best:
        for slot in range(EPOCHS):
            at, epoch = FIRST_EPOCH + 3 * slot, find_in_slot(slot, newest)
            if epoch > 0 and cell[at] > 0.0:
                lower = compute_average_lower(
                    cell[at], cell[at + 1], low + compute_jump_log_share(slot, epoch, cell[RESTARTS])
                )
                if lower > best:
                    risen, best = slot, lower
    if risen >= 0:
        since, changed = cell[FIRST_EPOCH + 3 * risen + 2], True
        forget_jumping(math.inf, cell)  # even the epoch that shows it may hold outcomes of before
    if changed:
        cell[CHANGED] = since if since != 0.0 else EARLIEST


@kernel
def fill_jumping_ends(newest: int, low: float, high: float, cell: Floats) -> int:
    """Write the tightest ends of all epochs; return the slot of the upper one if an older epoch is above it, or −1."""
    least, young, fallen = -1, 0.0, -1
    cell[LOW], cell[BELOW] = 0.0, 0.0
    for slot in range(EPOCHS):
        at, epoch = FIRST_EPOCH + 3 * slot, find_in_slot(slot, newest)
        if epoch > 0 and cell[at] > 0.0 and cell[at + 1] < (1.0 - cell[BELOW]) * cell[at]:  # upper ≥ mean
            upper = compute_average_upper(
                cell[at], cell[at + 1], high + compute_jump_log_share(slot, epoch, cell[RESTARTS])
            )
            if 1.0 - upper > cell[BELOW]:
                cell[BELOW], least, young = 1.0 - upper, slot, cell[at]
    for slot in range(EPOCHS):
        at, epoch = FIRST_EPOCH + 3 * slot, find_in_slot(slot, newest)
        if epoch > 0 and cell[at] > 0.0 and cell[at + 1] > cell[LOW] * cell[at]:  # lower ≤ mean
            lower = compute_average_lower(
                cell[at], cell[at + 1], low + compute_jump_log_share(slot, epoch, cell[RESTARTS])
            )
            cell[LOW] = max(cell[LOW], lower)
            if least >= 0 and cell[at] > young and lower > 1.0 - cell[BELOW]:
                fallen = least
    return fallen


@kernel
def forget_jumping(since: float, cell: Floats) -> None:
    """Forget the bounds, and the epochs whose first outcome is before a time; the first epoch begins anew."""
    newest = (int(cell[PULLS]) - 1) // JUMP_STEP + 1
    for slot in range(EPOCHS):
        at = FIRST_EPOCH + 3 * slot
        if find_in_slot(slot, newest) > 0 and cell[at] != 0.0 and cell[at + 2] < since:
            cell[at], cell[at + 1] = -1.0, 0.0
            if slot == FIRST:
                cell[at] = 0.0
                cell[RESTARTS] += 1.0
    cell[LOW], cell[BELOW], cell[TIGHTEST] = 0.0, 0.0, 0.0


@kernel
def get_forgotten(cell: Floats) -> float:
    """Return how many outcomes a cell had when it was last forgotten; 0: never."""
    return cell[PULLS] - cell[FIRST_EPOCH + 3 * FIRST] if cell[RESTARTS] > 0.0 else 0.0
