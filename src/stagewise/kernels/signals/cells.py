"""A signal in [low, low + 1] as rates: for every action, in every segment, a mean and an interval around it.

    memory:   for each segment, for each action a cell: pulls | mean | lowest plausible mean | highest, these as far as
              they lie within the range, so that all of a cell is 0 until something is seen of it
    settings: log 1/δ', low, what was declared of the safe action's mean | log 1/share of every action (K,)

The i-th segment takes δ'/i(i+1) of δ', so that nobody has to know how many there will be; without segments the only one
takes all of it. Intervals are by likelihood ratio, sharp where outcomes are rare (docs/theory/arms.md). The limit holds
in every segment by itself. Rows of features are as in `signals.apiece`.
"""

import math
from typing import NamedTuple

from stagewise.kernels.bounds import CENTRE, HALF, SAMPLED
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.draw import POSTERIOR, normal
from stagewise.kernels.layout import CELL, HOME, Part
from stagewise.kernels.rules.promise import limit_of
from stagewise.kernels.signals.apiece import declare
from stagewise.kernels.signals.interval import kl_interval
from stagewise.kernels.signals.posterior import drawn_share, hold

PULLS, MEAN, LOW, BELOW = 0, 1, 2, 3  # in a cell; BELOW: how far its highest plausible mean is from the range's end
TOLD = 3


@kernel
def segment_of(part: Part, row: Floats) -> int:
    """Return the segment that a context belongs to."""
    return int(row[part.detail]) if part.detail >= 0 else 0


@kernel
def cell_at(part: Part, segment: int, action: int) -> int:
    """Return where a cell begins."""
    return part.memory + CELL * (segment * part.size + action)


@kernel
def learn_cells(part: Part, row: Floats, value: float, settings: Floats, memory: Floats) -> None:
    """Take in what was seen of an action in its context."""
    at, segment, action = part.settings, segment_of(part, row), int(row[0])
    first, confidence = cell_at(part, segment, action), settings[at] + settings[at + TOLD + action]
    cell = memory[first : first + CELL]
    if part.detail >= 0:
        confidence += math.log((segment + 1.0) * (segment + 2.0))
    cell[PULLS] += 1.0
    cell[MEAN] += (value - settings[at + 1] - cell[MEAN]) / cell[PULLS]
    ends = kl_interval(cell[PULLS], cell[MEAN], confidence)
    cell[LOW], cell[BELOW] = ends.low, 1.0 - ends.high


@kernel
def look_cells(layout: Ints, part: Part, rows: Floats, settings: Floats, memory: Floats, bounds: Floats) -> int:
    """Write the bounds of every action in its context, and of the safe one; return what is contradicted, or 0."""
    at, signal = part.settings, part.first
    centre, half, low = bounds[signal, CENTRE], bounds[signal, HALF], settings[at + 1]
    for action in range(part.size):
        first = cell_at(part, segment_of(part, rows[action]), action)
        cell = memory[first : first + CELL]
        high = 1.0 - cell[BELOW]
        centre[action], half[action] = low + 0.5 * (cell[LOW] + high), 0.5 * (high - cell[LOW])
    return declare(layout, signal, settings[at + 2], bounds)


@kernel
def draw_cells(
    layout: Ints, part: Part, rows: Floats, spread: float, settings: Floats, memory: Floats, bounds: Floats,
    seed: int, run: int, round_: int,
) -> None:  # fmt: skip
    """Write a draw of every action's mean, and of the safe action's, around what its cell has shown.

    For a cost the prior mean is the limit: a cell that was hardly played is then neither hopeless nor free.
    """
    at, drawn, low = part.first, bounds[part.first, SAMPLED], settings[part.settings + 1]
    prior = 0.5 if at == 0 else min(max(limit_of(layout, settings, at - 1) - low, 1e-6), 0.5)
    for action in range(part.size):
        first = cell_at(part, segment_of(part, rows[action]), action)
        cell = memory[first : first + CELL]
        deviate = spread * normal(seed, run, round_, POSTERIOR + int(at), action)
        drawn[action] = low + drawn_share(cell[PULLS] * cell[MEAN], cell[PULLS], prior, deviate)
    drawn[part.size] = drawn[layout[HOME]]
    hold(part, bounds)


class Tally(NamedTuple):
    """What all segments have shown of one action."""

    pulls: float
    mean: float


@kernel
def tally_of(part: Part, memory: Floats, segments: int, action: int, settings: Floats) -> Tally:
    """Return what was seen of an action, over so many segments."""
    pulls, total = 0.0, 0.0
    for segment in range(segments):
        first = cell_at(part, segment, action)
        cell = memory[first : first + CELL]
        pulls += cell[PULLS]
        total += cell[PULLS] * cell[MEAN]
    return Tally(pulls, settings[part.settings + 1] + total / max(pulls, 1.0))
