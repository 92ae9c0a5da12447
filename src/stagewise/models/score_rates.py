"""A signal in [low, low + 1] as rates by action and bucket of a score, pooled over neighbouring buckets.

If means do not fall from bucket to bucket, the mean of bucket b is at most the average over any run of buckets [i, j]
with i ≥ b, and at least that over any run with j ≤ b, so that

    U_b = min U([i, j]) over i ≥ b, j ≥ i        L_b = max L([i, j]) over j ≤ b, i ≤ j

for all b at once (docs/theory/averages.md). Runs of 1, 2, 4, 8… buckets share δ' alike; without pooling single buckets
have all of it. The ends of a single bucket are renewed at every outcome, those of longer runs whenever
the action's outcomes have grown by a sixteenth. Where the ends of a bucket cross, its means do fall somewhere, and from
then on the action is bounded by single buckets.

    memory:   as in `models.segment_rates` with a slot for every bucket; then for each action: outcomes | outcomes at
              the last renewal, −1 once means have fallen | low of every single bucket | 1 − its high | low of the runs
              that end there | 1 − the high of those that begin there
    settings: as in `models.segment_rates`
"""

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python, kernel
from stagewise.engine.layout import copy_values, pad_to_vector, read_block_fields
from stagewise.engine.model import Model
from stagewise.models.diagnostics import MeanFall
from stagewise.models.intervals import (
    compute_average_interval,
    lower_to_average_upper,
    raise_to_average_lower,
)
from stagewise.models.segment_rates import (
    BELOW,
    LEAST,
    LOW,
    MEAN,
    PULLS,
    RATES,
    SLOT_HEADER_SIZE,
    RatesBlock,
    SegmentRatesDiagnostics,
    check_rates,
    compute_levels,
    copy_to_more_actions,
    find_slot_of_row,
    get_cell,
    get_slot_offset,
    slot_size,
    view_rates,
)

SLOT_OFFSET = as_python(get_slot_offset)
OUTCOMES, RENEWED, FIRST_END = 0, 1, 2  # in an action's row of the table
GROWTH = 1.0625  # of the outcomes until runs are renewed
FALLEN = -1.0  # in the place of outcomes at the last renewal: means of the action fall, so its buckets are not pooled
ROUNDING = 1e-12


@kernel
def compute_table_row_size(block: RatesBlock) -> int:
    """Return the length of an action's row of the table of ends."""
    return FIRST_END + 4 * block.buckets


@kernel
def get_table_row(block: RatesBlock, action: int) -> int:
    """Return the offset of an action's row of the table of ends."""
    return block.memory + block.header + slot_size(block) * block.buckets + compute_table_row_size(block) * action


@kernel
def get_bucket_cell(block: RatesBlock, bucket: int, action: int) -> int:
    return get_cell(block, get_slot_offset(block, bucket), action)


def score_rates_size(layout: Ints, index: int, candidates: int, capacity: int) -> int:
    """Return the length of a block's memory."""
    block = read_block_fields(layout, index)
    buckets, row = block.per_candidate, FIRST_END + 4 * block.per_candidate
    return int(
        pad_to_vector(block.anchored + (SLOT_HEADER_SIZE + block.radius * block.size) * buckets + row * block.size)
    )


@kernel
def start_score_rates(layout: Ints, block: RatesBlock, settings: Floats, memory: Floats, work: Floats) -> None:
    """Assign a slot to every bucket."""
    memory[block.memory] = float(block.buckets)
    for bucket in range(block.buckets):
        slot = get_slot_offset(block, bucket)
        memory[slot], memory[slot + 1] = bucket + 1.0, bucket + 1.0


def are_buckets_valid(block: RatesBlock, memory: Floats) -> bool:
    """Return whether every bucket has its own slot, as `start_score_rates` assigns them."""
    slots = [SLOT_OFFSET(block, bucket) for bucket in range(block.buckets)]
    return bool(memory[block.memory] == block.buckets) and all(
        memory[slot] == memory[slot + 1] == bucket + 1.0 for bucket, slot in enumerate(slots)
    )


@kernel
def learn_score_rates(
    layout: Ints, block: RatesBlock, action: Floats, index: int, cached_index: int, step: float, cached_only: bool,
    observed: Floats, settings: Floats, memory: Floats, work: Floats,
) -> None:  # fmt: skip
    """Learn the outcome of an action in its context."""
    number, slot = int(action[0]), find_slot_of_row(block, memory, action)
    if slot < 0:
        return
    bucket, row = int(memory[slot]) - 1, get_table_row(block, number)
    first = get_bucket_cell(block, bucket, number)
    memory[first + PULLS] += 1.0
    memory[first + MEAN] += (observed[0] - settings[block.settings] - memory[first + MEAN]) / memory[first + PULLS]
    levels = compute_levels(block, settings, number, 1.0)
    ends = compute_average_interval(memory[first + PULLS], memory[first + MEAN], levels.low, levels.high)
    memory[row + FIRST_END + bucket] = ends.low
    memory[row + FIRST_END + block.buckets + bucket] = 1.0 - ends.high
    memory[row + OUTCOMES] += 1.0
    if is_pooled(block, number, memory) and memory[row + OUTCOMES] >= GROWTH * memory[row + RENEWED]:
        renew_runs(block, number, settings, memory)
    pool_ends(block, number, memory)


@kernel
def is_pooled(block: RatesBlock, action: int, memory: Floats) -> bool:
    """Return whether the buckets of an action are pooled: as declared, and as nothing has contradicted."""
    return block.pooled == 1 and memory[get_table_row(block, action) + RENEWED] != FALLEN


@kernel
def is_run(first: int, last: int) -> bool:
    """Return whether bounds of these buckets together are used: of 1, 2, 4, 8…"""
    return (last - first + 1) & (last - first) == 0


@kernel
def renew_runs(block: RatesBlock, action: int, settings: Floats, memory: Floats) -> None:
    """Write the ends of every run of two buckets or more: the tightest that ends, and that begins, at each bucket."""
    count, row, levels = block.buckets, get_table_row(block, action), compute_levels(block, settings, action, 1.0)
    lows, belows = row + FIRST_END + 2 * count, row + FIRST_END + 3 * count
    memory[row + RENEWED] = memory[row + OUTCOMES]
    for bucket in range(count):
        memory[lows + bucket], memory[belows + bucket] = 0.0, 0.0
    for i in range(count):
        pulls, total = 0.0, 0.0
        for j in range(i, count):
            first = get_bucket_cell(block, j, action)
            pulls += memory[first + PULLS]
            total += memory[first + PULLS] * memory[first + MEAN]
            if j > i and is_run(i, j) and pulls > 0.0:
                memory[lows + j] = raise_to_average_lower(pulls, total, levels.low, memory[lows + j])
                high = lower_to_average_upper(pulls, total, levels.high, 1.0 - memory[belows + i])
                memory[belows + i] = max(memory[belows + i], 1.0 - high)


@kernel
def pool_ends(block: RatesBlock, action: int, memory: Floats) -> None:
    """Write the ends of every bucket of an action; those of single buckets if pooled ones have crossed."""
    count, first, low, below = block.buckets, get_table_row(block, action) + FIRST_END, 0.0, 0.0
    pooled = is_pooled(block, action, memory)
    for bucket in range(count):
        low = max(low, memory[first + bucket], memory[first + 2 * count + bucket])
        memory[get_bucket_cell(block, bucket, action) + LOW] = low
    for place in range(count):
        bucket = count - 1 - place
        below = max(below, memory[first + count + bucket], memory[first + 3 * count + bucket])
        cell = get_bucket_cell(block, bucket, action)
        memory[cell + BELOW] = below
        if pooled and memory[cell + LOW] + below > 1.0 + ROUNDING:
            pooled = False
            memory[get_table_row(block, action) + RENEWED] = FALLEN
    if not pooled:
        for bucket in range(count):
            cell = get_bucket_cell(block, bucket, action)
            memory[cell + LOW], memory[cell + BELOW] = memory[first + bucket], memory[first + count + bucket]


@kernel
def renew_all_runs(block: RatesBlock, settings: Floats, memory: Floats, rows: Floats, values: Floats) -> None:
    """Renew the ends of every action: after a log, whose rows may be in any order."""
    for action in range(block.size):
        if is_pooled(block, action, memory):
            renew_runs(block, action, settings, memory)
        pool_ends(block, action, memory)


@kernel
def widen_score_rates(layout: Ints, old: RatesBlock, new: RatesBlock, memory: Floats, changed: Floats) -> None:
    """Copy everything; the number of buckets is fixed."""
    size = old.header + slot_size(old) * old.buckets + compute_table_row_size(old) * old.size
    copy_values(memory, old.memory, changed, new.memory, size)


ROW, ROW_SIZE = as_python(get_table_row), as_python(compute_table_row_size)


def copy_scores_to_more_actions(layout: Ints, old: RatesBlock, new: RatesBlock, memory: Floats, grown: Floats) -> None:
    """Copy the cells and the ends into a block with these actions first, and more."""
    copy_to_more_actions(layout, old, new, memory, grown)
    source, target, size = ROW(old, 0), ROW(new, 0), ROW_SIZE(old) * old.size
    grown[target : target + size] = memory[source : source + size]


class ScoreRatesDiagnostics(SegmentRatesDiagnostics):
    """Diagnostics of rates by action and bucket."""

    def list_falls(self, block: RatesBlock, settings: Floats, memory: Floats) -> list[MeanFall]:
        """Return every action whose means fall from a bucket to a later one, though they are declared not to."""
        return [
            find_fall(block, action, settings, memory)
            for action in range(block.size if block.pooled == 1 else 0)
            if memory[ROW(block, action) + RENEWED] == FALLEN
        ]


def find_fall(block: RatesBlock, action: int, settings: Floats, memory: Floats) -> MeanFall:
    """Return the fall between two buckets that is surest; the ends of runs are those of when they were last renewed."""
    first, count = ROW(block, action) + FIRST_END, block.buckets
    single_lows, belows, run_lows, run_belows = memory[first : first + 4 * count].reshape(4, count)
    lows, highs = np.maximum(single_lows, run_lows), 1.0 - np.maximum(belows, run_belows)
    return find_steepest(action, lows, highs, float(LEAST(block, settings)))


def find_steepest(action: int, lows: Floats, highs: Floats, base: float) -> MeanFall:
    """Return from which bucket to which, it or a later one, the lower end is furthest above the upper end."""
    gaps = np.where(np.tri(lows.size, dtype=bool).T, lows[:, None] - highs, -np.inf)
    before, after = np.unravel_index(int(np.argmax(gaps)), gaps.shape)
    return MeanFall(action, int(before), int(after), base + float(lows[before]), base + float(highs[after]))


SCORE_RATES = Model(
    "stagewise.models.score_rates:SCORE_RATES", view_rates, score_rates_size, start_score_rates, RATES.bounds,
    check_rates, learn_score_rates, None, widen_score_rates, RATES.sample,
    diagnostics=ScoreRatesDiagnostics(), estimates=1, is_valid=are_buckets_valid,
    add_actions=copy_scores_to_more_actions, finish_log=renew_all_runs,
)  # fmt: skip
