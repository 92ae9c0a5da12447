"""Costs in [0, 1] that are rarely above 0, of linear mean <x, μ> ≥ 0, with features that need not recur.

docs/theory/rare.md has the statement and its proof. With probability 1 − δ, at all times at once,

    Σ (<x, μ> − y log <x, μ>)  ≤  Σ (p − y log p) + log 1/δ,        p > 0 any forecast made before y was seen

so rows without an event (y = 0) only contribute to Σ x and Σ p. Events are kept in a table; `refit` turns them
into an ellipsoid, each at a point q and below its own bound M (see `event_curvature`). When the table is full, its
events are folded permanently into one parabola. Between refits the ellipsoid is out of date but valid.

The features may be blocks of equal length, of which an action uses one: each block has its own set.

    settings: S | log 1/δ of a block | a guess of the rate | a bound on means | known at x₀
    memory:   used | matrix (g, g) | vectors (2, g) | blocks: sums, vectors (4, g), T and folded (2g, g) | the table
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python, kernel
from stagewise.engine.layout import (
    ModelBlock,
    get_model_block,
    get_posterior_scale,
    get_safe_action,
    pad_to_vector,
    read_block_fields,
)
from stagewise.engine.model import Model
from stagewise.engine.random import POSTERIOR, fill_normal
from stagewise.engine.workspace import CENTRE, HALF, MODEL, SAMPLED, clip_to_bounds, encode_contradiction
from stagewise.models.cholesky import dot, factorise, invert
from stagewise.models.diagnostics import ModelDiagnostics
from stagewise.models.model_block import ModelBlockSpec
from stagewise.models.ridge import LinearModel


@kernel
def invert_root(matrix: Floats) -> None:
    """Replace the lower triangle of V (n, n) by T = L⁻¹, V = LLᵀ; entries above the diagonal are not read."""
    factorise(matrix, matrix)
    invert(matrix)


@kernel
def solve_root(root: Floats, vector: Floats, image: Floats, solution: Floats) -> float:
    """Write Tb and V⁻¹b = TᵀTb; return bᵀV⁻¹b."""
    n, form = vector.size, 0.0
    for i in range(n):
        solution[i] = 0.0
    for i in range(n):
        total = 0.0
        for j in range(i + 1):
            total += root[i, j] * vector[j]
        image[i] = total
        form += total * total
        for j in range(i + 1):
            solution[j] += root[i, j] * total
    return form


EVENT_SUMS = 8  # sums that are kept of a block of features
ROWS, HITS, TOTAL, LOSS, DUE_HITS, DUE_ROWS, SQUARE, CONSTANT = range(EVENT_SUMS)  # SQUARE: the ellipsoid's radius²
LOWEST_FORECAST, HIGHEST_FORECAST = 0.3, 3.0  # bounds of forecasts, in units of the rate so far
FIRST_REFIT_ROWS = 32.0  # rows before the first fit of a block without events


@kernel
def count_feature_blocks(block: ModelBlock) -> int:
    return block.detail


@kernel
def get_table_capacity(block: ModelBlock) -> int:
    return block.radius


@kernel
def feature_block_size(size: int) -> int:
    return EVENT_SUMS + 4 * size + 2 * size * size


@kernel
def rare_events_size(size: int, blocks: int, capacity: int) -> int:
    """Return the length of the memory of blocks of features and a table of events."""
    return 1 + size * size + 2 * size + blocks * feature_block_size(size) + capacity * (size + 2)


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
def start_rare_events(layout: Ints, block: ModelBlock, settings: Floats, memory: Floats, work: Floats) -> None:
    """Write the sets without data: ‖μ‖ ≤ S."""
    for index in range(count_feature_blocks(block)):
        feature_block = get_feature_block(block, memory, index)
        sums = feature_block.sums
        sums[SQUARE], sums[DUE_HITS], sums[DUE_ROWS] = 1.0, 1.0, FIRST_REFIT_ROWS
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
def fill_rare_events_bounds(
    layout: Ints, block: ModelBlock, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    work: Floats,
) -> None:  # fmt: skip
    """Write the bounds of any candidates, and of the safe action."""
    g, count, declared = block.size, features.shape[0], get_rare_events_assumptions(block, settings)
    safe = get_safe_action(layout, settings).features
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
def check_rare_events(layout: Ints, block: ModelBlock, settings: Floats, memory: Floats, bounds: Floats) -> int:
    """Return the contradiction code of the model if a set is empty (its radius² is below 0); 0: none is."""
    for index in range(count_feature_blocks(block)):
        if not get_feature_block(block, memory, index).sums[SQUARE] >= 0.0:
            return encode_contradiction(MODEL, block.first - 1)
    return 0


@kernel
def sample_rare_events(
    layout: Ints, block: ModelBlock, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    seed: int, run: int, round_: int, work: Floats,
) -> None:  # fmt: skip
    """Write a posterior draw of every candidate's mean, <x, fit> + ν <Tx, η>, clipped to its bounds; `work` is (d,)."""
    g, count, draws = block.size, features.shape[0], work[: count_feature_blocks(block) * block.size]
    drawn, centre = bounds[block.first, SAMPLED], bounds[block.first, CENTRE]
    safe, posterior_scale = get_safe_action(layout, settings).features, get_posterior_scale(settings)
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


SHRINKAGE = 100.0  # prior events that pull the forecast towards the rate
NEWTON, REFIT_ITERATIONS = 4, 8  # Newton steps of the forecast; iterations of set and curvatures
ROUNDING = 1e-9  # of sums that nearly cancel
SHARE = 8.0  # a block is refitted when its events have grown by this fraction


@kernel
def event_curvature(ratio: float) -> float:
    """Return κ with −log(m/q) ≥ 1 − m/q + κ(m/q − 1)²/2 for every m in (0, M], given M/q; at most 1.

    κ = 2 (r − 1 − log r)/(r − 1)²,    r = M/q ≥ 1        (the right side decreases in r)
    """
    excess = max(ratio, 1.0) - 1.0
    if excess < 1e-4:
        return 1.0 - 2.0 * excess / 3.0
    return 2.0 * (excess - math.log1p(excess)) / (excess * excess)


@kernel
def add_event(action: Floats, curvature: float, pull: float, matrix: Floats, vector: Floats) -> None:
    """Add curvature xxᵀ, its lower triangle, and pull x."""
    for i in range(vector.size):
        vector[i] += pull * action[i]
        scaled = curvature * action[i]
        for j in range(i + 1):
            matrix[i, j] += scaled * action[j]


@kernel
def start_sums(block: ModelBlock, settings: Floats, memory: Floats, index: int) -> None:
    """Write the terms that do not depend on the table: λI and the folded events' curvature, their pull less Σ x."""
    table, feature_block = get_event_table(block, memory), get_feature_block(block, memory, index)
    bound = settings[block.settings]
    for i in range(block.size):
        table.vectors[0, i] = feature_block.pull[i] - feature_block.total[i]
        for j in range(i + 1):
            table.matrix[i, j] = feature_block.folded[i, j]
        table.matrix[i, i] += 1.0 / (bound * bound)


@kernel
def refit_forecast(block: ModelBlock, settings: Floats, memory: Floats, index: int) -> None:
    """Take Newton steps towards the penalised maximum likelihood; any forecast is valid."""
    g, table, feature_block = block.size, get_event_table(block, memory), get_feature_block(block, memory, index)
    rate = compute_rate(feature_block.sums, get_rare_events_assumptions(block, settings).guess)
    used, events = int(table.used[0]), 0.0
    for event in range(used):
        events += 1.0 if table.rows[event, g + 1] == index else 0.0
    prior_weight = SHRINKAGE / max(events, 1.0)
    for _ in range(NEWTON):
        start_sums(block, settings, memory, index)
        for event in range(used):
            if table.rows[event, g + 1] == index:
                action, value = table.rows[event, :g], table.rows[event, g]
                point = compute_forecast(feature_block, rate, action)
                curvature = value / (point * point) + prior_weight / (rate * rate)
                pull = 2.0 * value / point + prior_weight / rate
                add_event(action, curvature, pull, table.matrix, table.vectors[0])
        invert_root(table.matrix)
        solve_root(table.matrix, table.vectors[0], table.vectors[1], feature_block.forecast)


@kernel
def add_parabolas(
    block: ModelBlock, settings: Floats, memory: Floats, index: int, matrix: Floats, vector: Floats
) -> float:
    """Add every event's parabola, at its forecast and below the largest plausible mean; return their constants.

    −y log m ≥ y (1 + κ/2 − log q) − (y/q)(1 + κ) m + (yκ/q²) m²/2
    """
    g, table, feature_block = block.size, get_event_table(block, memory), get_feature_block(block, memory, index)
    constant = 0.0
    rate = compute_rate(feature_block.sums, get_rare_events_assumptions(block, settings).guess)
    for event in range(int(table.used[0])):
        if table.rows[event, g + 1] == index:
            action, value = table.rows[event, :g], table.rows[event, g]
            point = compute_forecast(feature_block, rate, action)
            kappa = event_curvature(compute_highest_mean(block, settings, feature_block, action) / point)
            constant += value * (1.0 + 0.5 * kappa - math.log(point))
            add_event(action, value * kappa / (point * point), value * (1.0 + kappa) / point, matrix, vector)
    return constant


@kernel
def refit(block: ModelBlock, settings: Floats, memory: Floats, index: int) -> None:
    """Recompute a block's forecast and its ellipsoid.

        ½‖μ − fit‖²_V ≤ Σ (p − y log p) + log 1/δ + ½ − C + ½ cᵀV⁻¹c,    V = I/S² + Σ (yκ/q²) xxᵀ

    with c the events' pulls less Σ x, and C their constants. Every iteration's set is valid and bounds the next one's
    means.
    """
    g, table, feature_block = block.size, get_event_table(block, memory), get_feature_block(block, memory, index)
    sums, confidence = feature_block.sums, get_rare_events_assumptions(block, settings).confidence
    refit_forecast(block, settings, memory, index)
    for _ in range(REFIT_ITERATIONS):
        start_sums(block, settings, memory, index)
        constant = sums[CONSTANT] + add_parabolas(block, settings, memory, index, table.matrix, table.vectors[0])
        invert_root(table.matrix)
        form = solve_root(table.matrix, table.vectors[0], table.vectors[1], feature_block.fit)
        rounding = ROUNDING * (abs(sums[LOSS]) + abs(constant) + form)
        sums[SQUARE] = 2.0 * (sums[LOSS] + confidence + 0.5 - constant) + form + rounding
        for i in range(g):
            for j in range(i + 1):
                feature_block.root[i, j] = table.matrix[i, j]
    sums[DUE_HITS] = sums[HITS] + 1.0 + math.floor(sums[HITS] / SHARE)
    sums[DUE_ROWS] = 2.0 * max(sums[ROWS], FIRST_REFIT_ROWS)


@kernel
def fold_events(block: ModelBlock, settings: Floats, memory: Floats) -> None:
    """Fold the table's events into their parabolas permanently, and empty the table."""
    table = get_event_table(block, memory)
    for index in range(count_feature_blocks(block)):
        refit(block, settings, memory, index)
        feature_block = get_feature_block(block, memory, index)
        feature_block.sums[CONSTANT] += add_parabolas(
            block, settings, memory, index, feature_block.folded, feature_block.pull
        )
    table.used[0] = 0.0


@kernel
def record_event(block: ModelBlock, action: Floats, value: float, memory: Floats, index: int) -> None:
    """Count a row of a block, and store it if it has an event; the table must have room."""
    g, table, feature_block = block.size, get_event_table(block, memory), get_feature_block(block, memory, index)
    used_features, sums, total = action[index * g : (index + 1) * g], feature_block.sums, feature_block.total
    sums[ROWS] += 1.0
    for i in range(g):
        total[i] += used_features[i]
    if value > 0.0:
        sums[HITS] += 1.0
        sums[TOTAL] += value
        event = table.rows[int(table.used[0])]
        for i in range(g):
            event[i] = used_features[i]
        event[g], event[g + 1] = value, float(index)
        table.used[0] += 1.0


@kernel
def record_rows(block: ModelBlock, actions: Floats, values: Floats, memory: Floats) -> None:
    """Count the rows (n, d) of a log, without forecasts."""
    for row in range(values.size):
        index = find_feature_block(block, actions[row])
        if index >= 0:
            record_event(block, actions[row], values[row], memory, index)


@kernel
def learn_rare_events(block: ModelBlock, action: Floats, values: Floats, settings: Floats, memory: Floats) -> None:
    """Learn the outcome (1,) of the action x."""
    g, index = block.size, find_feature_block(block, action)
    if index < 0:
        return
    feature_block, table, value = get_feature_block(block, memory, index), get_event_table(block, memory), values[0]
    rate = compute_rate(feature_block.sums, get_rare_events_assumptions(block, settings).guess)
    forecast = compute_forecast(feature_block, rate, action[index * g : (index + 1) * g])
    feature_block.sums[LOSS] += forecast - value * math.log(forecast)
    record_event(block, action, value, memory, index)
    if int(table.used[0]) == get_table_capacity(block):
        fold_events(block, settings, memory)
    elif (
        feature_block.sums[HITS] >= feature_block.sums[DUE_HITS]
        or feature_block.sums[ROWS] >= feature_block.sums[DUE_ROWS]
    ):
        refit(block, settings, memory, index)


CHECK_RARE_EVENTS, NO_BOUNDS = as_python(check_rare_events), np.empty(0)
TABLE = 2048  # capacity of a cost's event table before its events are folded
SCALES = 16  # σ = S, S/2, S/4, … share the weight of the prior
RADII_TRIED = (0.5, 0.7, 0.9)  # radii around the fit, in units of an event's mean
FIT_STEPS = 24


class RareEventsDiagnostics(ModelDiagnostics):
    """Diagnostics of rare costs: whether a confidence set is empty."""

    def find_contradictions(self, block: ModelBlock, layout: Ints, settings: Floats, memory: Floats) -> Iterator[int]:
        code = int(CHECK_RARE_EVENTS(layout, block, settings, memory, NO_BOUNDS))
        return iter([-code] if code else [])


def rare_events_memory_size(layout: Ints, index: int, candidates: int, capacity: int) -> int:
    """Return the length of a block's memory."""
    block = read_block_fields(layout, index)
    return int(pad_to_vector(rare_events_size(block.size, block.detail, block.radius)))


@kernel
def learn_rare_events_block(
    layout: Ints, block: ModelBlock, action: Floats, index: int, cached_index: int, step: float, cached_only: bool,
    observed: Floats, settings: Floats, memory: Floats, work: Floats,
) -> None:  # fmt: skip
    learn_rare_events(block, action, observed, settings, memory)


GET_BLOCK, GET_TABLE = as_python(get_feature_block), as_python(get_event_table)
GET_ASSUMPTIONS = as_python(get_rare_events_assumptions)
COUNT_BLOCKS, TABLE_CAPACITY = as_python(count_feature_blocks), as_python(get_table_capacity)
EVENTS_SIZE = as_python(rare_events_size)


def learn_rare_events_log(block: ModelBlock, settings: Floats, memory: Floats, rows: Floats, values: Floats) -> None:
    """Learn the rows (n, d) of a log; the values are those of all signals."""
    learn_events_log(block, settings, memory, rows, values[:, block.first])


def learn_events_log(block: ModelBlock, settings: Floats, memory: Floats, actions: Floats, outcomes: Floats) -> None:
    """Learn the rows (n, d) and outcomes (n,) of a log.

    All rows go into one table, which is folded if it is too long. The rows can be in any order, so there are no
    sequential forecasts; a mixture replaces them.
    """
    used, hits = int(GET_TABLE(block, memory).used[0]), int((outcomes > 0.0).sum())
    capacity = used + hits + 1
    batch_block = block._replace(radius=capacity, memory=0)  # so that `get_table_capacity` is the capacity
    batch = np.zeros(EVENTS_SIZE(block.size, COUNT_BLOCKS(block), capacity))
    copy_rare_events(block, memory, batch_block, batch)
    record_rows(batch_block, actions, outcomes, batch)
    declared = GET_ASSUMPTIONS(block, settings)
    for which in range(COUNT_BLOCKS(block)):
        rows = actions[:, which * block.size : (which + 1) * block.size]
        chosen = rows.any(axis=1)
        if chosen.any():
            feature_block = GET_BLOCK(batch_block, batch, which)
            feature_block.sums[LOSS] += compute_log_loss(rows[chosen], outcomes[chosen], declared.bound, declared.guess)
    if used + hits < TABLE_CAPACITY(block):
        for which in range(COUNT_BLOCKS(block)):
            refit(batch_block, settings, batch, which)
    else:
        fold_events(batch_block, settings, batch)
    copy_rare_events(batch_block, batch, block, memory)


RARE_EVENTS = Model(
    "stagewise.models.rare_events:RARE_EVENTS", get_model_block, rare_events_memory_size, start_rare_events,
    fill_rare_events_bounds, check_rare_events, learn_rare_events_block, None, None,
    sample_rare_events, diagnostics=RareEventsDiagnostics(), finish_log=learn_rare_events_log, learns_logs=1,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class RareEventsModel(LinearModel):
    """The assumptions about a linear reward and rare costs; `confidence` of a cost is that of one feature block."""

    blocks: int  # of features, of which an action uses one
    guesses: Floats  # (m,) of the costs' rates
    ceilings: Floats  # (m,)

    def build_blocks(self) -> Iterator[ModelBlockSpec]:
        """Yield the reward's regression, and a model for every cost."""
        yield self.build_block(0, 1, self.reward is not None)
        for signal in range(1, len(self.names)):
            known = 0.0 if self.costs is None else float(self.costs[signal - 1])
            size = self.safe.size // self.blocks
            integers = (signal, 1, size, TABLE, int(self.costs is not None), 0, self.blocks, 0)
            declared = (self.norm_bound[signal], self.confidence[signal], self.guesses[signal - 1])
            yield ModelBlockSpec(RARE_EVENTS, integers, np.array([*declared, self.ceilings[signal - 1], known]))

    def learned_bounds(self, size: float) -> Floats:
        """Return what S leaves for the learned part of the reward; a known cost leaves its S unchanged."""
        return LinearModel.learned_bounds(replace(self, costs=None), size)


def compute_log_loss(features: Floats, outcomes: Floats, bound: float, guess: float) -> float:
    """Return a bound on Σ (p − y log p) of a log's rows (n, g), whatever their order.

    Forecasts would need an order. A mixture of forecasters needs none: half of it forecasts one rate for every row,
    half <x, ν> with a Gaussian ν.
    """
    return min(compute_rate_loss(outcomes, guess), compute_linear_loss(features, outcomes, bound, guess)) + math.log(
        2.0
    )


def compute_rate_loss(outcomes: Floats, guess: float) -> float:
    """Return −log ∫ λ^Σy e^(−nλ) over λ ~ Gamma(½, 1/2q): the loss of a rate that starts at q."""
    total, before = float(outcomes.sum()), 0.5 / guess
    return (
        math.lgamma(0.5) - math.lgamma(0.5 + total)
        - 0.5 * math.log(before) + (0.5 + total) * math.log(before + outcomes.size)
    )  # fmt: skip


def compute_linear_loss(features: Floats, outcomes: Floats, bound: float, guess: float) -> float:
    """Return a bound on −log ∫ Π p^y e^(−p) over ν ~ N(0, σ² I), p = max(<x, ν>, 0), with the best of the scales σ.

        F(f) + ‖f‖²/2σ² + ½ log det σ²P − log Z + Σ E(<x, ν>)₋/Z,    ν ~ N(f, P⁻¹),  P = cH + I/σ²

    at any f with <x, f> > 0 at all events (docs/theory/rare.md); infinite where none was found.
    """
    hit, sums = outcomes > 0.0, features.sum(axis=0)
    rows, values = features[hit], outcomes[hit]
    rate, best, chosen = (float(values.sum()) + 0.5) / (outcomes.size + 0.5 / guess), math.inf, None
    for scale in bound * 0.5 ** np.arange(SCALES):
        fit = fit_likelihood(rows, values, sums, rate, float(scale))
        means = rows @ fit
        if not np.all(means > 0.0):
            continue
        flat = float(sums @ fit - values @ np.log(means) + fit @ fit / (2.0 * scale**2)) + math.log(SCALES)
        curvature = (rows * (values / means**2)[:, None]).T @ rows
        for radius in RADII_TRIED:
            inside, volume, root = bound_mass_within(rows, means, curvature, float(scale), radius)
            if inside > 0.0 and flat + volume - math.log(inside) < best:
                best, chosen = flat + volume - math.log(inside), (fit, root, inside)
    return math.inf if chosen is None else best + compute_shortfall(features, chosen[0], chosen[1]) / chosen[2]


def fit_likelihood(rows: Floats, values: Floats, sums: Floats, rate: float, scale: float) -> Floats:
    """Return the maximum-likelihood fit by Newton steps, with means clipped to a range around the rate."""
    points, fit = np.full(len(rows), rate), np.zeros(sums.size)
    for _ in range(FIT_STEPS):
        matrix = np.eye(sums.size) / scale**2 + (rows * (values / points**2)[:, None]).T @ rows
        fit = np.linalg.solve(matrix, rows.T @ (2.0 * values / points) - sums)
        points = np.clip(rows @ fit, 0.1 * rate, 10.0 * rate)
    return fit


def bound_mass_within(
    rows: Floats, means: Floats, curvature: Floats, scale: float, radius: float
) -> tuple[float, float, Floats]:
    """Return a lower bound on the mass Z of N(f, P⁻¹) within a radius of all events; ½ log det σ²P; and P^(−½)."""
    from scipy.special import erfc  # type: ignore[import-untyped]

    widen, g = -math.log1p(-(radius**2)) / radius**2, curvature.shape[0]
    lower = np.linalg.cholesky(widen * curvature + np.eye(g) / scale**2)
    root = np.linalg.inv(lower).T  # ν = f + root η
    deviations = np.linalg.norm(rows @ root, axis=1) / means
    inside = 1.0 - float(erfc(radius / (math.sqrt(2.0) * deviations)).sum())
    return inside, g * math.log(scale) + float(np.log(np.diag(lower)).sum()), root


def compute_shortfall(features: Floats, fit: Floats, root: Floats) -> float:
    """Return Σ E(<x, ν>)₋, ν ~ N(f, P⁻¹): s φ(z) − s z Φ(−z) with z = <x, f>/s, summed over all rows."""
    from scipy.special import erfc

    deviations = np.linalg.norm(features @ root, axis=1)
    z = (features @ fit) / deviations
    shortfalls = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) - 0.5 * z * erfc(z / math.sqrt(2.0))
    rounding = 1e-12 * float(deviations.sum())
    return float(deviations @ np.maximum(shortfalls, 0.0)) + rounding
