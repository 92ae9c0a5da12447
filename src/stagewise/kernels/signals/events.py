"""Costs in [0, 1] that are rarely more than 0, of linear mean <x, μ> ≥ 0, with features that need never come back.

docs/theory/rare.md has the statement and its proof. With probability 1 − δ, at all times at once,

    Σ (<x, μ> − y log <x, μ>)  ≤  Σ (p − y log p) + log 1/δ,        p > 0 any forecast made before y was seen

so that rows without an event (y = 0) leave Σ x and Σ p behind, and nothing else. Events are kept in a table; `refit`
turns them into an ellipsoid, each at a point q and below a bound M of its own (see `event_curvature`). When the table
is full its events are folded into one parabola for good. Between refits the ellipsoid is stale, and holds.

The features may be blocks of equal length, of which an action uses one: each block has a set of its own.

    settings: S | log 1/δ of a block | a guess of the rate | a bound on means | known at x₀
    memory:   used | matrix (g, g) | vectors (2, g) | blocks: sums, vectors (4, g), T and folded (2g, g) | the table
"""

import math
from typing import NamedTuple

from stagewise.kernels.bounds import CENTRE, HALF, SAMPLED
from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.draw import POSTERIOR, fill_normal
from stagewise.kernels.layout import EVENT_SUMS, Part, block_size, blocks_of, events_size, table_capacity
from stagewise.kernels.promise import MODEL, disputed
from stagewise.kernels.signals.posterior import hold

ROWS, HITS, TOTAL, LOSS, DUE_HITS, DUE_ROWS, SQUARE, CONSTANT = range(EVENT_SUMS)  # SQUARE: the ellipsoid's radius²
LEAST, MOST = 0.3, 3.0  # forecasts, in units of the rate so far
FEW_ROWS = 32.0  # after so many a block is fitted first, if no event was before


class DeclaredOfEvents(NamedTuple):
    """What was declared of a rare cost."""

    bound: float  # S
    confidence: float  # log 1/δ of a block
    guess: float  # of its rate, before anything is seen
    ceiling: float  # no mean is above
    known: float  # at x₀, where anchored


@kernel
def declared_of_events(part: Part, settings: Floats) -> DeclaredOfEvents:
    """Return what was declared of a part's cost."""
    at = part.settings
    return DeclaredOfEvents(settings[at], settings[at + 1], settings[at + 2], settings[at + 3], settings[at + 4])


class Table(NamedTuple):
    """What a part keeps beside its blocks, as views of the memory."""

    used: Floats  # (1,) events in the table
    matrix: Floats  # (g, g) scratch
    vectors: Floats  # (2, g) scratch
    rows: Floats  # (capacity, g + 2) features | y | block


@kernel
def table_of(part: Part, memory: Floats) -> Table:
    """Return the events of a part, and scratch for them."""
    g, at = part.size, part.memory
    first = at + 1 + g * g + 2 * g + blocks_of(part) * block_size(g)
    return Table(
        memory[at : at + 1],
        memory[at + 1 : at + 1 + g * g].reshape(g, g),
        memory[at + 1 + g * g : at + 1 + g * g + 2 * g].reshape(2, g),
        memory[first : first + table_capacity(part) * (g + 2)].reshape(table_capacity(part), g + 2),
    )


class Block(NamedTuple):
    """What a part keeps of one block of features, as views of the memory."""

    sums: Floats  # rows, events, Σ y, Σ (p − y log p) | when to refit: events, rows | radius² | folded events' constant
    total: Floats  # (g,) Σ x
    fit: Floats  # (g,) the ellipsoid's centre
    forecast: Floats  # (g,) what is forecast with
    pull: Floats  # (g,) of folded events
    root: Floats  # (g, g) T
    folded: Floats  # (g, g) the curvature of folded events


@kernel
def block_of(part: Part, memory: Floats, which: int) -> Block:
    """Return what a part keeps of one of its blocks."""
    g = part.size
    at = part.memory + 1 + g * g + 2 * g + which * block_size(g)
    rows = at + EVENT_SUMS
    root = rows + 4 * g
    return Block(
        memory[at:rows],
        memory[rows : rows + g],
        memory[rows + g : rows + 2 * g],
        memory[rows + 2 * g : rows + 3 * g],
        memory[rows + 3 * g : root],
        memory[root : root + g * g].reshape(g, g),
        memory[root + g * g : root + 2 * g * g].reshape(g, g),
    )


@kernel
def copy_events(part: Part, memory: Floats, other: Part, changed: Floats) -> None:
    """Write the same blocks and events as another part, whose table must have room for them."""
    for i in range(events_size(part.size, blocks_of(part), int(memory[part.memory]))):
        changed[other.memory + i] = memory[part.memory + i]


@kernel
def block_used(part: Part, action: Floats) -> int:
    """Return the block that an action has features in, or −1 if they are all 0."""
    for i in range(blocks_of(part) * part.size):
        if action[i] != 0.0:
            return i // part.size
    return -1


@kernel
def product(one: Floats, other: Floats) -> float:
    """Return <a, b>."""
    total = 0.0
    for i in range(one.size):
        total += one[i] * other[i]
    return total


@kernel
def width_at_event(root: Floats, action: Floats) -> float:
    """Return ‖Tx‖, the width of an action in a block's ellipsoid."""
    square = 0.0
    for i in range(action.size):
        total = 0.0
        for j in range(i + 1):
            total += root[i, j] * action[j]
        square += total * total
    return math.sqrt(square)


@kernel
def start_events(part: Part, settings: Floats, memory: Floats) -> None:
    """Write the sets of a memory that has seen nothing: ‖μ‖ ≤ S."""
    for which in range(blocks_of(part)):
        block = block_of(part, memory, which)
        block.sums[SQUARE], block.sums[DUE_HITS], block.sums[DUE_ROWS] = 1.0, 1.0, FEW_ROWS
        for i in range(part.size):
            block.root[i, i] = settings[part.settings]


@kernel
def rate_of(sums: Floats, guess: float) -> float:
    """Return the rate so far, (Σ y + ½)/(n + 1/2q), which begins at the guess q."""
    return (sums[TOTAL] + 0.5) / (sums[ROWS] + 0.5 / guess)


@kernel
def forecast_of(block: Block, rate: float, action: Floats) -> float:
    """Return a forecast of the mean that is never far from the rate so far."""
    return min(max(product(block.forecast, action), LEAST * rate), MOST * rate)


@kernel
def highest_event(part: Part, settings: Floats, block: Block, action: Floats) -> float:
    """Return the largest mean that is plausible: by the ellipsoid, by S‖x‖, and by what was declared."""
    declared, square = declared_of_events(part, settings), max(block.sums[SQUARE], 0.0)
    end = product(block.fit, action) + math.sqrt(square) * width_at_event(block.root, action)
    return min(end, declared.bound * math.sqrt(product(action, action)), declared.ceiling)


@kernel
def look_events(part: Part, features: Floats, safe: Floats, settings: Floats, memory: Floats, bounds: Floats) -> None:
    """Write the bounds of any candidates, and of the safe action."""
    g, count, declared = part.size, features.shape[0], declared_of_events(part, settings)
    centre, half = bounds[part.first, CENTRE], bounds[part.first, HALF]
    for candidate in range(count + 1):
        action = features[candidate] if candidate < count else safe
        which, low, high = block_used(part, action), 0.0, 0.0
        if which >= 0:
            block, own = block_of(part, memory, which), action[which * g : (which + 1) * g]
            estimate = product(block.fit, own)
            width = math.sqrt(max(block.sums[SQUARE], 0.0)) * width_at_event(block.root, own)
            farthest = declared.bound * math.sqrt(product(own, own))
            low, high = max(estimate - width, 0.0), min(estimate + width, farthest)
        centre[candidate], half[candidate] = 0.5 * (low + high), 0.5 * abs(high - low)
    if part.anchored == 1:
        centre[count], half[count] = declared.known, 0.0


@kernel
def mistold_events(part: Part, memory: Floats) -> int:
    """Return that the model of a cost is contradicted, if a set is empty (its radius² is below 0); 0: none is."""
    for which in range(blocks_of(part)):
        if not block_of(part, memory, which).sums[SQUARE] >= 0.0:
            return disputed(MODEL, part.first - 1)
    return 0


@kernel
def draw_events(
    part: Part, features: Floats, safe: Floats, spread: float, settings: Floats, memory: Floats, bounds: Floats,
    seed: int, run: int, round_: int, work: Floats,
) -> None:  # fmt: skip
    """Write a draw of every candidate's mean, <x, fit> + ν <Tx, η>, within its bounds; `work` is (d,)."""
    g, count, draws = part.size, features.shape[0], work[: blocks_of(part) * part.size]
    drawn, centre = bounds[part.first, SAMPLED], bounds[part.first, CENTRE]
    fill_normal(draws, seed, run, round_, POSTERIOR + int(part.first))
    for candidate in range(count + 1):
        action = features[candidate] if candidate < count else safe
        which = block_used(part, action)
        drawn[candidate] = centre[candidate]
        if which >= 0:
            block, own = block_of(part, memory, which), action[which * g : (which + 1) * g]
            moved = 0.0
            for i in range(g):
                total = 0.0
                for j in range(i + 1):
                    total += block.root[i, j] * own[j]
                moved += total * draws[which * g + i]
            drawn[candidate] = product(block.fit, own) + spread * moved
    hold(part, bounds)
