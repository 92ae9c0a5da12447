"""A cost in [low, low + 1] that is logistic in the context, with its own parameter θ for every action.

    mean = low + 1/(1 + e^−<x, θ>),    upper end = the largest <x, θ> in the set of `models.logistic_fit`

The set holds at all times for every user at once, whoever chose the rows. A fit is renewed when its action has a
sixteenth more rows; in between the last set still holds. Rows of features are as in `models.per_action_ridge`.

    memory:   chunks in use | for each action an `ActionFit` | chunks of LANES rows: the next one of the same action,
              then the features and the fitted mean p, each for all rows of the chunk
    settings: low, declared bound of the safe action, log 1/δ' | m₀ and the precision of the intercept, the precision of
              a slope, R: no θ is further than R from m₀ in the norm of P₀ | log 1/share of every action (K,)
"""

import math
from typing import Any

from stagewise.engine.compile import Floats, Ints, as_python, kernel
from stagewise.engine.layout import (
    CAPACITY,
    ELSEWHERE,
    SAFE_INDEX,
    ModelBlock,
    copy_values,
    get_model_block,
    get_posterior_scale,
    pad_to_vector,
    read_block_fields,
)
from stagewise.engine.model import Model, start_with_zeros
from stagewise.engine.random import POSTERIOR, normal
from stagewise.engine.workspace import ALARM, CENTRE, CROSS, ESTIMATE, HALF, SAMPLED, clip_to_bounds
from stagewise.models.cholesky import dot, solve_lower
from stagewise.models.diagnostics import Evidence, ModelDiagnostics
from stagewise.models.logistic_ends import compute_end
from stagewise.models.logistic_fit import (
    COUNT,
    FIRST_CHUNK,
    FIRST_FIT,
    FITTED,
    LANES,
    LAST_CHUNK,
    RADIUS,
    ROUNDING,
    SAMPLE,
    SAMPLED_ROWS,
    SETTINGS,
    TURN_AT,
    ActionFit,
    Prior,
    append_row,
    chunk_size,
    count_chunks,
    fit_size,
    get_chunk_offset,
    get_fit,
    get_precision,
    get_prior,
    renew_fit,
    squash,
)
from stagewise.models.per_action_ridge import apply_safe_declaration, check_safe_declaration


@kernel
def learn_logistic(
    layout: Ints, block: ModelBlock, action: Floats, index: int, cached_index: int, step: float, cached_only: bool,
    observed: Floats, settings: Floats, memory: Floats, work: Floats,
) -> None:  # fmt: skip
    """Learn the outcome of an action in its context; a chunk must be free."""
    number = int(action[0])
    fit = get_fit(block, memory, number)
    append_row(block, fit, action[1 : 1 + block.size], observed[0] - settings[block.settings], memory)
    if fit.tally[COUNT] >= max(float(FIRST_FIT), fit.tally[TURN_AT]):
        confidence = settings[block.settings + 2] + settings[block.settings + SETTINGS + number]
        renew_fit(block, fit, confidence, settings, memory, work)


@kernel
def compute_log_odds(block: ModelBlock, fit: ActionFit, prior: Prior, x: Floats) -> float:
    """Return the estimate of <x, θ>: by θ̂, or before the first fit by the prior mean."""
    return dot(x, fit.theta) if fit.tally[FITTED] > 0.0 else prior.intercept


@kernel
def fill_logistic_bounds(
    layout: Ints, block: ModelBlock, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    work: Floats,
) -> None:  # fmt: skip
    """Write the bounds of every action in its context, and of the safe one.

    Lower ends are those of the ellipsoid around the set, and so is the upper end of a safe action whose cost is
    declared. The posterior deviation of an action's log-odds is written to CROSS.
    """
    n, signal, at, prior = block.size, block.first, block.settings, get_prior(block, settings)
    centre, half, widths = bounds[signal, CENTRE], bounds[signal, HALF], bounds[signal, CROSS]
    for action in range(block.detail):
        fit, x, low, high, variance = get_fit(block, memory, action), features[action, 1 : 1 + n], 0.0, 1.0, 0.0
        mean = compute_log_odds(block, fit, prior, x)
        if fit.tally[FITTED] > 0.0:
            variance = solve_lower(fit.posterior, x, work[:n])
            largest = fit.tally[RADIUS] * math.sqrt(solve_lower(fit.root, x, work[:n]))
            low = squash(mean - largest - ROUNDING)
            if action != layout[SAFE_INDEX] or settings[at + 1] == math.inf:
                largest = compute_end(block, fit, prior, x, memory, work)
            high = max(squash(mean + largest + ROUNDING), low)
        else:
            for i in range(n):
                variance += x[i] * x[i] / get_precision(prior, i)
        centre[action], half[action], widths[action] = (
            settings[at] + 0.5 * (low + high),
            0.5 * (high - low),
            math.sqrt(variance),
        )
        bounds[signal, ESTIMATE, action] = settings[at] + min(max(squash(mean), low), high)
    apply_safe_declaration(layout, signal, settings[at + 1], bounds)


@kernel
def learn_logistic_rows(
    layout: Ints, index: int, skipped: int, rows: Floats, outcomes: Floats, settings: Floats, memory: Floats,
    ends: Floats, work: Floats,
) -> None:  # fmt: skip
    """Learn rows, and write the upper end, above the smallest outcome, that each had before; 1: `skipped`, or no fit.

    Outcomes that are NaN are left out. Chunks for the rows must be free.
    """
    block = get_model_block(layout, memory, index)
    prior, x = get_prior(block, settings), rows[:, 1 : 1 + block.size]
    for i in range(outcomes.size):
        if outcomes[i] == outcomes[i]:
            fit = get_fit(block, memory, int(rows[i, 0]))
            ends[i] = 1.0
            if int(rows[i, 0]) != skipped and fit.tally[FITTED] > 0.0:
                largest = compute_end(block, fit, prior, x[i], memory, work)
                ends[i] = squash(dot(x[i], fit.theta) + largest + ROUNDING)
            learn_logistic(
                layout, block, rows[i], ELSEWHERE, ELSEWHERE, 1.0, False, outcomes[i : i + 1], settings, memory, work
            )


# The model.


def logistic_size(layout: Ints, index: int, candidates: int, capacity: int) -> int:
    """Return the length of a block's memory."""
    block = read_block_fields(layout, index)
    return int(pad_to_vector(1 + block.detail * FIT_SIZE(block.size) + capacity * CHUNK_SIZE(block.size)))


@kernel
def check_logistic(layout: Ints, block: ModelBlock, settings: Floats, memory: Floats, bounds: Floats) -> int:
    """Return the code of a contradicted cost of the safe action, or 0."""
    if settings[ALARM] == math.inf:
        return 0
    return check_safe_declaration(layout, block.first, settings[block.settings + 1], bounds)


@kernel
def widen_logistic(layout: Ints, old: ModelBlock, new: ModelBlock, memory: Floats, changed: Floats) -> None:
    """Copy fits and rows into a memory with more chunks or more actions."""
    n, chunks = old.size, count_chunks(old, memory)
    changed[new.memory] = memory[old.memory]
    copy_values(memory, old.memory + 1, changed, new.memory + 1, old.detail * fit_size(n))
    copy_values(memory, get_chunk_offset(old, 1), changed, get_chunk_offset(new, 1), chunks * chunk_size(n))


@kernel
def sample_logistic(
    layout: Ints, block: ModelBlock, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    seed: int, run: int, round_: int, work: Floats,
) -> None:  # fmt: skip
    """Write a posterior draw of every action's mean: log-odds N(<x, θ̂>, ν² xᵀ(H + P₀)⁻¹x)."""
    n, drawn, prior = block.size, bounds[block.first, SAMPLED], get_prior(block, settings)
    for action in range(block.detail):
        fit = get_fit(block, memory, action)
        deviate = get_posterior_scale(settings) * normal(seed, run, round_, POSTERIOR + int(block.first), action)
        mean = compute_log_odds(block, fit, prior, features[action, 1 : 1 + n])
        drawn[action] = settings[block.settings] + squash(mean + deviate * drawn[action])
    drawn[block.detail] = drawn[layout[SAFE_INDEX]]
    clip_to_bounds(block, bounds)


# Room for rows.


@kernel
def count_free_logistic_rows(layout: Ints, memory: Floats, index: int, rows: Floats, values: Floats) -> int:
    """Return how many rows there is room for, whatever their actions; at least 0."""
    block = get_model_block(layout, memory, index)
    free = int(memory[CAPACITY]) - count_chunks(block, memory)
    return min(free, 1) if free <= block.detail else (free - block.detail) * LANES


def reserve_logistic_rows(layout: Ints, memory: Floats, index: int, count: int) -> int:
    """Return the number of chunks for so many more rows, whatever their actions."""
    block = BLOCK(layout, memory, index)
    return int(CHUNKS(block, memory)) + int(block.detail) + count // LANES + 1


def are_chunks_valid(block: ModelBlock, memory: Floats) -> bool:
    """Return whether every row is in a chunk of the memory, and no fit has rows that there are not."""
    used, total = memory[block.memory], 0.0
    if not 0.0 <= used <= memory[CAPACITY]:
        return False
    for action in range(block.detail):
        tally = FIT(block, memory, action).tally
        if not (0.0 <= tally[FITTED] <= tally[COUNT] <= used * LANES and 0.0 <= tally[SAMPLED_ROWS] <= SAMPLE):
            return False
        chunks, chunk = (int(tally[COUNT]) + LANES - 1) // LANES, tally[FIRST_CHUNK]
        for passed in range(chunks):
            if not 1.0 <= chunk <= used:
                return False
            if passed == chunks - 1 and tally[LAST_CHUNK] != chunk:
                return False
            chunk = memory[CHUNK_OFFSET(block, int(chunk))]
        total += chunks
    return bool(total == used)


BLOCK, CHUNKS, CHUNK_OFFSET = as_python(get_model_block), as_python(count_chunks), as_python(get_chunk_offset)
FIT_SIZE, CHUNK_SIZE, FIT, PRIOR, LOG_ODDS, SQUASH = (
    as_python(fit_size),
    as_python(chunk_size),
    as_python(get_fit),
    as_python(get_prior),
    as_python(compute_log_odds),
    as_python(squash),
)


class LogisticDiagnostics(ModelDiagnostics):
    """Diagnostics of a signal that is logistic in the context."""

    has_safe_cost_per_user = True

    def get_evidence(self, block: Any, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        fit = FIT(block, memory, int(layout[SAFE_INDEX]))
        count = float(fit.tally[COUNT])
        mean = float(settings[block.settings]) + float(fit.outcomes[0]) / max(count, 1.0)
        return Evidence(count, 0.0, 0.0, count, mean)

    def fill_estimates(self, block: Any, features: Floats, settings: Floats, memory: Floats, fits: Floats) -> None:
        for action in range(int(block.detail)):
            fit = FIT(block, memory, action)
            if fit.tally[FITTED] > 0.0:
                log_odds = LOG_ODDS(block, fit, PRIOR(block, settings), features[action, 1 : 1 + block.size])
                fits[action] = settings[block.settings] + SQUASH(log_odds)

    def count_learned(self, block: Any, features: Floats, memory: Floats, index: int) -> float | None:
        return float(FIT(block, memory, index).tally[COUNT])

    def fill_totals(self, block: Any, settings: Floats, memory: Floats, pulls: Floats, totals: Floats) -> None:
        for action in range(int(block.detail)):
            fit = FIT(block, memory, action)
            pulls[action] = fit.tally[COUNT]
            totals[action] = fit.outcomes[0] + settings[block.settings] * fit.tally[COUNT]


LOGISTIC = Model(
    "stagewise.models.logistic:LOGISTIC", get_model_block, logistic_size, start_with_zeros, fill_logistic_bounds,
    check_logistic, learn_logistic, None, widen_logistic, sample_logistic,
    diagnostics=LogisticDiagnostics(), estimates=1, capacity="rows", free_rows=count_free_logistic_rows,
    reserve=reserve_logistic_rows, is_valid=are_chunks_valid,
    learn_with_ends=learn_logistic_rows,
)  # fmt: skip
