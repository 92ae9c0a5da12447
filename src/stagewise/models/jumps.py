"""Bounds of a mean that jumps: sums of an action's outcomes since several of them, and a test whether the mean changed.

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
from stagewise.models.average_bounds import compute_average_lower, compute_average_upper
from stagewise.models.epochs import (
    AT,
    BELOW,
    CHANGED,
    EARLIEST,
    EPOCHS,
    EVERY_ROW,
    EXPIRY,
    FIRST_EPOCH,
    LOW,
    PULLS,
    ROWS,
    TIGHTEST,
)

STEP = 40  # outcomes
LEVELS = EPOCHS - 2  # of the grid; the longest epochs begin every 2^LEVELS steps
LONGEST, FIRST = LEVELS, LEVELS + 1  # slots
LOG_SHARE = math.log(2.0) + math.log(LEVELS + 1.0)  # of the epochs of one level, after the first epoch
FIRST_SHARE, RESTART_SHARE = 0.45, 0.05  # of the first epoch, and of all that begin anew in its place
RESTARTS = EXPIRY  # in a cell, whose bounds never expire


@kernel
def get_level(epoch: int) -> int:
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
def compute_log_share(slot: int, epoch: int, restarts: float) -> float:
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
    return compute_log_share(slot, find_in_slot(slot, (int(cell[PULLS]) - 1) // STEP + 1), cell[RESTARTS])


@kernel
def learn_jumping(time: float, value: float, low: float, high: float, cell: Floats) -> None:
    """Add an outcome in [0, 1], counted in pulls already; `low` and `high` are log 1/δ' of either end."""
    pulls = int(cell[PULLS])
    newest, first = (pulls - 1) // STEP + 1, FIRST_EPOCH + 3 * FIRST
    if cell[first] == 0.0:
        cell[first + 2] = time
    if (pulls - 1) % STEP == 0:
        at = FIRST_EPOCH + 3 * get_level(newest)
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
    newest, since, changed = (int(cell[PULLS]) - 1) // STEP + 1, 0.0, False
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
                    cell[at], cell[at + 1], low + compute_log_share(slot, epoch, cell[RESTARTS])
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
            upper = compute_average_upper(cell[at], cell[at + 1], high + compute_log_share(slot, epoch, cell[RESTARTS]))
            if 1.0 - upper > cell[BELOW]:
                cell[BELOW], least, young = 1.0 - upper, slot, cell[at]
    for slot in range(EPOCHS):
        at, epoch = FIRST_EPOCH + 3 * slot, find_in_slot(slot, newest)
        if epoch > 0 and cell[at] > 0.0 and cell[at + 1] > cell[LOW] * cell[at]:  # lower ≤ mean
            lower = compute_average_lower(cell[at], cell[at + 1], low + compute_log_share(slot, epoch, cell[RESTARTS]))
            cell[LOW] = max(cell[LOW], lower)
            if least >= 0 and cell[at] > young and lower > 1.0 - cell[BELOW]:
                fallen = least
    return fallen


@kernel
def forget_jumping(since: float, cell: Floats) -> None:
    """Forget the bounds, and the epochs whose first outcome is before a time; the first epoch begins anew."""
    newest = (int(cell[PULLS]) - 1) // STEP + 1
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
