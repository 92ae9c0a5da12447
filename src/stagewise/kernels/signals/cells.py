"""A signal in [low, low + 1] as rates: for every action, in every segment, a mean and an interval around it.

    memory:   how many segments were met | for each slot: the segment + 1, or 0 | which it was, counted from 1 |
              for each action a cell: pulls | mean | lowest plausible mean, both from low on | how far the highest is
              from the other end, so that all of a cell is 0 until something is seen of it
    settings: low, what was declared of the safe action's mean, the rate that is expected, log 1/δ' of lower ends and of
              upper ends | log 1/share of every action (K,)

A segment gets a slot when something is first learned in it, near the slot that its number points to. The i-th takes
δ'/i(i+1) of δ', so that nobody has to know how many there will be; without segments the only one takes all of it. Ends
are by likelihood ratio, sharp where outcomes are as rare as the limit (see `signals.rates`). The limit holds in every
segment by itself. Rows of features are as in `signals.apiece`.
"""

import math
from typing import NamedTuple

from stagewise.kernels.bounds import CENTRE, FIT, HALF, SAMPLED
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.draw import POSTERIOR, normal
from stagewise.kernels.layout import CAPACITY, CELL, CELLS, HOME, PARTS, SLOT, Part, part_of, segment_column, slot_size
from stagewise.kernels.promise import limit_of
from stagewise.kernels.signals.apiece import declare_home
from stagewise.kernels.signals.posterior import drawn_share, hold
from stagewise.kernels.signals.rates import rate_ends

PULLS, MEAN, LOW, BELOW = 0, 1, 2, 3  # in a cell
NUMBERS = 5  # in the settings, before the shares of the actions


@kernel
def slots_of(part: Part, memory: Floats) -> int:
    """Return how many segments there is a slot for."""
    return int(memory[CAPACITY]) if segment_column(part) >= 0 else 1


@kernel
def slot_at(part: Part, slot: int) -> int:
    """Return where a slot begins."""
    return part.memory + 1 + slot * slot_size(part.size)


@kernel
def take_slot(part: Part, memory: Floats, slot: int, segment: float) -> None:
    """Give a segment its slot, if it is new."""
    if memory[slot] == 0.0:
        memory[part.memory] += 1.0
        memory[slot], memory[slot + 1] = segment + 1.0, memory[part.memory]


@kernel
def slot_of_row(part: Part, memory: Floats, row: Floats) -> int:
    """Return where the slot of a row's segment begins, or the one it would get; −1: there is none left."""
    return slot_at(part, 0) if segment_column(part) < 0 else slot_for(part, memory, row[segment_column(part)])


@kernel
def slot_for(part: Part, memory: Floats, segment: float) -> int:
    """Return where the slot of a segment begins, or the one it would get; −1: there is none left."""
    slots, key = slots_of(part, memory), segment + 1.0
    slot = int(key) % slots
    for _ in range(slots):
        at = slot_at(part, slot)
        if memory[at] == key or memory[at] == 0.0:
            return at
        slot = slot + 1 if slot + 1 < slots else 0
    return -1


@kernel
def learn_cells(part: Part, row: Floats, value: float, settings: Floats, memory: Floats) -> None:
    """Take in what was seen of an action in its context; there must be a slot left."""
    at, action, slot = part.settings, int(row[0]), slot_of_row(part, memory, row)
    if slot < 0:
        return
    first, spent = slot + SLOT + CELL * action, settings[at + NUMBERS + action]
    cell = memory[first : first + CELL]
    if segment_column(part) >= 0:
        take_slot(part, memory, slot, row[segment_column(part)])
        spent += math.log(memory[slot + 1] * (memory[slot + 1] + 1.0))
    cell[PULLS] += 1.0
    cell[MEAN] += (value - settings[at] - cell[MEAN]) / cell[PULLS]
    ends = rate_ends(cell[PULLS], cell[MEAN], settings[at + 2], settings[at + 3] + spent, settings[at + 4] + spent)
    cell[LOW], cell[BELOW] = ends.low, 1.0 - ends.high


@kernel
def look_cells(layout: Ints, part: Part, rows: Floats, settings: Floats, memory: Floats, bounds: Floats) -> int:
    """Write the bounds of every action in its context, and of the safe one; return what is contradicted, or 0."""
    at, signal = part.settings, part.first
    centre, half, low = bounds[signal, CENTRE], bounds[signal, HALF], settings[at]
    slot = slot_of_row(part, memory, rows[0])
    for action in range(part.size):
        least, most, fit = 0.0, 1.0, 0.5
        if slot >= 0:
            first = slot + SLOT + CELL * action
            least, most = memory[first + LOW], 1.0 - memory[first + BELOW]
            fit = memory[first + MEAN] if memory[first + PULLS] > 0.0 else 0.5 * (least + most)
        centre[action], half[action] = low + 0.5 * (least + most), 0.5 * (most - least)
        bounds[signal, FIT, action] = low + min(max(fit, least), most)
    return declare_home(layout, signal, settings[at + 1], bounds)


@kernel
def move_cells(old: Part, new: Part, memory: Floats, changed: Floats, slots: int) -> None:
    """Write the cells of a memory into another, empty one that has room for more segments; `slots` there were."""
    changed[new.memory] = memory[old.memory]
    for slot in range(slots):
        source = slot_at(old, slot)
        if memory[source] != 0.0 or segment_column(old) < 0:
            place = int(memory[source]) % int(changed[CAPACITY]) if segment_column(old) >= 0 else 0
            while changed[slot_at(new, place)] != 0.0:
                place = place + 1 if place + 1 < int(changed[CAPACITY]) else 0
            target = slot_at(new, place)
            for i in range(slot_size(old.size)):
                changed[target + i] = memory[source + i]


@kernel
def draw_cells(
    layout: Ints, part: Part, rows: Floats, spread: float, settings: Floats, memory: Floats, bounds: Floats,
    seed: int, run: int, round_: int,
) -> None:  # fmt: skip
    """Write a draw of every action's mean, and of the safe action's, around what its cell has shown.

    For a cost the prior mean is the limit: a cell that was hardly played is then neither hopeless nor free.
    """
    at, drawn, low = part.first, bounds[part.first, SAMPLED], settings[part.settings]
    prior = 0.5 if at == 0 else min(max(limit_of(layout, settings, at - 1) - low, 1e-6), 0.5)
    slot = slot_of_row(part, memory, rows[0])
    for action in range(part.size):
        pulls, ones = 0.0, 0.0
        if slot >= 0:
            pulls = memory[slot + SLOT + CELL * action]
            ones = pulls * memory[slot + SLOT + CELL * action + MEAN]
        deviate = spread * normal(seed, run, round_, POSTERIOR + int(at), action)
        drawn[action] = low + drawn_share(ones, pulls, prior, deviate)
    drawn[part.size] = drawn[layout[HOME]]
    hold(part, bounds)


class Tally(NamedTuple):
    """What all segments have shown of one action."""

    pulls: float
    mean: float


@kernel
def tally_of(part: Part, memory: Floats, action: int, settings: Floats) -> Tally:
    """Return what was seen of an action, over all segments."""
    pulls, total = 0.0, 0.0
    for slot in range(slots_of(part, memory)):
        first = slot_at(part, slot) + SLOT + CELL * action
        pulls += memory[first]
        total += memory[first] * memory[first + MEAN]
    return Tally(pulls, settings[part.settings] + total / max(pulls, 1.0))


@kernel
def most_met(layout: Ints, memory: Floats) -> int:
    """Return the largest number of segments that any division has met."""
    most = 0
    for which in range(layout[PARTS]):
        part = part_of(layout, memory, which)
        if part.kind == CELLS:
            most = max(most, int(memory[part.memory]))
    return most


@kernel
def before_full(layout: Ints, memory: Floats, rows: Floats, values: Floats) -> int:
    """Return how many rows (n, D) can be learned before half of the slots may be taken; NaN: such a value is not in."""
    most, new = most_met(layout, memory), 0
    for row in range(rows.shape[0]):
        if 2 * (most + new) >= memory[CAPACITY]:
            return row
        met = True
        for which in range(layout[PARTS]):
            part = part_of(layout, memory, which)
            if part.kind == CELLS and segment_column(part) >= 0 and values[row, part.first] == values[row, part.first]:
                slot = slot_for(part, memory, rows[row, segment_column(part)])
                met = met and slot >= 0 and memory[slot] != 0.0
        new += not met
    return rows.shape[0]


@kernel
def meet(layout: Ints, memory: Floats, column: int, segments: Floats) -> None:
    """Give the segments of one division their slots, in this order; there must be room."""
    for which in range(layout[PARTS]):
        part = part_of(layout, memory, which)
        if part.kind == CELLS and segment_column(part) == column:
            for i in range(segments.size):
                slot = slot_for(part, memory, segments[i])
                if slot >= 0:
                    take_slot(part, memory, slot, segments[i])


@kernel
def fill_tallies(part: Part, memory: Floats, pulls: Floats, totals: Floats) -> None:
    """Write pulls and summed outcomes, from `low` on, of every cell, in the order in which segments were met."""
    for slot in range(slots_of(part, memory)):
        at = slot_at(part, slot)
        place = (int(memory[at + 1]) - 1 if segment_column(part) >= 0 else 0) * part.size
        if place >= 0:
            for action in range(part.size):
                first = at + SLOT + CELL * action
                pulls[place + action] = memory[first]
                totals[place + action] = memory[first] * memory[first + MEAN]


@kernel
def in_order(layout: Ints, memory: Floats) -> bool:
    """Say whether the slots of every division that are taken are numbered from 1 to as many as were met."""
    for which in range(layout[PARTS]):
        part = part_of(layout, memory, which)
        if part.kind == CELLS and segment_column(part) >= 0:
            met, total, taken = memory[part.memory], 0.0, 0.0
            for slot in range(slots_of(part, memory)):
                at = slot_at(part, slot)
                if memory[at] != 0.0:
                    taken += 1.0
                    total += memory[at + 1]
                    if not 1.0 <= memory[at + 1] <= met:
                        return False
            if taken != met or total != 0.5 * met * (met + 1.0):
                return False
    return True


@kernel
def fill_rates(part: Part, rows: Floats, settings: Floats, memory: Floats, rates: Floats) -> None:
    """Write the mean of every action of which something was seen, in its context."""
    slot = slot_of_row(part, memory, rows[0])
    for action in range(part.size):
        if slot >= 0 and memory[slot + SLOT + CELL * action] > 0.0:
            rates[action] = settings[part.settings] + memory[slot + SLOT + CELL * action + MEAN]


@kernel
def fill_pulls(part: Part, rows: Floats, memory: Floats, pulls: Floats) -> None:
    """Write how many outcomes were learned of every action, in its context."""
    slot = slot_of_row(part, memory, rows[0])
    for action in range(part.size):
        pulls[action] = memory[slot + SLOT + CELL * action] if slot >= 0 else 0.0


@kernel
def least_of(part: Part, settings: Floats) -> float:
    """Return the least that the signal can be."""
    return settings[part.settings]


@kernel
def segments_met(part: Part, memory: Floats) -> int:
    """Return how many segments were met."""
    return int(memory[part.memory])


@kernel
def fill_segments(part: Part, memory: Floats, numbers: Floats, seen: Floats) -> None:
    """Write the number of every segment (S,) in the order in which it was met, and what was seen there (S, K, 3).

    That is of every action the pulls, the mean and the highest plausible one, both from `low` on.
    """
    for slot in range(slots_of(part, memory)):
        at = slot_at(part, slot)
        place = int(memory[at + 1]) - 1
        if memory[at] != 0.0:
            numbers[place] = memory[at] - 1.0
            for action in range(part.size):
                first = at + SLOT + CELL * action
                seen[place, action, 0], seen[place, action, 1] = memory[first], memory[first + MEAN]
                seen[place, action, 2] = 1.0 - memory[first + BELOW]
