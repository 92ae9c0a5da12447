"""Costs in [0, 1] that are rarely above 0, of linear mean <x, μ> ≥ 0, with features that need not recur.

docs/theory/rare.md has the statement and its proof. With probability 1 − δ, at all times at once,

    Σ (<x, μ> − y log <x, μ>)  ≤  Σ (p − y log p) + log 1/δ,        p > 0 any forecast made before y was seen

so rows without an event (y = 0) only contribute to Σ x and Σ p. Events are kept in a table; `rare_events_fit.refit`
turns them into an ellipsoid, each at a point q and below its own bound M (see `event_curvature`). When the table is
full, its events are folded permanently into one parabola. Between refits the ellipsoid is out of date but valid.

The features may be blocks of equal length, of which an action uses one: each block has its own set.

    settings: S | log 1/δ of a block | a guess of the rate | a bound on means | known at x₀
    memory:   used | matrix (g, g) | vectors (2, g) | blocks: sums, vectors (4, g), T and folded (2g, g) | the table
"""

import math
from typing import NamedTuple

from stagewise.kernels.bounds import CENTRE, HALF, SAMPLED
from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.constraints import MODEL, encode_contradiction
from stagewise.kernels.layout import (
    EVENT_SUMS,
    ModelBlock,
    count_feature_blocks,
    feature_block_size,
    get_table_capacity,
    rare_events_size,
)
from stagewise.kernels.models.posterior import clip_to_bounds
from stagewise.kernels.random_streams import POSTERIOR, fill_normal

ROWS, HITS, TOTAL, LOSS, DUE_HITS, DUE_ROWS, SQUARE, CONSTANT = range(EVENT_SUMS)  # SQUARE: the ellipsoid's radius²
LOWEST_FORECAST, HIGHEST_FORECAST = 0.3, 3.0  # bounds of forecasts, in units of the rate so far
FIRST_REFIT_ROWS = 32.0  # rows before the first fit of a block without events


class RareEventsAssumptions(NamedTuple):
    """The assumptions about a rare cost."""

    bound: float  # S
    confidence: float  # log 1/δ of a block
    guess: float  # of its rate, before any data
    ceiling: float  # no mean is above
    known: float  # at x₀, where anchored


@kernel
def get_rare_events_assumptions(block: ModelBlock, settings: Floats) -> RareEventsAssumptions:
    """Return the assumptions about a block's cost."""
    at = block.settings
    return RareEventsAssumptions(settings[at], settings[at + 1], settings[at + 2], settings[at + 3], settings[at + 4])


class EventTable(NamedTuple):
    """The event table of a block and scratch arrays, as views of the memory."""

    used: Floats  # (1,) events in the table
    matrix: Floats  # (g, g) scratch
    vectors: Floats  # (2, g) scratch
    rows: Floats  # (capacity, g + 2) features | y | block


@kernel
def get_event_table(block: ModelBlock, memory: Floats) -> EventTable:
    """Return the event table of a block, with scratch arrays."""
    g, at = block.size, block.memory
    first = at + 1 + g * g + 2 * g + count_feature_blocks(block) * feature_block_size(g)
    return EventTable(
        memory[at : at + 1],
        memory[at + 1 : at + 1 + g * g].reshape(g, g),
        memory[at + 1 + g * g : at + 1 + g * g + 2 * g].reshape(2, g),
        memory[first : first + get_table_capacity(block) * (g + 2)].reshape(get_table_capacity(block), g + 2),
    )


class FeatureBlock(NamedTuple):
    """The state of one block of features, as views of the memory."""

    sums: Floats  # rows, events, Σ y, Σ (p − y log p) | next refit: events, rows | radius² | folded constant
    total: Floats  # (g,) Σ x
    fit: Floats  # (g,) the ellipsoid's centre
    forecast: Floats  # (g,) parameters of forecasts
    pull: Floats  # (g,) of folded events
    root: Floats  # (g, g) T
    folded: Floats  # (g, g) the curvature of folded events


@kernel
def get_feature_block(block: ModelBlock, memory: Floats, index: int) -> FeatureBlock:
    """Return the state of one block of features."""
    g = block.size
    at = block.memory + 1 + g * g + 2 * g + index * feature_block_size(g)
    rows = at + EVENT_SUMS
    root = rows + 4 * g
    return FeatureBlock(
        memory[at:rows],
        memory[rows : rows + g],
        memory[rows + g : rows + 2 * g],
        memory[rows + 2 * g : rows + 3 * g],
        memory[rows + 3 * g : root],
        memory[root : root + g * g].reshape(g, g),
        memory[root + g * g : root + 2 * g * g].reshape(g, g),
    )


@kernel
def copy_rare_events(block: ModelBlock, memory: Floats, other: ModelBlock, changed: Floats) -> None:
    """Copy the feature blocks and events to another block, whose table must be large enough."""
    for i in range(rare_events_size(block.size, count_feature_blocks(block), int(memory[block.memory]))):
        changed[other.memory + i] = memory[block.memory + i]


@kernel
def find_feature_block(block: ModelBlock, action: Floats) -> int:
    """Return the block that an action has features in, or −1 if they are all 0."""
    for i in range(count_feature_blocks(block) * block.size):
        if action[i] != 0.0:
            return i // block.size
    return -1


@kernel
def dot(one: Floats, other: Floats) -> float:
    """Return <a, b>."""
    total = 0.0
    for i in range(one.size):
        total += one[i] * other[i]
    return total


@kernel
def compute_event_width(root: Floats, action: Floats) -> float:
    """Return ‖Tx‖, the width of an action in a block's ellipsoid."""
    square = 0.0
    for i in range(action.size):
        total = 0.0
        for j in range(i + 1):
            total += root[i, j] * action[j]
        square += total * total
    return math.sqrt(square)


@kernel
def start_rare_events(block: ModelBlock, settings: Floats, memory: Floats) -> None:
    """Write the sets without data: ‖μ‖ ≤ S."""
    for index in range(count_feature_blocks(block)):
        feature_block = get_feature_block(block, memory, index)
        feature_block.sums[SQUARE], feature_block.sums[DUE_HITS], feature_block.sums[DUE_ROWS] = (
            1.0,
            1.0,
            FIRST_REFIT_ROWS,
        )
        for i in range(block.size):
            feature_block.root[i, i] = settings[block.settings]


@kernel
def compute_rate(sums: Floats, guess: float) -> float:
    """Return the rate so far, (Σ y + ½)/(n + 1/2q), which starts at the guess q."""
    return (sums[TOTAL] + 0.5) / (sums[ROWS] + 0.5 / guess)


@kernel
def compute_forecast(feature_block: FeatureBlock, rate: float, action: Floats) -> float:
    """Return a forecast of the mean, clipped to a range around the rate so far."""
    return min(max(dot(feature_block.forecast, action), LOWEST_FORECAST * rate), HIGHEST_FORECAST * rate)


@kernel
def compute_highest_mean(block: ModelBlock, settings: Floats, feature_block: FeatureBlock, action: Floats) -> float:
    """Return the largest plausible mean: by the ellipsoid, by S‖x‖, and by the declared ceiling."""
    declared, square = get_rare_events_assumptions(block, settings), max(feature_block.sums[SQUARE], 0.0)
    end = dot(feature_block.fit, action) + math.sqrt(square) * compute_event_width(feature_block.root, action)
    return min(end, declared.bound * math.sqrt(dot(action, action)), declared.ceiling)


@kernel
def compute_rare_events_bounds(
    block: ModelBlock, features: Floats, safe: Floats, settings: Floats, memory: Floats, bounds: Floats
) -> None:
    """Write the bounds of any candidates, and of the safe action."""
    g, count, declared = block.size, features.shape[0], get_rare_events_assumptions(block, settings)
    centre, half = bounds[block.first, CENTRE], bounds[block.first, HALF]
    for candidate in range(count + 1):
        action = features[candidate] if candidate < count else safe
        index, low, high = find_feature_block(block, action), 0.0, 0.0
        if index >= 0:
            feature_block, used_features = get_feature_block(block, memory, index), action[index * g : (index + 1) * g]
            estimate = dot(feature_block.fit, used_features)
            width = math.sqrt(max(feature_block.sums[SQUARE], 0.0)) * compute_event_width(
                feature_block.root, used_features
            )
            farthest = declared.bound * math.sqrt(dot(used_features, used_features))
            low, high = max(estimate - width, 0.0), min(estimate + width, farthest)
        centre[candidate], half[candidate] = 0.5 * (low + high), 0.5 * abs(high - low)
    if block.anchored == 1:
        centre[count], half[count] = declared.known, 0.0


@kernel
def check_rare_events(block: ModelBlock, memory: Floats) -> int:
    """Return the contradiction code of the model if a set is empty (its radius² is below 0); 0: none is."""
    for index in range(count_feature_blocks(block)):
        if not get_feature_block(block, memory, index).sums[SQUARE] >= 0.0:
            return encode_contradiction(MODEL, block.first - 1)
    return 0


@kernel
def draw_rare_events(
    block: ModelBlock, features: Floats, safe: Floats, posterior_scale: float, settings: Floats, memory: Floats,
    bounds: Floats, seed: int, run: int, round_: int, work: Floats,
) -> None:  # fmt: skip
    """Write a posterior draw of every candidate's mean, <x, fit> + ν <Tx, η>, clipped to its bounds; `work` is (d,)."""
    g, count, draws = block.size, features.shape[0], work[: count_feature_blocks(block) * block.size]
    drawn, centre = bounds[block.first, SAMPLED], bounds[block.first, CENTRE]
    fill_normal(draws, seed, run, round_, POSTERIOR + int(block.first))
    for candidate in range(count + 1):
        action = features[candidate] if candidate < count else safe
        index = find_feature_block(block, action)
        drawn[candidate] = centre[candidate]
        if index >= 0:
            feature_block, used_features = get_feature_block(block, memory, index), action[index * g : (index + 1) * g]
            deviation = 0.0
            for i in range(g):
                total = 0.0
                for j in range(i + 1):
                    total += feature_block.root[i, j] * used_features[j]
                deviation += total * draws[index * g + i]
            drawn[candidate] = dot(feature_block.fit, used_features) + posterior_scale * deviation
    clip_to_bounds(block, bounds)
