"""Bounds of a mean that jumps: sums of an action's outcomes since several of them, and a test whether the mean changed.

Nothing is declared but that the mean is constant between changes. Epochs begin every STEP outcomes of a cell; at any
time, one is kept of each level (b − 1 = (2i − 1) 2^k), one of the longest, and the first. With U_b and L_b of
`average_bounds` at the share of each, V is the least U_b since the last change. L_e > V shows a change: if V is that of
a younger epoch the mean fell, and what is older is forgotten; else all is, since e may hold outcomes of before. Until
then, with m outcomes since the change, the mean is at most V + U_e − L_e, where e has about m/4 outcomes or more
(docs/theory/drift.md, Theorem 2). The upper bound is the least U_b of now, so that users may differ.

    cell: as in `models.epochs`, with slots by level, then the longest, then the first, and for each n, −1: forgotten |
          S, of the first once it is forgotten: the pulls until then | time of its first outcome
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
def compute_log_share(slot: int, epoch: int) -> float:
    """Return log 1/share: ½ of the first, ½ · 1/(LEVELS + 1) · 1/i(i + 1) of the i-th of each level."""
    if slot == FIRST:
        return math.log(2.0)
    i = (epoch - 1) // (1 << slot)
    i = i if slot == LONGEST else (i + 1) // 2
    return LOG_SHARE + math.log(i * (i + 1.0))


@kernel
def learn_jumping(time: float, value: float, low: float, high: float, cell: Floats) -> None:
    """Add an outcome in [0, 1], counted in pulls already; `low` and `high` are log 1/δ' of either end."""
    pulls = int(cell[PULLS])
    newest = (pulls - 1) // STEP + 1
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
                lower = compute_average_lower(cell[at], cell[at + 1], low + compute_log_share(slot, epoch))
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
    least, begun, fallen = -1, 0, -1
    cell[LOW], cell[BELOW] = 0.0, 0.0
    for slot in range(EPOCHS):
        at, epoch = FIRST_EPOCH + 3 * slot, find_in_slot(slot, newest)
        if epoch > 0 and cell[at] > 0.0 and cell[at + 1] < (1.0 - cell[BELOW]) * cell[at]:  # upper ≥ mean
            upper = compute_average_upper(cell[at], cell[at + 1], high + compute_log_share(slot, epoch))
            if 1.0 - upper > cell[BELOW]:
                cell[BELOW], least, begun = 1.0 - upper, slot, epoch
    for slot in range(EPOCHS):
        at, epoch = FIRST_EPOCH + 3 * slot, find_in_slot(slot, newest)
        if epoch > 0 and cell[at] > 0.0 and cell[at + 1] > cell[LOW] * cell[at]:  # lower ≤ mean
            lower = compute_average_lower(cell[at], cell[at + 1], low + compute_log_share(slot, epoch))
            cell[LOW] = max(cell[LOW], lower)
            if epoch < begun and lower > 1.0 - cell[BELOW]:
                fallen = least
    return fallen


@kernel
def forget_jumping(since: float, cell: Floats) -> None:
    """Forget the bounds, and the epochs whose first outcome is before a time."""
    newest = (int(cell[PULLS]) - 1) // STEP + 1
    for slot in range(EPOCHS):
        at = FIRST_EPOCH + 3 * slot
        if find_in_slot(slot, newest) > 0 and cell[at + 2] < since:
            cell[at] = -1.0
            if slot == FIRST:
                cell[at + 1] = cell[PULLS]
    cell[LOW], cell[BELOW], cell[TIGHTEST] = 0.0, 0.0, 0.0


@kernel
def get_forgotten(cell: Floats) -> float:
    """Return how many outcomes a cell had when it was last forgotten; 0: never."""
    return cell[FIRST_EPOCH + 3 * FIRST + 1] if cell[FIRST_EPOCH + 3 * FIRST] < 0.0 else 0.0
