"""A signal in [low, low + 1] as rates: a mean and a confidence interval for every action in every segment.

    memory:   number of segments | for each slot: the segment + 1, or 0 | its position in order of arrival, from 1 |
              for each action a cell: pulls | mean | lowest plausible mean, both above low | distance of the highest
              plausible mean from the upper end, so that an empty cell is all zeros
    settings: low, declared bound of the safe action's mean, reference rate, log 1/δ' of lower ends and of upper ends |
              log 1/share of every action (K,)

A segment gets a slot at its first outcome, by open addressing. The i-th takes δ'/i(i+1) of δ', so that the number of
segments need not be known; without segments the only one takes all of δ'. Ends are by likelihood ratio, tight where
outcomes are as rare as the limit (see `models.rate_interval`). The limit holds in every segment separately. Rows of
features are as in `models.per_action_ridge`.
"""

import math
from typing import NamedTuple

from stagewise.engine.compile import Floats, Ints, kernel
from stagewise.engine.layout import (
    CAPACITY,
    CELL_SIZE,
    MODEL_BLOCKS,
    SAFE_INDEX,
    SEGMENT_RATES,
    SLOT_HEADER_SIZE,
    ModelBlock,
    get_model_block,
    get_segment_column,
    slot_size,
)
from stagewise.engine.limits import get_limit
from stagewise.engine.random import POSTERIOR, normal
from stagewise.engine.workspace import CENTRE, ESTIMATE, HALF, SAMPLED, clip_to_bounds
from stagewise.models.intervals import compute_rate_interval, draw_rate
from stagewise.models.per_action_ridge import apply_safe_declaration

PULLS, MEAN, LOW, BELOW = 0, 1, 2, 3  # in a cell
NUMBERS = 5  # in the settings, before the shares of the actions


@kernel
def count_slots(block: ModelBlock, memory: Floats) -> int:
    """Return the number of slots for segments."""
    return int(memory[CAPACITY]) if get_segment_column(block) >= 0 else 1


@kernel
def get_slot_offset(block: ModelBlock, slot: int) -> int:
    """Return the offset of a slot."""
    return block.memory + 1 + slot * slot_size(block.size)


@kernel
def assign_slot(block: ModelBlock, memory: Floats, slot: int, segment: float) -> None:
    """Assign a slot to a segment, if it is new."""
    if memory[slot] == 0.0:
        memory[block.memory] += 1.0
        memory[slot], memory[slot + 1] = segment + 1.0, memory[block.memory]


@kernel
def find_slot_of_row(block: ModelBlock, memory: Floats, row: Floats) -> int:
    """Return the offset of the slot of a row's segment, or of the free slot it would get; −1: none is free."""
    return (
        get_slot_offset(block, 0)
        if get_segment_column(block) < 0
        else find_slot(block, memory, row[get_segment_column(block)])
    )


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
def learn_segment_rates(block: ModelBlock, row: Floats, value: float, settings: Floats, memory: Floats) -> None:
    """Learn the outcome of an action in its context; a slot must be free."""
    at, action, slot = block.settings, int(row[0]), find_slot_of_row(block, memory, row)
    if slot < 0:
        return
    first, spent = slot + SLOT_HEADER_SIZE + CELL_SIZE * action, settings[at + NUMBERS + action]
    cell = memory[first : first + CELL_SIZE]
    if get_segment_column(block) >= 0:
        assign_slot(block, memory, slot, row[get_segment_column(block)])
        spent += math.log(memory[slot + 1] * (memory[slot + 1] + 1.0))
    cell[PULLS] += 1.0
    cell[MEAN] += (value - settings[at] - cell[MEAN]) / cell[PULLS]
    ends = compute_rate_interval(
        cell[PULLS], cell[MEAN], settings[at + 2], settings[at + 3] + spent, settings[at + 4] + spent
    )
    cell[LOW], cell[BELOW] = ends.low, 1.0 - ends.high


@kernel
def compute_segment_bounds(
    layout: Ints, block: ModelBlock, rows: Floats, settings: Floats, memory: Floats, bounds: Floats
) -> int:
    """Write the bounds of every action in its context, and of the safe one; return a contradiction code, or 0."""
    at, signal = block.settings, block.first
    centre, half, low = bounds[signal, CENTRE], bounds[signal, HALF], settings[at]
    slot = find_slot_of_row(block, memory, rows[0])
    for action in range(block.size):
        least, most, fit = 0.0, 1.0, 0.5
        if slot >= 0:
            first = slot + SLOT_HEADER_SIZE + CELL_SIZE * action
            least, most = memory[first + LOW], 1.0 - memory[first + BELOW]
            fit = memory[first + MEAN] if memory[first + PULLS] > 0.0 else 0.5 * (least + most)
        centre[action], half[action] = low + 0.5 * (least + most), 0.5 * (most - least)
        bounds[signal, ESTIMATE, action] = low + min(max(fit, least), most)
    return apply_safe_declaration(layout, signal, settings[at + 1], bounds)


@kernel
def copy_segment_rates(old: ModelBlock, new: ModelBlock, memory: Floats, changed: Floats, slots: int) -> None:
    """Copy the cells into another, empty memory with more slots; `slots` is the old number."""
    changed[new.memory] = memory[old.memory]
    for slot in range(slots):
        source = get_slot_offset(old, slot)
        if memory[source] != 0.0 or get_segment_column(old) < 0:
            new_slot = int(memory[source]) % int(changed[CAPACITY]) if get_segment_column(old) >= 0 else 0
            while changed[get_slot_offset(new, new_slot)] != 0.0:
                new_slot = new_slot + 1 if new_slot + 1 < int(changed[CAPACITY]) else 0
            target = get_slot_offset(new, new_slot)
            for i in range(slot_size(old.size)):
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
            pulls = memory[slot + SLOT_HEADER_SIZE + CELL_SIZE * action]
            ones = pulls * memory[slot + SLOT_HEADER_SIZE + CELL_SIZE * action + MEAN]
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
        first = get_slot_offset(block, slot) + SLOT_HEADER_SIZE + CELL_SIZE * action
        pulls += memory[first]
        total += memory[first] * memory[first + MEAN]
    return ActionTally(pulls, settings[block.settings] + total / max(pulls, 1.0))


@kernel
def get_most_segments(layout: Ints, memory: Floats) -> int:
    """Return the largest number of segments of any model block."""
    most = 0
    for index in range(layout[MODEL_BLOCKS]):
        block = get_model_block(layout, memory, index)
        if block.kind == SEGMENT_RATES:
            most = max(most, int(memory[block.memory]))
    return most


@kernel
def count_rows_before_full(layout: Ints, memory: Floats, rows: Floats, values: Floats) -> int:
    """Return how many rows (n, D) can be learned before half of the slots may be taken; a NaN value is not learned."""
    most, new = get_most_segments(layout, memory), 0
    for row in range(rows.shape[0]):
        if 2 * (most + new) >= memory[CAPACITY]:
            return row
        has_slot = True
        for index in range(layout[MODEL_BLOCKS]):
            block = get_model_block(layout, memory, index)
            if (
                block.kind == SEGMENT_RATES
                and get_segment_column(block) >= 0
                and values[row, block.first] == values[row, block.first]
            ):
                slot = find_slot(block, memory, rows[row, get_segment_column(block)])
                has_slot = has_slot and slot >= 0 and memory[slot] != 0.0
        new += not has_slot
    return rows.shape[0]


@kernel
def add_segments(layout: Ints, memory: Floats, column: int, segments: Floats) -> None:
    """Assign slots to the segments of one column, in this order; there must be room."""
    for index in range(layout[MODEL_BLOCKS]):
        block = get_model_block(layout, memory, index)
        if block.kind == SEGMENT_RATES and get_segment_column(block) == column:
            for i in range(segments.size):
                slot = find_slot(block, memory, segments[i])
                if slot >= 0:
                    assign_slot(block, memory, slot, segments[i])


@kernel
def fill_tallies(block: ModelBlock, memory: Floats, pulls: Floats, totals: Floats) -> None:
    """Write pulls and summed outcomes, above `low`, of every cell, in order of the segments' arrival."""
    for slot in range(count_slots(block, memory)):
        at = get_slot_offset(block, slot)
        first_cell = (int(memory[at + 1]) - 1 if get_segment_column(block) >= 0 else 0) * block.size
        if first_cell >= 0:
            for action in range(block.size):
                first = at + SLOT_HEADER_SIZE + CELL_SIZE * action
                pulls[first_cell + action] = memory[first]
                totals[first_cell + action] = memory[first] * memory[first + MEAN]


@kernel
def are_slots_valid(layout: Ints, memory: Floats) -> bool:
    """Return whether the used slots of every block are numbered from 1 to the number of segments."""
    for index in range(layout[MODEL_BLOCKS]):
        block = get_model_block(layout, memory, index)
        if block.kind == SEGMENT_RATES and get_segment_column(block) >= 0:
            segments, total, used = memory[block.memory], 0.0, 0.0
            for slot in range(count_slots(block, memory)):
                at = get_slot_offset(block, slot)
                if memory[at] != 0.0:
                    used += 1.0
                    total += memory[at + 1]
                    if not 1.0 <= memory[at + 1] <= segments:
                        return False
            if used != segments or total != 0.5 * segments * (segments + 1.0):
                return False
    return True


@kernel
def fill_rates(block: ModelBlock, rows: Floats, settings: Floats, memory: Floats, rates: Floats) -> None:
    """Write the mean of every action with data, in its context."""
    slot = find_slot_of_row(block, memory, rows[0])
    for action in range(block.size):
        if slot >= 0 and memory[slot + SLOT_HEADER_SIZE + CELL_SIZE * action] > 0.0:
            rates[action] = settings[block.settings] + memory[slot + SLOT_HEADER_SIZE + CELL_SIZE * action + MEAN]


@kernel
def fill_pulls(block: ModelBlock, rows: Floats, memory: Floats, pulls: Floats) -> None:
    """Write the number of outcomes of every action, in its context."""
    slot = find_slot_of_row(block, memory, rows[0])
    for action in range(block.size):
        pulls[action] = memory[slot + SLOT_HEADER_SIZE + CELL_SIZE * action] if slot >= 0 else 0.0


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
                first = at + SLOT_HEADER_SIZE + CELL_SIZE * action
                observed[position, action, 0], observed[position, action, 1] = memory[first], memory[first + MEAN]
                observed[position, action, 2] = 1.0 - memory[first + BELOW]
