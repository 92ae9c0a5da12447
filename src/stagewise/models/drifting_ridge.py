"""A cost that is linear in the context and moves: regressions for every action that begin anew on a grid.

With |<x, θ_s − θ_t>| ≤ ω(t − s) for every context x, ‖θ_t‖ ≤ S and V = λI + Σ x xᵀ over the outcomes since an epoch
began, at all times t and for all epochs at once with probability 1 − δ'

    |<x, θ̂ − θ_t>| ≤ ‖x‖_V⁻¹ (R √(log det V/λⁿ + 2 log 1/δ_b) + √λ S + √(Σ ω_s²)),    ω_s = B + ρ (t − t_s)

(docs/theory/drift.md, Linear costs). Two epochs are kept: the newest and the one before, which bounds are those of. The
b-th that an action begins, on the grid or at a person's word, has 1/b(b + 1) of δ'. Σ ω_s² takes three sums. A
regression is not tested against its outcomes, since its parameter may move.

    memory:   steps of the grid: the newest, 0: none | the one that the epoch before began in | time of the first; then
              for each action: outcomes | Σ y | for the epoch before and for the newest: number b, 0: none | Σ τ | Σ τ²,
              of the times since the first | the memory of `models.per_action_ridge`
    settings: as in `models.per_action_ridge`, then column of the time | seconds of an epoch | ρ per second | B
"""

import math
from collections.abc import Iterator
from typing import Any

from stagewise.engine.compile import Floats, Ints, as_python, kernel
from stagewise.engine.layout import (
    ELSEWHERE,
    SAFE_INDEX,
    ModelBlock,
    copy_values,
    pad_to_vector,
    read_block_fields,
)
from stagewise.engine.workspace import ALARM, SAMPLED, clip_to_bounds
from stagewise.models.diagnostics import Evidence, Sums
from stagewise.models.per_action_ridge import (
    NUMBERS,
    PER_ACTION_RIDGE,
    PerActionRidgeDiagnostics,
    apply_safe_declaration,
    check_safe_declaration,
    fill_action_bounds,
    regression_size,
    sample_action,
    view_regression,
)
from stagewise.models.regression import (
    LOG_DET,
    LOGDET,
    OBSERVATIONS,
    Regression,
    get_ridge_assumptions,
    learn_ridge,
    radius,
)

NEWEST, PREVIOUS, ORIGIN, HEADER_SIZE = 0, 1, 2, 3
PULLS, TOTAL, FIRST_EPOCH = 0, 1, 2  # of an action
NUMBER, TIMES, SQUARED_TIMES, FIRST_NUMBER = 0, 1, 2, 3  # of an epoch
BEFORE, YOUNG = 0, 1
TIME_COLUMN, LENGTH, SLOPE, BUDGET = 3, 4, 5, 6  # in the settings, after those of the actions
PART = 8.0  # the mean may move by this part of its limit in an epoch


def build_drift_settings(column: int, ceiling: float, slope: float, budget: float) -> list[float]:
    """Return the numbers that this model reads; `ceiling` is the limit, above the lowest outcome."""
    return [float(column), max(ceiling, 1e-6) / slope / PART, slope, budget]


@kernel
def epoch_size(n: int) -> int:
    """Return the length of an epoch of one action."""
    return FIRST_NUMBER + regression_size(n)


@kernel
def get_action_offset(block: ModelBlock, action: int) -> int:
    return block.memory + HEADER_SIZE + action * (FIRST_EPOCH + 2 * epoch_size(block.size))


@kernel
def get_epoch_offset(block: ModelBlock, action: int, which: int) -> int:
    """Return the offset of an action's epoch before the newest, or of the newest."""
    return get_action_offset(block, action) + FIRST_EPOCH + which * epoch_size(block.size)


@kernel
def get_epoch_regression(block: ModelBlock, memory: Floats, action: int, which: int) -> Regression:
    return view_regression(block, memory, action, get_epoch_offset(block, action, which) + FIRST_NUMBER)


@kernel
def choose_epoch(block: ModelBlock, memory: Floats, action: int) -> int:
    """Return the epoch that bounds an action: the one before, if it has outcomes, whatever they are."""
    before = get_epoch_regression(block, memory, action, BEFORE)
    return BEFORE if before.tally[OBSERVATIONS] > 0.0 else YOUNG


@kernel
def begin_epoch(block: ModelBlock, action: int, which: int, number: float, settings: Floats, memory: Floats) -> None:
    """Begin an epoch without data."""
    at = get_epoch_offset(block, action, which)
    for i in range(epoch_size(block.size)):
        memory[at + i] = 0.0
    memory[at + NUMBER] = number
    regression = get_epoch_regression(block, memory, action, which)
    for i in range(block.size):
        regression.learned[i, i] = 1.0 / math.sqrt(settings[regression.settings])


@kernel
def start_drifting_ridge(layout: Ints, block: ModelBlock, settings: Floats, memory: Floats, work: Floats) -> None:
    """Begin the first epoch of every action."""
    for action in range(block.detail):
        begin_epoch(block, action, BEFORE, 0.0, settings, memory)
        begin_epoch(block, action, YOUNG, 1.0, settings, memory)


@kernel
def advance_epochs(block: ModelBlock, time: float, settings: Floats, memory: Floats) -> None:
    """Begin the epoch that a time is in, if it is new."""
    if memory[block.memory + NEWEST] == 0.0:
        memory[block.memory + NEWEST], memory[block.memory + ORIGIN] = 1.0, time
    length = settings[block.settings + NUMBERS * block.detail + LENGTH]
    newest = math.floor((time - memory[block.memory + ORIGIN]) / length) + 1.0
    if newest <= memory[block.memory + NEWEST]:
        return
    memory[block.memory + PREVIOUS], memory[block.memory + NEWEST] = memory[block.memory + NEWEST], newest
    for action in range(block.detail):
        young = get_epoch_offset(block, action, YOUNG)
        copy_values(memory, young, memory, get_epoch_offset(block, action, BEFORE), epoch_size(block.size))
        begin_epoch(block, action, YOUNG, memory[young + NUMBER] + 1.0, settings, memory)


@kernel
def learn_drifting_ridge(
    layout: Ints, block: ModelBlock, action: Floats, index: int, cached_index: int, step: float, cached_only: bool,
    observed: Floats, settings: Floats, memory: Floats, work: Floats,
) -> None:  # fmt: skip
    """Learn the outcome (1,) of an action in its context; `work` is (3n + 1,)."""
    time, number = action[int(settings[block.settings + NUMBERS * block.detail + TIME_COLUMN])], int(action[0])
    advance_epochs(block, time, settings, memory)
    elapsed, own = time - memory[block.memory + ORIGIN], get_action_offset(block, number)
    memory[own + PULLS] += 1.0
    memory[own + TOTAL] += observed[0]
    for which in range(2):
        at = get_epoch_offset(block, number, which)
        if memory[at + NUMBER] > 0.0:
            memory[at + TIMES] += elapsed
            memory[at + SQUARED_TIMES] += elapsed * elapsed
            regression = get_epoch_regression(block, memory, number, which)
            x = action[1 : 1 + block.size]
            learn_ridge(regression, x, ELSEWHERE, 1.0, False, observed, settings, memory, work)


@kernel
def compute_moved_radius(
    block: ModelBlock, action: int, which: int, time: float, settings: Floats, memory: Floats
) -> float:
    """Return the radius of an epoch's set at a time."""
    at, end = get_epoch_offset(block, action, which), block.settings + NUMBERS * block.detail
    regression = get_epoch_regression(block, memory, action, which)
    declared, count = get_ridge_assumptions(regression, settings), regression.tally[OBSERVATIONS]
    if not count > 0.0:
        return math.inf
    spent = math.log(memory[at + NUMBER] * (memory[at + NUMBER] + 1.0))
    elapsed, times = time - memory[block.memory + ORIGIN], memory[at + TIMES]
    ages = count * elapsed - times
    squares = max(count * elapsed * elapsed - 2.0 * elapsed * times + memory[at + SQUARED_TIMES], ages * ages / count)
    slope, budget = settings[end + SLOPE], settings[end + BUDGET]
    moved = math.sqrt(count) * budget + slope * math.sqrt(squares)  # at least √Σ (B + ρa)²
    confidence, ridge = declared.confidence[0] + spent, settings[regression.settings]
    still = radius(
        LOGDET, declared.noise[0], declared.bound[0], ridge, confidence, regression.tally[LOG_DET], block.size, 0.0
    )
    return still + moved


@kernel
def fill_drifting_ridge_bounds(
    layout: Ints, block: ModelBlock, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    work: Floats,
) -> None:  # fmt: skip
    """Write the bounds of every action in its context at its time, and of the safe one; `work` is (n,)."""
    end = block.settings + NUMBERS * block.detail
    for action in range(block.detail):
        which, time = choose_epoch(block, memory, action), features[action, int(settings[end + TIME_COLUMN])]
        regression = get_epoch_regression(block, memory, action, which)
        radius = compute_moved_radius(block, action, which, time, settings, memory)
        fill_action_bounds(block, action, regression, radius, 1.0, features, settings, bounds, work)
    apply_safe_declaration(layout, block.first, settings[end + 2], bounds)


@kernel
def check_drifting_ridge(layout: Ints, block: ModelBlock, settings: Floats, memory: Floats, bounds: Floats) -> int:
    """Return the code of a contradicted cost of the safe action, or 0."""
    if settings[ALARM] == math.inf:
        return 0
    return check_safe_declaration(layout, block.first, settings[block.settings + NUMBERS * block.detail + 2], bounds)


@kernel
def sample_drifting_ridge(
    layout: Ints, block: ModelBlock, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    seed: int, run: int, round_: int, work: Floats,
) -> None:  # fmt: skip
    """Write a posterior draw of every action's mean in its context, and of the safe action's, from its epoch."""
    count, drawn = block.detail, bounds[block.first, SAMPLED]
    for action in range(count):
        regression = get_epoch_regression(block, memory, action, choose_epoch(block, memory, action))
        drawn[action] = sample_action(block, action, regression, features, settings, drawn[action], seed, run, round_)
    drawn[count] = drawn[layout[SAFE_INDEX]]
    clip_to_bounds(block, bounds)


def drifting_ridge_size(layout: Ints, index: int, candidates: int, capacity: int) -> int:
    """Return the length of a block's memory."""
    block = read_block_fields(layout, index)
    return int(pad_to_vector(HEADER_SIZE + block.detail * (FIRST_EPOCH + 2 * epoch_size(block.size))))


@kernel
def widen_drifting_ridge(layout: Ints, old: ModelBlock, new: ModelBlock, memory: Floats, changed: Floats) -> None:
    """Copy everything; the other memory may have more actions, which begin with their first epoch."""
    size = HEADER_SIZE + old.detail * (FIRST_EPOCH + 2 * epoch_size(old.size))
    copy_values(memory, old.memory, changed, new.memory, size)


CHOOSE, EPOCH, OFFSET = as_python(choose_epoch), as_python(get_epoch_regression), as_python(get_action_offset)
EPOCH_OFFSET, BEGIN = as_python(get_epoch_offset), as_python(begin_epoch)


class DriftingRidgeDiagnostics(PerActionRidgeDiagnostics):
    """Diagnostics of regressions that begin anew."""

    def get_evidence(self, block: Any, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        pulls, total = memory[OFFSET(block, int(layout[SAFE_INDEX])) :][:FIRST_EPOCH]
        return Evidence(float(pulls), 0.0, 0.0, float(pulls), float(total / max(pulls, 1.0)))

    def find_contradictions(self, block: Any, layout: Ints, settings: Floats, memory: Floats) -> Iterator[int]:
        return iter(())

    def get_sums(self, block: Any, settings: Floats, memory: Floats, key: str) -> Sums | None:
        return None

    def count(self, block: Any, settings: Floats, memory: Floats) -> float | None:
        return None

    def forget(
        self, block: Any, settings: Floats, memory: Floats, index: int, since: float, changed: float = 0.0
    ) -> None:
        length = settings[block.settings + NUMBERS * block.detail + LENGTH]
        newest, previous, origin = memory[block.memory :][:HEADER_SIZE].tolist()
        if origin + (previous - 1.0) * length < since:
            BEGIN(block, index, BEFORE, 0.0, settings, memory)
        if origin + (newest - 1.0) * length < since:
            number = memory[EPOCH_OFFSET(block, index, YOUNG) + NUMBER]
            BEGIN(block, index, YOUNG, number + 1.0, settings, memory)  # a share of δ of its own

    def fill_estimates(self, block: Any, features: Floats, settings: Floats, memory: Floats, fits: Floats) -> None:
        for action in range(int(block.detail)):
            regression = EPOCH(block, memory, action, CHOOSE(block, memory, action))
            if regression.tally[OBSERVATIONS] > 0.0:
                fits[action] = float(regression.learned[block.size] @ features[action, 1 : 1 + block.size])

    def count_learned(self, block: Any, features: Floats, memory: Floats, index: int) -> float | None:
        return float(memory[OFFSET(block, index) + PULLS])

    def fill_totals(self, block: Any, settings: Floats, memory: Floats, pulls: Floats, totals: Floats) -> None:
        for action in range(int(block.detail)):
            pulls[action], totals[action] = memory[OFFSET(block, action) :][:FIRST_EPOCH]


DRIFTING_RIDGE = PER_ACTION_RIDGE._replace(
    name="stagewise.models.drifting_ridge:DRIFTING_RIDGE", size=drifting_ridge_size, start=start_drifting_ridge,
    bounds=fill_drifting_ridge_bounds, check=check_drifting_ridge, learn=learn_drifting_ridge,
    widen=widen_drifting_ridge, sample=sample_drifting_ridge, learn_with_ends=None,
    diagnostics=DriftingRidgeDiagnostics(),
)  # fmt: skip
