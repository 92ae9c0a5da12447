"""A signal in [low, low + 1] as rates: a mean and a confidence interval for every action in every segment.

    memory:   number of segments | for each slot: the segment + 1, or 0 | its position in order of arrival, from 1 |
              for each action a cell: pulls | mean | lowest plausible mean, both above low | distance of the highest
              plausible mean from the upper end, so that an empty cell is all zeros
              the layout has the length of a cell and of what precedes the slots; models of means that drift have more
              (see `models.drifting_rates`)
    settings: low, declared bound of the safe action's mean, log 1/δ' of lower ends and of upper ends |
              log 1/share of every action's lower end (K,) and of its upper end (K,) | those of `models.epochs`, where
              the mean drifts

A segment gets a slot at its first outcome, by open addressing. The i-th takes δ'/i(i+1) of δ', so that the number of
segments need not be known; without segments the only one takes all of δ'. Ends bound the average mean of the users who
got the action in the segment so far (see `models.intervals`). This average moves with the users, so ends are those
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
    get_model_block,
    get_posterior_scale,
    pad_to_vector,
    read_block_fields,
)
from stagewise.engine.model import Kernel, Model, start_with_zeros
from stagewise.engine.random import POSTERIOR, normal
from stagewise.engine.workspace import ALARM, CENTRE, ESTIMATE, HALF, SAMPLED, clip_to_bounds, get_limit
from stagewise.models.diagnostics import Evidence, Marks, MeanChange, ModelDiagnostics, Sums, UpperForecast
from stagewise.models.intervals import compute_average_interval, draw_rate
from stagewise.models.per_action_ridge import apply_safe_declaration, check_safe_declaration
from stagewise.models.rate_changes import RATE_MARKS, find_shifts

SLOT_HEADER_SIZE, CELL_SIZE = 2, 4  # sizes of a segment's header and of a cell
PULLS, MEAN, LOW, BELOW = 0, 1, 2, 3  # in a cell
NUMBERS = 4  # in the settings, before the shares of the actions


class RatesBlock(NamedTuple):
    """A block of rates, and the sizes of what it keeps."""

    first: int  # its signal
    signals: int
    size: int  # K, actions
    cell: int  # length of a cell
    header: int  # length of what precedes the slots
    pooled: int  # 1: means do not fall from bucket to bucket of a score
    column: int  # of the features, which holds the segment or the bucket; −1: none
    buckets: int  # of a score; 0: none
    settings: int  # offset of its settings
    memory: int  # offset of its memory


@kernel
def view_rates(layout: Ints, memory: Floats, index: int) -> RatesBlock:
    block = get_model_block(layout, memory, index)
    return RatesBlock(
        block.first, block.signals, block.size, block.radius, block.anchored, block.reflected, block.detail,
        block.per_candidate, block.settings, block.memory,
    )  # fmt: skip


@kernel
def slot_size(block: RatesBlock) -> int:
    """Return the length of a segment's slot."""
    return SLOT_HEADER_SIZE + block.cell * block.size


@kernel
def count_slots(block: RatesBlock, memory: Floats) -> int:
    """Return the number of slots for segments, or for the buckets of a score (see `models.score_rates`)."""
    if block.buckets > 0:
        return block.buckets
    return int(memory[CAPACITY]) if block.column >= 0 else 1


@kernel
def get_slot_offset(block: RatesBlock, slot: int) -> int:
    return block.memory + block.header + slot * slot_size(block)


@kernel
def get_cell(block: RatesBlock, slot: int, action: int) -> int:
    """Return the offset of a cell; `slot` is that of its slot."""
    return slot + SLOT_HEADER_SIZE + block.cell * action


@kernel
def assign_slot(block: RatesBlock, memory: Floats, slot: int, segment: float) -> None:
    """Assign a slot to a segment, if it is new."""
    if memory[slot] == 0.0:
        memory[block.memory] += 1.0
        memory[slot], memory[slot + 1] = segment + 1.0, memory[block.memory]


@kernel
def find_slot_of_row(block: RatesBlock, memory: Floats, row: Floats) -> int:
    """Return the offset of the slot of a row's segment, or of the free slot it would get; −1: there is none."""
    if block.column < 0:
        return get_slot_offset(block, 0)
    segment = row[block.column]
    if block.buckets > 0:
        return get_slot_offset(block, int(segment)) if 0.0 <= segment < block.buckets else -1
    return find_slot(block, memory, segment)


@kernel
def find_slot(block: RatesBlock, memory: Floats, segment: float) -> int:
    """Return the offset of the slot of a segment, or of the free slot it would get; −1: none is free."""
    slots, key = count_slots(block, memory), segment + 1.0
    slot = int(key) % slots
    for _ in range(slots):
        at = get_slot_offset(block, slot)
        if memory[at] == key or memory[at] == 0.0:
            return at
        slot = slot + 1 if slot + 1 < slots else 0
    return -1


class Levels(NamedTuple):
    """log 1/δ' of the lower and of the upper end of a cell."""

    low: float
    high: float


@kernel
def count_runs(buckets: int) -> int:
    """Return the number of runs of 1, 2, 4, 8… neighbouring buckets."""
    count, length = 0, 1
    while length <= buckets:
        count += buckets - length + 1
        length *= 2
    return count


@kernel
def compute_levels(block: RatesBlock, settings: Floats, action: int, position: float) -> Levels:
    """Return the levels of an action in the segment that arrived at this position, from 1, or in a run of buckets."""
    at, spent = block.settings, 0.0
    if block.buckets > 0:
        spent = math.log(float(count_runs(block.buckets) if block.pooled == 1 else block.buckets))
    elif block.column >= 0:
        spent = math.log(position * (position + 1.0))
    first = at + NUMBERS + action
    return Levels(settings[at + 2] + settings[first] + spent, settings[at + 3] + settings[first + block.size] + spent)


class CellReading(NamedTuple):
    """What a cell says of its mean, above `low`."""

    least: float
    most: float
    pulls: float  # of its estimate
    mean: float


@kernel
def read_constant(block: RatesBlock, row: Floats, settings: Floats, memory: Floats, cell: int) -> CellReading:
    """Return what is known of a mean that is constant; `cell` is an offset."""
    return CellReading(memory[cell + LOW], 1.0 - memory[cell + BELOW], memory[cell + PULLS], memory[cell + MEAN])


@kernel
def learn_constant(
    block: RatesBlock, row: Floats, value: float, low: float, high: float, settings: Floats, memory: Floats, cell: int
) -> None:
    """Write the ends of a cell, whose mean has been updated; `low` and `high` are log 1/δ' of either end."""
    ends = compute_average_interval(memory[cell + PULLS], memory[cell + MEAN], low, high)
    memory[cell + LOW], memory[cell + BELOW] = ends.low, 1.0 - ends.high


class RatesKernels(NamedTuple):
    """Kernels of a `Model` of rates."""

    bounds: Kernel
    learn: Kernel
    sample: Kernel


@kernel
def draw_from_outcomes(
    block: RatesBlock, ones: float, pulls: float, prior: float, deviate: float, settings: Floats
) -> float:
    """Return a posterior draw of a mean, given the sum and the number of its outcomes."""
    return draw_rate(ones, pulls, prior, deviate)


def build_rates(read_cell: Kernel, learn_cell: Kernel, draw_mean: Kernel = draw_from_outcomes) -> RatesKernels:
    """Return the kernels of rates whose cells are read, learned and drawn by these."""

    @kernel
    def fill_rates_bounds(
        layout: Ints, block: RatesBlock, features: Floats, known: bool, settings: Floats, memory: Floats,
        bounds: Floats, work: Floats,
    ) -> None:  # fmt: skip
        """Write the bounds of every action in its context, and of the safe one."""
        at, signal = block.settings, block.first
        centre, half, low = bounds[signal, CENTRE], bounds[signal, HALF], settings[at]
        slot = find_slot_of_row(block, memory, features[0])
        for action in range(block.size):
            least, most, fit = 0.0, 1.0, 0.5
            if slot >= 0:
                cell = read_cell(block, features[0], settings, memory, get_cell(block, slot, action))
                least, most = cell.least, cell.most
                fit = cell.mean if cell.pulls > 0.0 else 0.5 * (least + most)
            centre[action], half[action] = low + 0.5 * (least + most), 0.5 * (most - least)
            bounds[signal, ESTIMATE, action] = low + min(max(fit, least), most)
        apply_safe_declaration(layout, signal, settings[at + 1], bounds)

    @kernel
    def learn_rates(
        layout: Ints, block: RatesBlock, action: Floats, index: int, cached_index: int, step: float, cached_only: bool,
        observed: Floats, settings: Floats, memory: Floats, work: Floats,
    ) -> None:  # fmt: skip
        """Learn the outcome of an action in its context; a slot must be free."""
        number, slot = int(action[0]), find_slot_of_row(block, memory, action)
        if slot < 0:
            return
        if block.column >= 0:
            assign_slot(block, memory, slot, action[block.column])
        cell, levels = get_cell(block, slot, number), compute_levels(block, settings, number, memory[slot + 1])
        value = observed[0] - settings[block.settings]
        memory[cell + PULLS] += 1.0
        memory[cell + MEAN] += (value - memory[cell + MEAN]) / memory[cell + PULLS]
        learn_cell(block, action, value, levels.low, levels.high, settings, memory, cell)

    @kernel
    def sample_rates(
        layout: Ints, block: RatesBlock, features: Floats, known: bool, settings: Floats, memory: Floats,
        bounds: Floats, seed: int, run: int, round_: int, work: Floats,
    ) -> None:  # fmt: skip
        """Write a posterior draw of every action's mean, and of the safe action's, given its cell.

        The prior mean of a cost is its limit, so a cell with few plays is neither excluded nor free.
        """
        at, drawn, low = block.first, bounds[block.first, SAMPLED], settings[block.settings]
        prior = 0.5 if at == 0 else min(max(get_limit(layout, settings, at - 1) - low, 1e-6), 0.5)
        slot, scale = find_slot_of_row(block, memory, features[0]), get_posterior_scale(settings)
        for action in range(block.size):
            pulls, ones = 0.0, 0.0
            if slot >= 0:
                cell = read_cell(block, features[0], settings, memory, get_cell(block, slot, action))
                pulls, ones = cell.pulls, cell.pulls * cell.mean
            deviate = scale * normal(seed, run, round_, POSTERIOR + int(at), action)
            drawn[action] = low + draw_mean(block, ones, pulls, prior, deviate, settings)
        drawn[block.size] = drawn[layout[SAFE_INDEX]]
        clip_to_bounds(block, bounds)

    return RatesKernels(fill_rates_bounds, learn_rates, sample_rates)


@kernel
def widen_rates(layout: Ints, old: RatesBlock, new: RatesBlock, memory: Floats, changed: Floats) -> None:
    """Copy the cells into another, empty memory with more slots."""
    for i in range(old.header):
        changed[new.memory + i] = memory[old.memory + i]
    for slot in range(count_slots(old, memory)):
        source = get_slot_offset(old, slot)
        if memory[source] != 0.0 or old.column < 0:
            new_slot = int(memory[source]) % int(changed[CAPACITY]) if old.column >= 0 else 0
            while changed[get_slot_offset(new, new_slot)] != 0.0:
                new_slot = new_slot + 1 if new_slot + 1 < int(changed[CAPACITY]) else 0
            target = get_slot_offset(new, new_slot)
            for i in range(slot_size(old)):
                changed[target + i] = memory[source + i]


class ActionTally(NamedTuple):
    """Statistics of one action over all segments."""

    pulls: float
    mean: float


@kernel
def compute_action_tally(block: RatesBlock, memory: Floats, action: int, settings: Floats) -> ActionTally:
    """Return the statistics of an action over all segments."""
    pulls, total = 0.0, 0.0
    for slot in range(count_slots(block, memory)):
        first = get_cell(block, get_slot_offset(block, slot), action)
        pulls += memory[first]
        total += memory[first] * memory[first + MEAN]
    return ActionTally(pulls, settings[block.settings] + total / max(pulls, 1.0))


@kernel
def count_free_segment_rows(layout: Ints, memory: Floats, index: int, rows: Floats, values: Floats) -> int:
    """Return how many of these rows (n, D) can be learned before half of the slots may be taken; NaN is not learned."""
    block = view_rates(layout, memory, index)
    column, count, free = block.column, rows.shape[0], (int(memory[CAPACITY]) + 1) // 2
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
    return 2 * (count + MET(VIEW(layout, memory, index), memory))


def add_segments(layout: Ints, memory: Floats, index: int, rows: Floats) -> None:
    """Assign slots to the segments of a log's rows in the order of their keys; there must be room."""
    block = VIEW(layout, memory, index)
    for segment in np.unique(rows[:, block.column]) if block.column >= 0 else ():
        ASSIGN(block, memory, FIND(block, memory, segment), segment)


@kernel
def fill_tallies(block: RatesBlock, memory: Floats, pulls: Floats, totals: Floats) -> None:
    """Write pulls and summed outcomes, above `low`, of every cell, in order of the segments' arrival."""
    for slot in range(count_slots(block, memory)):
        at = get_slot_offset(block, slot)
        first_cell = (int(memory[at + 1]) - 1 if block.column >= 0 else 0) * block.size
        if first_cell >= 0:
            for action in range(block.size):
                first = get_cell(block, at, action)
                pulls[first_cell + action] = memory[first]
                totals[first_cell + action] = memory[first] * memory[first + MEAN]


def are_slots_valid(block: RatesBlock, memory: Floats) -> bool:
    """Return whether the used slots are numbered from 1 to the number of segments."""
    if block.column < 0:
        return True
    first, length, slots = OFFSET(block, 0), SLOT_SIZE(block), SLOTS(block, memory)
    table = memory[first : first + slots * length].reshape(slots, length)
    numbers = np.sort(table[table[:, 0] != 0.0, 1])
    return bool(numbers.size == memory[block.memory] and np.array_equal(numbers, np.arange(1.0, numbers.size + 1.0)))


@kernel
def fill_pulls(block: RatesBlock, rows: Floats, memory: Floats, pulls: Floats) -> None:
    """Write the number of outcomes of every action, in its context."""
    slot = find_slot_of_row(block, memory, rows[0])
    for action in range(block.size):
        pulls[action] = memory[get_cell(block, slot, action)] if slot >= 0 else 0.0


@kernel
def get_lowest_value(block: RatesBlock, settings: Floats) -> float:
    """Return the lowest possible value of the signal."""
    return settings[block.settings]


@kernel
def count_segments(block: RatesBlock, memory: Floats) -> int:
    """Return the number of segments with data."""
    return int(memory[block.memory])


@kernel
def fill_segments(block: RatesBlock, memory: Floats, numbers: Floats, observed: Floats) -> None:
    """Write the number of every segment (S,) in order of arrival, and its statistics (S, K, 3).

    For every action: the pulls, the mean and the highest plausible mean, both above `low`.
    """
    for slot in range(count_slots(block, memory)):
        at = get_slot_offset(block, slot)
        position = int(memory[at + 1]) - 1
        if memory[at] != 0.0:
            numbers[position] = memory[at] - 1.0
            for action in range(block.size):
                first = get_cell(block, at, action)
                observed[position, action, 0], observed[position, action, 1] = memory[first], memory[first + MEAN]
                observed[position, action, 2] = 1.0 - memory[first + BELOW]


def segment_rates_size(layout: Ints, index: int, candidates: int, capacity: int) -> int:
    """Return the length of a block's memory."""
    block = read_block_fields(layout, index)
    slots = block.per_candidate or (capacity if block.detail >= 0 else 1)
    return int(pad_to_vector(block.anchored + (SLOT_HEADER_SIZE + block.radius * block.size) * slots))


@kernel
def check_rates(layout: Ints, block: RatesBlock, settings: Floats, memory: Floats, bounds: Floats) -> int:
    """Return the code of a contradicted cost of the safe action, or 0."""
    if settings[ALARM] == math.inf:
        return 0
    return check_safe_declaration(layout, block.first, settings[block.settings + 1], bounds)


def copy_to_more_actions(layout: Ints, old: RatesBlock, new: RatesBlock, memory: Floats, grown: Floats) -> None:
    """Copy the cells into a block with these actions first, and more."""
    slot_length = SLOT_SIZE(old)
    grown[new.memory : new.memory + old.header] = memory[old.memory : old.memory + old.header]
    for slot in range(SLOTS(old, memory)):
        source, target = OFFSET(old, slot), OFFSET(new, slot)
        grown[target : target + slot_length] = memory[source : source + slot_length]


VIEW, SLOT_SIZE, CELL, FIND = as_python(view_rates), as_python(slot_size), as_python(get_cell), as_python(find_slot)
FIND_SLOT, ASSIGN, CELL_LEVELS = as_python(find_slot_of_row), as_python(assign_slot), as_python(compute_levels)
SLOTS, TALLIES, TALLY, OFFSET = (
    as_python(count_slots),
    as_python(fill_tallies),
    as_python(compute_action_tally),
    as_python(get_slot_offset),
)
LEAST, FILL_PULLS, SEGMENTS, MET = (
    as_python(get_lowest_value),
    as_python(fill_pulls),
    as_python(fill_segments),
    as_python(count_segments),
)
AVERAGE_ENDS = as_python(compute_average_interval)


class SegmentRatesDiagnostics(ModelDiagnostics):
    """Diagnostics of rates by action and segment."""

    has_safe_cost_per_user = True
    kept_marks, per_doubling = RATE_MARKS
    read_cell = staticmethod(as_python(read_constant))

    def get_evidence(self, block: Any, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        tally = TALLY(block, memory, int(layout[SAFE_INDEX]), settings)
        return Evidence(float(tally.pulls), 0.0, 0.0, float(tally.pulls), float(tally.mean))

    def get_sums(self, block: Any, settings: Floats, memory: Floats, key: str) -> Sums | None:
        pulls, totals = np.zeros((2, SLOTS(block, memory) * block.size))
        TALLIES(block, memory, pulls, totals)
        last = int(np.max(np.flatnonzero(pulls), initial=-1)) + 1  # cells are in the order of their segments
        result = {f"pulls {key}": pulls[:last], f"totals {key}": totals[:last]}
        return result | {f"outcomes {key}": np.array(pulls.sum())}

    def moved(
        self, block: Any, settings: Floats, memory: Floats, marks: Marks, key: str, alarms: Sequence[float]
    ) -> Iterator[MeanChange]:
        """Yield the cell whose rate changed, or the cells of an action, or all cells, whose rates changed together."""
        pulls, totals = ([sums[f"{name} {key}"] for sums in marks] for name in ("pulls", "totals"))
        for found in find_shifts(pulls, totals, block.size, block.column >= 0, alarms):
            low, known_segments, cell = float(LEAST(block, settings)), self.segments(block, memory), found.cells[0]
            is_single, actions = len(found.cells) == 1, {cell % block.size for cell in found.cells}
            means, action = (low + found.before, low + found.after), cell % block.size if len(actions) == 1 else -1
            segment = int(known_segments[0][cell // block.size]) if is_single and known_segments is not None else None
            yield MeanChange(0, found.early, found.late, means, action, segment, len(found.cells))

    def fill_estimates(self, block: Any, features: Floats, settings: Floats, memory: Floats, fits: Floats) -> None:
        slot, low = FIND_SLOT(block, memory, features[0]), float(LEAST(block, settings))
        for action in range(block.size if slot >= 0 else 0):
            cell = self.read_cell(block, features[0], settings, memory, CELL(block, slot, action))
            if cell.pulls > 0.0:
                fits[action] = low + cell.mean

    def count_learned(self, block: Any, features: Floats, memory: Floats, index: int) -> float | None:
        pulls = np.zeros(block.size)
        FILL_PULLS(block, features, memory, pulls)
        return float(pulls[index])

    def forecast(
        self, block: Any, features: Floats, settings: Floats, memory: Floats, arm: int, signal: int
    ) -> UpperForecast | None:
        slot, low = FIND_SLOT(block, memory, features[arm]), float(LEAST(block, settings))
        is_new = slot < 0 or (block.column >= 0 and memory[slot] == 0.0)
        first = CELL(block, slot, arm)
        pulls, mean = (0.0, 0.0) if is_new else (float(memory[first]), float(memory[first + MEAN]))
        position = MET(block, memory) + 1.0 if is_new else float(memory[slot + 1])
        ends = CELL_LEVELS(block, settings, arm, position)

        def upper(count: float) -> float:
            return low + (float(AVERAGE_ENDS(count, mean, *ends).high) if count > 0.0 else 1.0)

        return UpperForecast(-1 if is_new else int(slot), pulls, low + mean, upper)

    def segments(self, block: Any, memory: Floats) -> tuple[Floats, Floats] | None:
        if block.column < 0:
            return None
        count = MET(block, memory)
        numbers, observed = np.zeros(count), np.zeros((count, block.size, 3))
        SEGMENTS(block, memory, numbers, observed)
        return numbers, observed

    def fill_totals(self, block: Any, settings: Floats, memory: Floats, pulls: Floats, totals: Floats) -> None:
        for action in range(block.size):
            tally = TALLY(block, memory, action, settings)
            pulls[action], totals[action] = tally.pulls, tally.pulls * tally.mean


RATES = build_rates(read_constant, learn_constant)
SEGMENT_RATES = Model(
    "stagewise.models.segment_rates:SEGMENT_RATES", view_rates, segment_rates_size, start_with_zeros, RATES.bounds,
    check_rates, RATES.learn, None, widen_rates, RATES.sample, diagnostics=SegmentRatesDiagnostics(),
    estimates=1, capacity="segments", free_rows=count_free_segment_rows, reserve=reserve_segments,
    is_valid=are_slots_valid, add_actions=copy_to_more_actions, begin_log=add_segments,
)  # fmt: skip
