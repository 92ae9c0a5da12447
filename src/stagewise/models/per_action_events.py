"""A rare cost in [low, low + 1] that is linear in the context, with its own set of rare events for every action.

The sets hold at all times for every user at once, whoever chose the rows (docs/theory/rare.md). Rows of features are as
in `models.per_action_ridge`.

    memory:   for each action the memory of `models.rare_events` with one block of features and a table
    settings: for each action the settings of `models.rare_events`: S, log 1/δ', guess, 1, 0; then low and the declared
              bound of the safe action
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python, kernel
from stagewise.engine.layout import (
    SAFE_INDEX,
    ModelBlock,
    copy_values,
    get_model_block,
    get_posterior_scale,
    pad_to_vector,
    read_block_fields,
)
from stagewise.engine.model import Model
from stagewise.engine.random import POSTERIOR, normal
from stagewise.engine.workspace import ALARM, CENTRE, CROSS, ESTIMATE, HALF, SAMPLED, clip_to_bounds
from stagewise.models.cholesky import dot
from stagewise.models.diagnostics import Evidence, ModelDiagnostics
from stagewise.models.per_action_ridge import apply_safe_declaration, check_safe_declaration
from stagewise.models.rare_events import (
    NO_BOUNDS,
    ROWS,
    SQUARE,
    TOTAL,
    FeatureBlock,
    check_rare_events,
    compute_event_width,
    compute_forecast,
    compute_highest_mean,
    compute_rate,
    get_feature_block,
    learn_events_log,
    learn_rare_events,
    rare_events_size,
    start_rare_events,
)

NUMBERS = 5  # settings of one action


@kernel
def get_action_events(block: ModelBlock, action: int) -> ModelBlock:
    """Return the block of one action, as `models.rare_events` reads it."""
    size = rare_events_size(block.size, 1, block.radius)
    return ModelBlock(
        block.first, 1, block.size, block.radius, 0, 0, 1, 0, block.settings + NUMBERS * action,
        block.memory + size * action,
    )  # fmt: skip


@kernel
def get_action_set(block: ModelBlock, memory: Floats, action: int) -> FeatureBlock:
    """Return the sums and the ellipsoid of one action."""
    return get_feature_block(get_action_events(block, action), memory, 0)


@kernel
def get_low(block: ModelBlock, settings: Floats) -> float:
    """Return the smallest outcome."""
    return settings[block.settings + NUMBERS * block.detail]


@kernel
def get_declared(block: ModelBlock, settings: Floats) -> float:
    """Return the declared bound of the safe action."""
    return settings[block.settings + NUMBERS * block.detail + 1]


@kernel
def estimate_event_mean(events: ModelBlock, action_set: FeatureBlock, x: Floats, settings: Floats) -> float:
    """Return the forecast of a user's mean."""
    return compute_forecast(action_set, compute_rate(action_set.sums, settings[events.settings + 2]), x)


def per_action_events_size(layout: Ints, index: int, candidates: int, capacity: int) -> int:
    """Return the length of a block's memory."""
    block = read_block_fields(layout, index)
    return int(pad_to_vector(block.detail * rare_events_size(block.size, 1, block.radius)))


@kernel
def start_per_action_events(layout: Ints, block: ModelBlock, settings: Floats, memory: Floats, work: Floats) -> None:
    """Write the sets without data."""
    for action in range(block.detail):
        start_rare_events(layout, get_action_events(block, action), settings, memory, work)


@kernel
def fill_per_action_events_bounds(
    layout: Ints, block: ModelBlock, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    work: Floats,
) -> None:  # fmt: skip
    """Write the bounds of every action in its context, and of the safe one; the width ‖Tx‖ of an action to CROSS."""
    signal, start = block.first, get_low(block, settings)
    centre, half, widths = bounds[signal, CENTRE], bounds[signal, HALF], bounds[signal, CROSS]
    for action in range(block.detail):
        events, x = get_action_events(block, action), features[action, 1 : 1 + block.size]
        action_set = get_feature_block(events, memory, 0)
        width = compute_event_width(action_set.root, x)
        high = max(compute_highest_mean(events, settings, action_set, x), 0.0)
        low = dot(action_set.fit, x) - math.sqrt(max(action_set.sums[SQUARE], 0.0)) * width
        low = min(max(low, 0.0), high)
        centre[action], half[action], widths[action] = start + 0.5 * (low + high), 0.5 * (high - low), width
        estimate = min(max(estimate_event_mean(events, action_set, x, settings), low), high)
        bounds[signal, ESTIMATE, action] = start + (estimate if action_set.sums[ROWS] > 0.0 else 0.5 * (low + high))
    apply_safe_declaration(layout, signal, get_declared(block, settings), bounds)


@kernel
def check_per_action_events(layout: Ints, block: ModelBlock, settings: Floats, memory: Floats, bounds: Floats) -> int:
    """Return the code of an action whose set is empty, or of the safe action's contradicted cost; 0: none."""
    for action in range(block.detail):
        found = check_rare_events(layout, get_action_events(block, action), settings, memory, bounds)
        if found != 0:
            return found
    if settings[ALARM] == math.inf:
        return 0
    return check_safe_declaration(layout, block.first, get_declared(block, settings), bounds)


@kernel
def learn_per_action_events(
    layout: Ints, block: ModelBlock, action: Floats, index: int, cached_index: int, step: float, cached_only: bool,
    observed: Floats, settings: Floats, memory: Floats, work: Floats,
) -> None:  # fmt: skip
    """Learn the outcome of an action in its context."""
    work[0] = observed[0] - get_low(block, settings)
    events = get_action_events(block, int(action[0]))
    learn_rare_events(events, action[1 : 1 + block.size], work[:1], settings, memory)


@kernel
def learn_event_rows(
    layout: Ints, index: int, skipped: int, rows: Floats, outcomes: Floats, settings: Floats, memory: Floats,
    ends: Floats, work: Floats,
) -> None:  # fmt: skip
    """Learn rows, and write the upper end, above the smallest outcome, that each had before; 1: `skipped`.

    Outcomes that are NaN are left out.
    """
    block = get_model_block(layout, memory, index)
    for i in range(outcomes.size):
        if outcomes[i] == outcomes[i]:
            action, x = int(rows[i, 0]), rows[i, 1 : 1 + block.size]
            events = get_action_events(block, action)
            ends[i] = 1.0
            if action != skipped:
                high = compute_highest_mean(events, settings, get_feature_block(events, memory, 0), x)
                ends[i] = min(max(high, 0.0), 1.0)
            work[0] = outcomes[i] - get_low(block, settings)
            learn_rare_events(events, x, work[:1], settings, memory)


@kernel
def widen_per_action_events(layout: Ints, old: ModelBlock, new: ModelBlock, memory: Floats, changed: Floats) -> None:
    """Copy every action's events; the other memory may have more actions."""
    size = old.detail * rare_events_size(old.size, 1, old.radius)
    copy_values(memory, old.memory, changed, new.memory, size)


@kernel
def sample_per_action_events(
    layout: Ints, block: ModelBlock, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    seed: int, run: int, round_: int, work: Floats,
) -> None:  # fmt: skip
    """Write a posterior draw of every action's mean, N(estimate, ν² ‖Tx‖²)."""
    signal, scale = block.first, get_posterior_scale(settings)
    drawn, estimates = bounds[signal, SAMPLED], bounds[signal, ESTIMATE]
    for action in range(block.detail):
        deviate = scale * normal(seed, run, round_, POSTERIOR + int(signal), action)
        drawn[action] = estimates[action] + deviate * drawn[action]
    drawn[block.detail] = drawn[layout[SAFE_INDEX]]
    clip_to_bounds(block, bounds)


def are_tables_valid(block: ModelBlock, memory: Floats) -> bool:
    """Return whether every action's count of events is one that its table can have."""
    size = SIZE(block.size, 1, block.radius)
    used = memory[block.memory : block.memory + block.detail * size : size]
    return bool(((used >= 0.0) & (used < block.radius) & (used == np.floor(used))).all())


def learn_events_by_action(block: ModelBlock, settings: Floats, memory: Floats, rows: Floats, values: Floats) -> None:
    """Learn the rows (n, D) of a log, which begin with the action and its context; values are those of all signals."""
    outcomes, features = values[:, block.first], rows[:, 1 : 1 + block.size]
    for action in range(block.detail):
        mine = ~np.isnan(outcomes) & (rows[:, 0] == action)
        if mine.any():
            events, low = GET_EVENTS(block, action), LOW(block, settings)
            learn_events_log(events, settings, memory, np.ascontiguousarray(features[mine]), outcomes[mine] - low)


GET_EVENTS, GET_SET = as_python(get_action_events), as_python(get_action_set)
ESTIMATE_MEAN, CHECK, LOW = as_python(estimate_event_mean), as_python(check_rare_events), as_python(get_low)
SIZE = as_python(rare_events_size)


class PerActionEventsDiagnostics(ModelDiagnostics):
    """Diagnostics of a rare cost that is linear in the context: whether a confidence set is empty."""

    has_safe_cost_per_user = True

    def find_contradictions(self, block: Any, layout: Ints, settings: Floats, memory: Floats) -> Iterator[int]:
        for action in range(int(block.detail)):
            code = int(CHECK(layout, GET_EVENTS(block, action), settings, memory, NO_BOUNDS))
            if code:
                yield -code

    def get_evidence(self, block: Any, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        sums = GET_SET(block, memory, int(layout[SAFE_INDEX])).sums
        mean = float(LOW(block, settings) + sums[TOTAL] / max(sums[ROWS], 1.0))
        return Evidence(float(sums[ROWS]), 0.0, 0.0, float(sums[ROWS]), mean)

    def fill_estimates(self, block: Any, features: Floats, settings: Floats, memory: Floats, fits: Floats) -> None:
        for action in range(int(block.detail)):
            events, found = GET_EVENTS(block, action), GET_SET(block, memory, action)
            if found.sums[ROWS] > 0.0:
                x = features[action, 1 : 1 + block.size]
                fits[action] = LOW(block, settings) + ESTIMATE_MEAN(events, found, x, settings)

    def count_learned(self, block: Any, features: Floats, memory: Floats, index: int) -> float | None:
        return float(GET_SET(block, memory, index).sums[ROWS])

    def fill_totals(self, block: Any, settings: Floats, memory: Floats, pulls: Floats, totals: Floats) -> None:
        for action in range(int(block.detail)):
            sums = GET_SET(block, memory, action).sums
            pulls[action], totals[action] = sums[ROWS], sums[TOTAL] + LOW(block, settings) * sums[ROWS]


PER_ACTION_EVENTS = Model(
    "stagewise.models.per_action_events:PER_ACTION_EVENTS", get_model_block, per_action_events_size,
    start_per_action_events, fill_per_action_events_bounds, check_per_action_events, learn_per_action_events,
    None, widen_per_action_events, sample_per_action_events, diagnostics=PerActionEventsDiagnostics(),
    estimates=1, is_valid=are_tables_valid, finish_log=learn_events_by_action, learns_logs=1,
    learn_with_ends=learn_event_rows,
)  # fmt: skip
