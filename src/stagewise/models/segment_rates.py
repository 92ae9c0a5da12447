"""A signal in [low, low + 1] as rates: a mean and a confidence interval for every action in every segment.

    memory:   number of segments | for each slot: the segment + 1, or 0 | its position in order of arrival, from 1 |
              for each action a cell: pulls | mean | lowest plausible mean, both above low | distance of the highest
              plausible mean from the upper end, so that an empty cell is all zeros
              where the mean drifts, a cell is longer, and a header follows the number of segments (see `models.epochs`)
    settings: low, declared bound of the safe action's mean, log 1/δ' of lower ends and of upper ends |
              log 1/share of every action (K,) | those of `models.epochs`, where the mean drifts

A segment gets a slot at its first outcome, by open addressing. The i-th takes δ'/i(i+1) of δ', so that the number of
segments need not be known; without segments the only one takes all of δ'. Ends bound the average mean of the users who
got the action in the segment so far (see `models.average_bounds`). This average moves with the users, so ends are those
of now, not the tightest so far. The limit holds in every segment separately. Rows of features are as in
`models.per_action_ridge`.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python, kernel
from stagewise.engine.layout import (
    CAPACITY,
    SAFE_INDEX,
    ModelBlock,
    get_model_block,
    get_posterior_scale,
    pad_to_vector,
    read_block_fields,
)
from stagewise.engine.limits import ALARM, get_limit
from stagewise.engine.model import Model, cache_nothing, start_with_zeros
from stagewise.engine.random import POSTERIOR, normal
from stagewise.engine.workspace import CENTRE, ESTIMATE, HALF, SAMPLED, clip_to_bounds
from stagewise.models.average_bounds import compute_average_interval
from stagewise.models.diagnostics import Evidence, FoundChange, Marks, MeanChange, ModelDiagnostics, Sums, UpperForecast
from stagewise.models.epochs import (
    AT,
    CHANGED,
    EARLIEST,
    NEWEST,
    SETTINGS_SIZE,
    TIME_COLUMN,
    advance_cell,
    advance_header,
    compute_high_now,
    compute_low_now,
    find_epoch,
    find_longest,
    forget_before,
    learn_in_epochs,
    update_ends,
)
from stagewise.models.epochs import CELL_SIZE as EPOCH_CELL_SIZE
from stagewise.models.epochs import HEADER_SIZE as EPOCH_HEADER_SIZE
from stagewise.models.intervals import Interval, draw_rate
from stagewise.models.jumps import forget_jumping, get_forgotten, learn_jumping, update_jumping
from stagewise.models.per_action_ridge import apply_safe_declaration, check_safe_declaration
from stagewise.models.rate_changes import RATE_MARKS, find_pooled_shifts, find_shifts, restart_actions

SLOT_HEADER_SIZE, CELL_SIZE = 2, 4  # sizes of a segment's header and of a cell
PULLS, MEAN, LOW, BELOW = 0, 1, 2, 3  # in a cell
MOVES, JUMPS = 1, 2  # how means drift; 0: they are constant
NUMBERS = 4  # in the settings, before the shares of the actions


@kernel
def get_segment_column(block: ModelBlock) -> int:
    """Return the feature column that holds the segment; −1: no segments."""
    return block.detail


@kernel
def drifts(block: ModelBlock) -> bool:
    """Return whether the mean drifts, so that sums are kept by epoch."""
    return block.radius > 0


@kernel
def jumps(block: ModelBlock) -> bool:
    """Return whether the mean is constant between jumps, which are found."""
    return block.radius == JUMPS


@kernel
def cell_size(block: ModelBlock) -> int:
    """Return the length of a cell."""
    return EPOCH_CELL_SIZE if drifts(block) else CELL_SIZE


@kernel
def slot_size(block: ModelBlock) -> int:
    """Return the length of a segment's slot."""
    return SLOT_HEADER_SIZE + cell_size(block) * block.size


@kernel
def get_header_size(block: ModelBlock) -> int:
    """Return the length of what precedes the slots."""
    return 1 + EPOCH_HEADER_SIZE if drifts(block) else 1


class EpochView(NamedTuple):
    """What the cells of a block with drift share: views of the memory and of the settings."""

    header: Floats
    settings: Floats


@kernel
def get_epochs(block: ModelBlock, settings: Floats, memory: Floats) -> EpochView:
    """Return the header and the settings of the epochs of a block with drift."""
    at = block.settings + NUMBERS + block.size
    return EpochView(memory[block.memory + 1 : block.memory + 1 + EPOCH_HEADER_SIZE], settings[at : at + SETTINGS_SIZE])


@kernel
def get_time(view: EpochView, row: Floats) -> float:
    """Return the time of a row's decision."""
    return row[int(view.settings[TIME_COLUMN])]


@kernel
def begin_epochs(block: ModelBlock, view: EpochView, time: float, memory: Floats) -> None:
    """Begin the epochs up to a time, in every cell."""
    newest = find_epoch(view.header, view.settings, time)
    if newest <= int(view.header[NEWEST]):
        return
    for slot in range(count_slots(block, memory)):
        first = get_slot_offset(block, slot) + SLOT_HEADER_SIZE
        for action in range(block.size):
            at = first + EPOCH_CELL_SIZE * action
            if memory[at] > 0.0:
                advance_cell(view.header, newest, memory[at : at + EPOCH_CELL_SIZE])
    advance_header(view.header, view.settings, newest, time)


@kernel
def count_slots(block: ModelBlock, memory: Floats) -> int:
    """Return the number of slots for segments, or for the buckets of a score (see `models.score_rates`)."""
    if block.per_candidate > 0:
        return block.per_candidate
    return int(memory[CAPACITY]) if get_segment_column(block) >= 0 else 1


@kernel
def get_slot_offset(block: ModelBlock, slot: int) -> int:
    """Return the offset of a slot."""
    return block.memory + get_header_size(block) + slot * slot_size(block)


@kernel
def assign_slot(block: ModelBlock, memory: Floats, slot: int, segment: float) -> None:
    """Assign a slot to a segment, if it is new."""
    if memory[slot] == 0.0:
        memory[block.memory] += 1.0
        memory[slot], memory[slot + 1] = segment + 1.0, memory[block.memory]


@kernel
def find_slot_of_row(block: ModelBlock, memory: Floats, row: Floats) -> int:
    """Return the offset of the slot of a row's segment, or of the free slot it would get; −1: there is none."""
    if get_segment_column(block) < 0:
        return get_slot_offset(block, 0)
    segment = row[get_segment_column(block)]
    if block.per_candidate > 0:
        return get_slot_offset(block, int(segment)) if 0.0 <= segment < block.per_candidate else -1
    return find_slot(block, memory, segment)


@kernel
def find_slot(block: ModelBlock, memory: Floats, segment: float) -> int:
    """Return the offset of the slot of a segment, or of the free slot it would get; −1: none is free."""
    slots, key = count_slots(block, memory), segment + 1.0
    slot = int(key) % slots
    for _ in range(slots):
        at = get_slot_offset(block, slot)
        if memory[at] == key or memory[at] == 0.0:
            return at
        slot = slot + 1 if slot + 1 < slots else 0
    return -1


@kernel
def compute_cell_ends(block: ModelBlock, settings: Floats, pulls: float, mean: float, spent: float) -> Interval:
    """Return the ends of a cell's mean; `spent` is log 1/its share of δ'."""
    at = block.settings
    return compute_average_interval(pulls, mean, settings[at + 2] + spent, settings[at + 3] + spent)


@kernel
def compute_spent(block: ModelBlock, settings: Floats, action: int, position: float) -> float:
    """Return log 1/share of δ' of an action in the segment that arrived at this position, from 1, or in a bucket."""
    spent = settings[block.settings + NUMBERS + action]
    if block.per_candidate > 0:
        return spent + math.log((1.0 + block.reflected) * block.per_candidate)
    return spent + math.log(position * (position + 1.0)) if get_segment_column(block) >= 0 else spent


@kernel
def learn_segment_rates(block: ModelBlock, row: Floats, value: float, settings: Floats, memory: Floats) -> None:
    """Learn the outcome of an action in its context; a slot must be free."""
    at, action, slot = block.settings, int(row[0]), find_slot_of_row(block, memory, row)
    if slot < 0:
        return
    first = slot + SLOT_HEADER_SIZE + cell_size(block) * action
    cell = memory[first : first + cell_size(block)]
    if get_segment_column(block) >= 0:
        assign_slot(block, memory, slot, row[get_segment_column(block)])
    spent = compute_spent(block, settings, action, memory[slot + 1])
    cell[PULLS] += 1.0
    cell[MEAN] += (value - settings[at] - cell[MEAN]) / cell[PULLS]
    if drifts(block):
        view = get_epochs(block, settings, memory)
        low, high = settings[at + 2] + spent, settings[at + 3] + spent
        if jumps(block):
            learn_jumping(get_time(view, row), value - settings[at], low, high, cell)
            return
        begin_epochs(block, view, get_time(view, row), memory)
        learn_in_epochs(view.header, view.settings, get_time(view, row), value - settings[at], low, high, cell)
        return
    ends = compute_cell_ends(block, settings, cell[PULLS], cell[MEAN], spent)
    cell[LOW], cell[BELOW] = ends.low, 1.0 - ends.high


@kernel
def forget_cells(
    block: ModelBlock, settings: Floats, memory: Floats, action: int, since: float, changed: float
) -> None:
    """Forget what was learned of an action, in every segment, in epochs that began before a time.

    `changed` is the time of the change that was found; 0: a person said so.
    """
    view, at = get_epochs(block, settings, memory), block.settings
    for slot in range(count_slots(block, memory)):
        offset = get_slot_offset(block, slot)
        first = offset + SLOT_HEADER_SIZE + EPOCH_CELL_SIZE * action
        if memory[first] > 0.0:
            cell, spent = (
                memory[first : first + EPOCH_CELL_SIZE],
                compute_spent(block, settings, action, memory[offset + 1]),
            )
            low, high = settings[at + 2] + spent, settings[at + 3] + spent
            if changed != 0.0:
                cell[CHANGED] = changed
            if jumps(block):
                forget_jumping(since, cell)
                update_jumping(low, high, cell)
            else:
                forget_before(view.header, view.settings, since, cell)
                update_ends(view.header, view.settings, low, high, cell)


class CellTally(NamedTuple):
    """What a cell's estimate is made of."""

    pulls: float
    mean: float


@kernel
def compute_recent_tally(block: ModelBlock, memory: Floats, first: int) -> CellTally:
    """Return the outcomes of a cell; where its mean drifts, those of the longest epoch that is kept."""
    if not drifts(block):
        return CellTally(memory[first + PULLS], memory[first + MEAN])
    oldest = find_longest(memory[first : first + EPOCH_CELL_SIZE])
    if oldest < 0:
        return CellTally(0.0, 0.0)
    return CellTally(memory[first + oldest], memory[first + oldest + 1] / memory[first + oldest])


@kernel
def compute_segment_bounds(
    layout: Ints, block: ModelBlock, rows: Floats, settings: Floats, memory: Floats, bounds: Floats
) -> None:
    """Write the bounds of every action in its context, and of the safe one."""
    at, signal = block.settings, block.first
    centre, half, low = bounds[signal, CENTRE], bounds[signal, HALF], settings[at]
    slot = find_slot_of_row(block, memory, rows[0])
    for action in range(block.size):
        least, most, fit = 0.0, 1.0, 0.5
        if slot >= 0:
            first = slot + SLOT_HEADER_SIZE + cell_size(block) * action
            least, most = memory[first + LOW], 1.0 - memory[first + BELOW]
            if drifts(block):
                view = get_epochs(block, settings, memory)
                cell, time = memory[first : first + EPOCH_CELL_SIZE], get_time(view, rows[0])
                least, most = compute_low_now(view.settings, time, cell), compute_high_now(view.settings, time, cell)
            tally = compute_recent_tally(block, memory, first)
            fit = tally.mean if tally.pulls > 0.0 else 0.5 * (least + most)
        centre[action], half[action] = low + 0.5 * (least + most), 0.5 * (most - least)
        bounds[signal, ESTIMATE, action] = low + min(max(fit, least), most)
    apply_safe_declaration(layout, signal, settings[at + 1], bounds)


@kernel
def copy_segment_rates(old: ModelBlock, new: ModelBlock, memory: Floats, changed: Floats, slots: int) -> None:
    """Copy the cells into another, empty memory with more slots; `slots` is the old number."""
    for i in range(get_header_size(old)):
        changed[new.memory + i] = memory[old.memory + i]
    for slot in range(slots):
        source = get_slot_offset(old, slot)
        if memory[source] != 0.0 or get_segment_column(old) < 0:
            new_slot = int(memory[source]) % int(changed[CAPACITY]) if get_segment_column(old) >= 0 else 0
            while changed[get_slot_offset(new, new_slot)] != 0.0:
                new_slot = new_slot + 1 if new_slot + 1 < int(changed[CAPACITY]) else 0
            target = get_slot_offset(new, new_slot)
            for i in range(slot_size(old)):
                changed[target + i] = memory[source + i]


@kernel
def draw_segment_rates(
    layout: Ints, block: ModelBlock, rows: Floats, posterior_scale: float, settings: Floats, memory: Floats,
    bounds: Floats, seed: int, run: int, round_: int,
) -> None:  # fmt: skip
    """Write a posterior draw of every action's mean, and of the safe action's, given its cell.

    The prior mean of a cost is its limit, so a cell with few plays is neither excluded nor free.
    """
    at, drawn, low = block.first, bounds[block.first, SAMPLED], settings[block.settings]
    prior = 0.5 if at == 0 else min(max(get_limit(layout, settings, at - 1) - low, 1e-6), 0.5)
    slot = find_slot_of_row(block, memory, rows[0])
    for action in range(block.size):
        pulls, ones = 0.0, 0.0
        if slot >= 0:
            tally = compute_recent_tally(block, memory, slot + SLOT_HEADER_SIZE + cell_size(block) * action)
            pulls, ones = tally.pulls, tally.pulls * tally.mean
        deviate = posterior_scale * normal(seed, run, round_, POSTERIOR + int(at), action)
        drawn[action] = low + draw_rate(ones, pulls, prior, deviate)
    drawn[block.size] = drawn[layout[SAFE_INDEX]]
    clip_to_bounds(block, bounds)


class ActionTally(NamedTuple):
    """Statistics of one action over all segments."""

    pulls: float
    mean: float


@kernel
def compute_action_tally(block: ModelBlock, memory: Floats, action: int, settings: Floats) -> ActionTally:
    """Return the statistics of an action over all segments."""
    pulls, total = 0.0, 0.0
    for slot in range(count_slots(block, memory)):
        first = get_slot_offset(block, slot) + SLOT_HEADER_SIZE + cell_size(block) * action
        pulls += memory[first]
        total += memory[first] * memory[first + MEAN]
    return ActionTally(pulls, settings[block.settings] + total / max(pulls, 1.0))


@kernel
def count_free_segment_rows(layout: Ints, memory: Floats, index: int, rows: Floats, values: Floats) -> int:
    """Return how many of these rows (n, D) can be learned before half of the slots may be taken; NaN is not learned."""
    block = get_model_block(layout, memory, index)
    column, count, free = get_segment_column(block), rows.shape[0], (int(memory[CAPACITY]) + 1) // 2
    if column < 0:
        return count + 1
    free = max(free - count_segments(block, memory), 0)
    if free >= count:
        return free
    for row in range(count):
        if free == 0:
            return row
        if values[row, block.first] == values[row, block.first]:
            slot = find_slot(block, memory, rows[row, column])
            if slot < 0 or memory[slot] == 0.0:
                free -= 1
    return count


def reserve_segments(layout: Ints, memory: Floats, index: int, count: int) -> int:
    """Return twice the number of segments if there are so many more."""
    return 2 * (count + MET(BLOCK(layout, memory, index), memory))


def add_segments(layout: Ints, memory: Floats, index: int, rows: Floats) -> None:
    """Assign slots to the segments of a log's rows in the order of their keys; there must be room."""
    block = BLOCK(layout, memory, index)
    for segment in np.unique(rows[:, block.detail]) if block.detail >= 0 else ():
        ASSIGN(block, memory, FIND(block, memory, segment), segment)


@kernel
def fill_tallies(block: ModelBlock, memory: Floats, pulls: Floats, totals: Floats) -> None:
    """Write pulls and summed outcomes, above `low`, of every cell, in order of the segments' arrival."""
    for slot in range(count_slots(block, memory)):
        at = get_slot_offset(block, slot)
        first_cell = (int(memory[at + 1]) - 1 if get_segment_column(block) >= 0 else 0) * block.size
        if first_cell >= 0:
            for action in range(block.size):
                first = at + SLOT_HEADER_SIZE + cell_size(block) * action
                pulls[first_cell + action] = memory[first]
                totals[first_cell + action] = memory[first] * memory[first + MEAN]


def are_slots_valid(block: ModelBlock, memory: Floats) -> bool:
    """Return whether the used slots are numbered from 1 to the number of segments."""
    if block.detail < 0:
        return True
    first, length, slots = OFFSET(block, 0), SLOT_SIZE(block), SLOTS(block, memory)
    table = memory[first : first + slots * length].reshape(slots, length)
    numbers = np.sort(table[table[:, 0] != 0.0, 1])
    return bool(numbers.size == memory[block.memory] and np.array_equal(numbers, np.arange(1.0, numbers.size + 1.0)))


@kernel
def fill_rates(block: ModelBlock, rows: Floats, settings: Floats, memory: Floats, rates: Floats) -> None:
    """Write the mean of every action with data, in its context."""
    slot = find_slot_of_row(block, memory, rows[0])
    for action in range(block.size):
        if slot >= 0:
            tally = compute_recent_tally(block, memory, slot + SLOT_HEADER_SIZE + cell_size(block) * action)
            if tally.pulls > 0.0:
                rates[action] = settings[block.settings] + tally.mean


@kernel
def fill_pulls(block: ModelBlock, rows: Floats, memory: Floats, pulls: Floats) -> None:
    """Write the number of outcomes of every action, in its context."""
    slot = find_slot_of_row(block, memory, rows[0])
    for action in range(block.size):
        pulls[action] = memory[slot + SLOT_HEADER_SIZE + cell_size(block) * action] if slot >= 0 else 0.0


@kernel
def get_lowest_value(block: ModelBlock, settings: Floats) -> float:
    """Return the lowest possible value of the signal."""
    return settings[block.settings]


@kernel
def count_segments(block: ModelBlock, memory: Floats) -> int:
    """Return the number of segments with data."""
    return int(memory[block.memory])


@kernel
def fill_segments(block: ModelBlock, memory: Floats, numbers: Floats, observed: Floats) -> None:
    """Write the number of every segment (S,) in order of arrival, and its statistics (S, K, 3).

    For every action: the pulls, the mean and the highest plausible mean, both above `low`.
    """
    for slot in range(count_slots(block, memory)):
        at = get_slot_offset(block, slot)
        position = int(memory[at + 1]) - 1
        if memory[at] != 0.0:
            numbers[position] = memory[at] - 1.0
            for action in range(block.size):
                first = at + SLOT_HEADER_SIZE + cell_size(block) * action
                observed[position, action, 0], observed[position, action, 1] = memory[first], memory[first + MEAN]
                observed[position, action, 2] = 1.0 - memory[first + BELOW]


def segment_rates_size(layout: Ints, index: int, candidates: int, capacity: int) -> int:
    """Return the length of a block's memory."""
    block = read_block_fields(layout, index)
    slots = capacity if block.detail >= 0 else 1
    return int(pad_to_vector(HEADER_SIZE(block) + SLOT_SIZE(block) * slots))


@kernel
def fill_segment_bounds(
    layout: Ints, block: ModelBlock, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    work: Floats,
) -> None:  # fmt: skip
    """Write the bounds of every action in its context, and of the safe one."""
    compute_segment_bounds(layout, block, features, settings, memory, bounds)


@kernel
def check_segment_rates(layout: Ints, block: ModelBlock, settings: Floats, memory: Floats, bounds: Floats) -> int:
    """Return the code of a contradicted cost of the safe action, or 0."""
    if settings[ALARM] == math.inf:
        return 0
    return check_safe_declaration(layout, block.first, settings[block.settings + 1], bounds)


@kernel
def learn_segment_rates_block(
    layout: Ints, block: ModelBlock, action: Floats, index: int, cached_index: int, step: float, cached_only: bool,
    observed: Floats, settings: Floats, memory: Floats, work: Floats,
) -> None:  # fmt: skip
    """Learn the outcome of an action in its context."""
    learn_segment_rates(block, action, observed[0], settings, memory)


@kernel
def widen_segment_rates(layout: Ints, old: ModelBlock, new: ModelBlock, memory: Floats, changed: Floats) -> None:
    """Copy the cells into a memory with more slots."""
    copy_segment_rates(old, new, memory, changed, count_slots(old, memory))


@kernel
def sample_segment_rates(
    layout: Ints, block: ModelBlock, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    seed: int, run: int, round_: int, work: Floats,
) -> None:  # fmt: skip
    """Write a posterior draw of every action's mean."""
    draw_segment_rates(
        layout, block, features, get_posterior_scale(settings), settings, memory, bounds, seed, run, round_
    )


def copy_to_more_actions(layout: Ints, old: ModelBlock, new: ModelBlock, memory: Floats, grown: Floats) -> None:
    """Copy the cells into a block with these actions first, and more."""
    header, slot_length = HEADER_SIZE(old), SLOT_SIZE(old)
    grown[new.memory : new.memory + header] = memory[old.memory : old.memory + header]
    for slot in range(SLOTS(old, memory)):
        source, target = OFFSET(old, slot), OFFSET(new, slot)
        grown[target : target + slot_length] = memory[source : source + slot_length]


def is_pooled(block: Any) -> bool:
    """Return whether the segments of an action are also tested together for a jump."""
    return bool(block.radius == JUMPS and block.detail >= 0)


def compute_recent_mean(cells: Floats) -> float:
    """Return the mean of cells (n, length) over the longest epochs that are kept; NaN: there is no outcome."""
    pairs = [cell[at : at + 2] for cell in cells if (at := FIND_LONGEST(cell)) >= 0]
    pulls, total = np.sum(pairs, axis=0) if pairs else (0.0, 0.0)
    return float(total / pulls) if pulls > 0.0 else math.nan


def order_cells(block: Any, memory: Floats) -> Floats:
    """Return a copy of all cells (S, K, length) that drift, segments in order of arrival; without segments S = 1."""
    slots, length, first = SLOTS(block, memory), SLOT_SIZE(block), OFFSET(block, 0)
    table = memory[first : first + slots * length].reshape(slots, length)
    if block.detail >= 0:
        used = np.flatnonzero(table[:, 0])
        table = table[used[np.argsort(table[used, 1])]]
    return np.asarray(table[:, SLOT_HEADER_SIZE:].reshape(-1, block.size, EPOCH_CELL_SIZE))


HEADER_SIZE, SLOT_SIZE = as_python(get_header_size), as_python(slot_size)
BLOCK, FIND, ASSIGN = as_python(get_model_block), as_python(find_slot), as_python(assign_slot)
FORGET, FORGOTTEN, FIND_LONGEST = as_python(forget_cells), as_python(get_forgotten), as_python(find_longest)
FIND_SLOT, ENDS, SPENT = as_python(find_slot_of_row), as_python(compute_cell_ends), as_python(compute_spent)
SLOTS, TALLIES, TALLY, OFFSET = (
    as_python(count_slots),
    as_python(fill_tallies),
    as_python(compute_action_tally),
    as_python(get_slot_offset),
)
LEAST, RATES, FILL_PULLS, SEGMENTS, MET = (
    as_python(get_lowest_value),
    as_python(fill_rates),
    as_python(fill_pulls),
    as_python(fill_segments),
    as_python(count_segments),
)


class SegmentRatesDiagnostics(ModelDiagnostics):
    """Diagnostics of rates by action and segment."""

    has_safe_cost_per_user = True
    kept_marks, per_doubling = RATE_MARKS

    def get_evidence(self, block: Any, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        tally = TALLY(block, memory, int(layout[SAFE_INDEX]), settings)
        return Evidence(float(tally.pulls), 0.0, 0.0, float(tally.pulls), float(tally.mean))

    def get_sums(self, block: Any, settings: Floats, memory: Floats, key: str) -> Sums | None:
        if block.radius and not is_pooled(block):  # what exceeds the declared drift is found cell by cell
            return None
        pulls, totals = np.zeros((2, SLOTS(block, memory) * block.size))
        TALLIES(block, memory, pulls, totals)
        last = int(np.max(np.flatnonzero(pulls), initial=-1)) + 1  # cells are in the order of their segments
        result = {f"pulls {key}": pulls[:last], f"totals {key}": totals[:last]}
        if is_pooled(block):
            cells = order_cells(block, memory)[: last // block.size + 1].reshape(-1, EPOCH_CELL_SIZE)[:last]
            result[f"forgotten {key}"] = np.array([FORGOTTEN(cell) for cell in cells])
            result[f"time {key}"] = np.array(cells[:, AT].max(initial=0.0))
        return result | {f"outcomes {key}": np.array(pulls.sum())}

    def get_false_alarms(self, block: Any, settings: Floats) -> float | None:
        return math.exp(-settings[block.settings + 2]) if is_pooled(block) else None

    def restart(self, block: Any, base: Sums | None, now: Sums, key: str) -> Sums | None:
        return restart_actions(base, now, key, block.size) if is_pooled(block) else base

    def moved(
        self, block: Any, settings: Floats, memory: Floats, marks: Marks, key: str, alarms: Sequence[float]
    ) -> Iterator[MeanChange]:
        """Yield the cell whose rate changed, or the cells of an action, or all cells, whose rates changed together."""
        pulls, totals = ([sums[f"{name} {key}"] for sums in marks] for name in ("pulls", "totals"))
        if is_pooled(block):
            for mark, found in find_pooled_shifts(pulls, totals, block.size, alarms):
                since = float(marks[mark][f"time {key}"]) or EARLIEST
                action, means = found.cells[0] % block.size, (found.before, found.after)
                yield MeanChange(0, found.early, found.late, means, action, cells=len(found.cells), since=since)
            return
        for found in find_shifts(pulls, totals, block.size, block.detail >= 0, alarms):
            low, known_segments, cell = float(LEAST(block, settings)), self.segments(block, memory), found.cells[0]
            is_single, actions = len(found.cells) == 1, {cell % block.size for cell in found.cells}
            means, action = (low + found.before, low + found.after), cell % block.size if len(actions) == 1 else -1
            segment = int(known_segments[0][cell // block.size]) if is_single and known_segments is not None else None
            yield MeanChange(0, found.early, found.late, means, action, segment, len(found.cells))

    def list_changes(self, block: Any, settings: Floats, memory: Floats) -> list[FoundChange]:
        if not block.radius:
            return []
        cells, low, found = order_cells(block, memory), float(LEAST(block, settings)), list[FoundChange]()
        numbers = self.segments(block, memory)
        for action in range(block.size):
            known = cells[cells[:, action, PULLS] > 0.0, action]
            if len(known) > 1 and known[0, CHANGED] != 0.0 and np.ptp(known[:, CHANGED]) == 0.0:  # found together
                found.append(FoundChange(action, None, float(known[0, CHANGED]), low + compute_recent_mean(known)))
                continue
            for position in np.flatnonzero(cells[:, action, CHANGED]).tolist():
                cell, segment = cells[position, action], None if numbers is None else int(numbers[0][position])
                found.append(FoundChange(action, segment, float(cell[CHANGED]), low + compute_recent_mean(cell[None])))
        return found

    def forget(
        self, block: Any, settings: Floats, memory: Floats, index: int, since: float, changed: float = 0.0
    ) -> None:
        if block.radius:
            FORGET(block, settings, memory, index, since, changed)

    def fill_estimates(self, block: Any, features: Floats, settings: Floats, memory: Floats, fits: Floats) -> None:
        RATES(block, features, settings, memory, fits)

    def count_learned(self, block: Any, features: Floats, memory: Floats, index: int) -> float | None:
        pulls = np.zeros(block.size)
        FILL_PULLS(block, features, memory, pulls)
        return float(pulls[index])

    def forecast(
        self, block: Any, features: Floats, settings: Floats, memory: Floats, arm: int, signal: int
    ) -> UpperForecast | None:
        if block.radius:  # how fast bounds age depends on the times of outcomes to come
            return None
        slot, low = FIND_SLOT(block, memory, features[arm]), float(LEAST(block, settings))
        is_new = slot < 0 or (block.detail >= 0 and memory[slot] == 0.0)
        first = slot + SLOT_HEADER_SIZE + CELL_SIZE * arm
        pulls, mean = (0.0, 0.0) if is_new else (float(memory[first]), float(memory[first + MEAN]))
        position = MET(block, memory) + 1.0 if is_new else float(memory[slot + 1])
        spent = SPENT(block, settings, arm, position)

        def upper(count: float) -> float:
            return low + (float(ENDS(block, settings, count, mean, spent).high) if count > 0.0 else 1.0)

        return UpperForecast(-1 if is_new else int(slot), pulls, low + mean, upper)

    def segments(self, block: Any, memory: Floats) -> tuple[Floats, Floats] | None:
        if block.detail < 0:
            return None
        count = MET(block, memory)
        numbers, observed = np.zeros(count), np.zeros((count, block.size, 3))
        SEGMENTS(block, memory, numbers, observed)
        return numbers, observed

    def fill_totals(self, block: Any, settings: Floats, memory: Floats, pulls: Floats, totals: Floats) -> None:
        for action in range(block.size):
            tally = TALLY(block, memory, action, settings)
            pulls[action], totals[action] = tally.pulls, tally.pulls * tally.mean


SEGMENT_RATES = Model(
    "stagewise.models.segment_rates:SEGMENT_RATES", get_model_block, segment_rates_size, start_with_zeros,
    fill_segment_bounds, check_segment_rates, learn_segment_rates_block, cache_nothing, widen_segment_rates,
    sample_segment_rates, diagnostics=SegmentRatesDiagnostics(), estimates=1, capacity="segments",
    free_rows=count_free_segment_rows, reserve=reserve_segments, is_valid=are_slots_valid,
    add_actions=copy_to_more_actions, begin_log=add_segments,
)  # fmt: skip
