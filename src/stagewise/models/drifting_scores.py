"""Rates by action and bucket of a score whose means drift, pooled over neighbouring buckets.

If at every time means do not fall from bucket to bucket, every row of a run [i, j] with i ≥ b has a mean of at least
that of bucket b at its time. So for every epoch, with the sums and the mean age of the run's rows in it,

    p_b(t) ≤ U([i, j]) + ω̄        (docs/theory/drift.md, Buckets of a score)

The upper ends of runs are renewed when the action's outcomes have grown by a sixteenth, when an epoch begins and when a
change is found; they age until then. Single buckets bound those beside them at every decision. Where ends cross,
means do fall somewhere, and single buckets are used. Means that jump are pooled by single buckets alone: their epochs
begin at different times.

    memory:   as in `models.drifting_rates` with a slot for every bucket; then for each action: outcomes at the last
              renewal | newest epoch then | its time | 1 − high of the runs that begin at every bucket
    settings: as in `models.drifting_rates`
"""

from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python, kernel
from stagewise.engine.layout import pad_to_vector, read_block_fields
from stagewise.models.diagnostics import MeanFall
from stagewise.models.drifting_rates import (
    EpochView,
    JumpingRatesDiagnostics,
    MovingRatesDiagnostics,
    get_epochs,
    learn_jump,
    learn_moving,
    read_drifting,
)
from stagewise.models.epochs import (
    AT,
    BUDGET,
    CELL_SIZE,
    CHANGED,
    EPOCHS,
    FIRST_BEGIN,
    FIRST_EPOCH,
    NEWEST,
    PULLS,
    SLOPE,
    STEP,
    compute_high_now,
    compute_log_share,
    compute_low_now,
    get_begin,
)
from stagewise.models.intervals import compute_average_upper
from stagewise.models.score_rates import GROWTH, ROUNDING, SCORE_RATES, find_steepest, get_bucket_cell, is_run
from stagewise.models.segment_rates import (
    LEAST,
    SLOT_HEADER_SIZE,
    CellReading,
    RatesBlock,
    build_rates,
    compute_levels,
    copy_to_more_actions,
    get_slot_offset,
    slot_size,
)

OUTCOMES, RENEWED_EPOCH, RENEWED_AT, FIRST_RUN = 0, 1, 2, 3  # in an action's row of the table


class Runs(NamedTuple):
    """An action's row of the table of runs."""

    row: Floats


@kernel
def get_runs(block: RatesBlock, memory: Floats, action: int) -> Runs:
    """Return an action's row of the table of runs, a view of the memory."""
    length = FIRST_RUN + block.buckets
    at = block.memory + block.header + slot_size(block) * block.buckets + length * action
    return Runs(memory[at : at + length])


def drifting_scores_size(layout: Ints, index: int, candidates: int, capacity: int) -> int:
    """Return the length of a block's memory."""
    block = read_block_fields(layout, index)
    buckets, cells = block.per_candidate, (SLOT_HEADER_SIZE + block.radius * block.size) * block.per_candidate
    return int(pad_to_vector(block.anchored + cells + (FIRST_RUN + buckets) * block.size))


@kernel
def read_pooled(block: RatesBlock, row: Floats, settings: Floats, memory: Floats, cell: int) -> CellReading:
    """Return what is known of a bucket's mean at the time of a row, by all buckets of its action."""
    own = read_drifting(block, row, settings, memory, cell)
    if block.pooled == 0:
        return own
    view, place = get_epochs(block, settings, memory), cell - get_slot_offset(block, 0) - SLOT_HEADER_SIZE
    bucket, action = place // slot_size(block), place % slot_size(block) // block.cell
    time, runs, low = row[int(view.settings[0])], get_runs(block, memory, action).row, 0.0
    grown, least, most = view.settings[SLOPE] * abs(time - runs[RENEWED_AT]) / view.settings[STEP], own.least, own.most
    for other in range(block.buckets):
        at = get_bucket_cell(block, other, action)
        kept = memory[at : at + CELL_SIZE]
        low = max(low, compute_low_now(view.settings, time, kept))
        high = min(compute_high_now(view.settings, time, kept), 1.0 - max(runs[FIRST_RUN + other] - grown, 0.0))
        if low > high + ROUNDING:
            return own
        if other <= bucket:
            least = max(least, low)
        if other >= bucket:
            most = min(most, high)
    return CellReading(min(least, most), most, own.pulls, own.mean)


@kernel
def learn_moving_bucket(
    block: RatesBlock, row: Floats, value: float, low: float, high: float, settings: Floats, memory: Floats, cell: int
) -> None:
    """Add an outcome to a bucket, and renew the ends of runs if that is due."""
    before = memory[cell + CHANGED]
    learn_moving(block, row, value, low, high, settings, memory, cell)
    if block.pooled == 0:
        return
    view, action, outcomes = get_epochs(block, settings, memory), int(row[0]), 0.0
    runs, time = get_runs(block, memory, action).row, memory[cell + AT]
    for bucket in range(block.buckets):
        other = get_bucket_cell(block, bucket, action)
        outcomes += memory[other + PULLS]
        time = max(time, memory[other + AT]) if memory[other + PULLS] > 0.0 else time  # clocks of deciders differ
    is_due = outcomes >= GROWTH * runs[OUTCOMES] or view.header[NEWEST] != runs[RENEWED_EPOCH]
    if is_due or memory[cell + CHANGED] != before:
        runs[OUTCOMES] = outcomes
        renew_runs(block, view, action, time, settings, memory)


@kernel
def renew_runs(block: RatesBlock, view: EpochView, action: int, time: float, settings: Floats, memory: Floats) -> None:
    """Write the least upper end of the runs of two buckets or more that begin at each; no row is later than `time`."""
    count, runs, slope = block.buckets, get_runs(block, memory, action).row, view.settings[SLOPE] / view.settings[STEP]
    high = compute_levels(block, settings, action, 1.0).high
    runs[RENEWED_EPOCH], runs[RENEWED_AT] = view.header[NEWEST], time
    for first in range(count):
        runs[FIRST_RUN + first] = 0.0
        for i in range(EPOCHS):
            epoch, pulls, total, times = view.header[FIRST_BEGIN + i], 0.0, 0.0, 0.0
            begin = get_begin(view.header, view.settings, epoch)
            for last in range(first, count if epoch > 0.0 else first):
                at = get_bucket_cell(block, last, action) + FIRST_EPOCH + 3 * i
                if not memory[at] > 0.0:  # none, or forgotten
                    continue
                pulls += memory[at]
                total += memory[at + 1]
                times += memory[at + 2]
                added = view.settings[BUDGET] + slope * (time - begin - times / pulls)
                is_longer = last > first and is_run(first, last)
                if is_longer and total / pulls + added < 1.0 - runs[FIRST_RUN + first]:  # upper ≥ mean
                    upper = compute_average_upper(pulls, total, high + compute_log_share(int(epoch)))
                    runs[FIRST_RUN + first] = max(runs[FIRST_RUN + first], 1.0 - (upper + added))


@kernel
def renew_all_runs(block: RatesBlock, settings: Floats, memory: Floats, rows: Floats, values: Floats) -> None:
    """Renew the ends of runs of every action: after a log, or after something was forgotten."""
    for action in range(block.size if block.pooled == 1 else 0):
        time, outcomes = 0.0, 0.0
        for bucket in range(block.buckets):
            at = get_bucket_cell(block, bucket, action)
            time = max(time, memory[at + AT]) if outcomes > 0.0 else memory[at + AT]
            outcomes += memory[at + PULLS]
        if outcomes > 0.0:
            get_runs(block, memory, action).row[OUTCOMES] = outcomes
            renew_runs(block, get_epochs(block, settings, memory), action, time, settings, memory)


@kernel
def widen_drifting_scores(layout: Ints, old: RatesBlock, new: RatesBlock, memory: Floats, changed: Floats) -> None:
    """Copy everything; the number of buckets is fixed."""
    size = old.header + slot_size(old) * old.buckets + (FIRST_RUN + old.buckets) * old.size
    for i in range(size):
        changed[new.memory + i] = memory[old.memory + i]


RUNS, RENEW_ALL, EPOCHS_OF = as_python(get_runs), as_python(renew_all_runs), as_python(get_epochs)
LOW_NOW, HIGH_NOW = as_python(compute_low_now), as_python(compute_high_now)
BUCKET_CELL = as_python(get_bucket_cell)


def copy_to_more(layout: Ints, old: RatesBlock, new: RatesBlock, memory: Floats, grown: Floats) -> None:
    """Copy the cells and the runs into a block with these actions first, and more."""
    copy_to_more_actions(layout, old, new, memory, grown)
    for action in range(old.size):
        RUNS(new, grown, action).row[:] = RUNS(old, memory, action).row


def list_falls(block: RatesBlock, settings: Floats, memory: Floats) -> list[MeanFall]:
    """Return every action whose means fall from a bucket to a later one at the time of its last outcome."""
    view, falls = EPOCHS_OF(block, settings, memory), []
    for action in range(block.size if block.pooled == 1 else 0):
        cells = [BUCKET_CELL(block, bucket, action) for bucket in range(block.buckets)]
        kept, runs = [memory[at : at + CELL_SIZE] for at in cells], RUNS(block, memory, action).row
        time = max((one[AT] for one in kept if one[PULLS] > 0.0), default=None)
        if time is None:
            continue
        grown = view.settings[SLOPE] * abs(time - runs[RENEWED_AT]) / view.settings[STEP]
        lows = np.array([LOW_NOW(view.settings, time, one) for one in kept])
        highs = np.minimum([HIGH_NOW(view.settings, time, one) for one in kept], 1.0)
        highs = np.minimum(highs, 1.0 - np.maximum(runs[FIRST_RUN:] - grown, 0.0))
        fall = find_steepest(action, lows, highs, float(LEAST(block, settings)))
        falls += [fall] * (fall.low > fall.high + ROUNDING)
    return falls


class MovingScoresDiagnostics(MovingRatesDiagnostics):
    """Diagnostics of the buckets of a score whose rates move as declared."""

    list_falls = staticmethod(list_falls)
    read_cell = staticmethod(as_python(read_pooled))

    def forget(
        self, block: Any, settings: Floats, memory: Floats, index: int, since: float, changed: float = 0.0
    ) -> None:
        super().forget(block, settings, memory, index, since, changed)
        RENEW_ALL(block, settings, memory, memory[:0], memory[:0])


MOVING_SCORES = SCORE_RATES._replace(
    name="stagewise.models.drifting_scores:MOVING_SCORES", size=drifting_scores_size, widen=widen_drifting_scores,
    add_actions=copy_to_more, finish_log=renew_all_runs, diagnostics=MovingScoresDiagnostics(),
    **build_rates(read_pooled, learn_moving_bucket)._asdict(),
)  # fmt: skip


class JumpingScoresDiagnostics(JumpingRatesDiagnostics):
    """Diagnostics of the buckets of a score whose rates jump."""

    list_falls = staticmethod(list_falls)
    read_cell = staticmethod(as_python(read_pooled))


JUMPING_SCORES = MOVING_SCORES._replace(
    name="stagewise.models.drifting_scores:JUMPING_SCORES", finish_log=None, diagnostics=JumpingScoresDiagnostics(),
    **build_rates(read_pooled, learn_jump)._asdict(),
)  # fmt: skip
