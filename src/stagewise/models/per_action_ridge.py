"""A signal that is linear in the context, with its own regression for every action.

    memory:   for each action the memory of `models.ridge` for one signal without cached candidates: learned (n + 1, n)
              and the tally, which ends in Σ y
    settings: for each action the settings of `models.ridge`: λ, L, unit, R, S, log 1/δ, known; then the lowest and the
              highest possible mean, and the declared bound of the safe action

An action in its context is a row: the action's number, the n features of the context, then columns of other models. The
radius depends on these n features, not on those of all actions together, and a new action is a new regression: nothing
else changes (docs/theory/context.md).
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from stagewise.engine.compile import Floats, Ints, as_python, kernel
from stagewise.engine.layout import (
    ELSEWHERE,
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
from stagewise.engine.workspace import (
    ALARM,
    CENTRE,
    CROSS,
    ESTIMATE,
    HALF,
    SAFE_COST,
    SAMPLED,
    clip_to_bounds,
    encode_contradiction,
)
from stagewise.models.diagnostics import (
    LARGEST,
    Evidence,
    Marks,
    MeanChange,
    ModelDiagnostics,
    Sums,
    build_evidence,
    check_regression,
    compute_regression_sums,
    find_regression_changes,
    split_at_marks,
)
from stagewise.models.regression import (
    OBSERVATIONS,
    SQUARES,
    Regression,
    compute_radius,
    fill_image,
    get_ridge_assumptions,
    get_ridge_statistics,
    learn_ridge,
    start_ridge,
    tally_size,
)

NUMBERS = 7  # settings of one regression


@kernel
def regression_size(size: int) -> int:
    """Return the length of the regression of one signal for one action."""
    return (size + 1) * size + tally_size(1)


@kernel
def view_regression(block: ModelBlock, memory: Floats, action: int, at: int) -> Regression:
    """Return the regression of one action whose memory begins at an offset."""
    n = block.size
    tally, end = at + (n + 1) * n, at + regression_size(n)
    return Regression(
        block.first, 1, n, block.radius, 0, 0, 0, 0, block.settings + NUMBERS * action, at, 0, 0, memory[tally:end],
        memory[at:tally].reshape(n + 1, n), memory[at:at].reshape(n + 2, 0), memory[at:at],
    )  # fmt: skip


@kernel
def get_action_regression(block: ModelBlock, memory: Floats, action: int) -> Regression:
    return view_regression(block, memory, action, block.memory + action * regression_size(block.size))


@kernel
def start_per_action_ridge(layout: Ints, block: ModelBlock, settings: Floats, memory: Floats, work: Floats) -> None:
    """Write V = λI for every action."""
    for action in range(block.detail):
        start_ridge(layout, get_action_regression(block, memory, action), settings, memory, work)


@kernel
def learn_per_action_ridge(
    layout: Ints, block: ModelBlock, action: Floats, index: int, cached_index: int, step: float, cached_only: bool,
    observed: Floats, settings: Floats, memory: Floats, work: Floats,
) -> None:  # fmt: skip
    """Learn the outcome (1,) of an action in its context; `work` is (3n + 1,)."""
    regression, context = get_action_regression(block, memory, int(action[0])), action[1 : 1 + block.size]
    learn_ridge(regression, context, ELSEWHERE, 1.0, False, observed, settings, memory, work)
    regression.tally[SQUARES + 1] += observed[0]


@kernel
def learn_ridge_rows(
    layout: Ints, index: int, skipped: int, rows: Floats, outcomes: Floats, settings: Floats, memory: Floats,
    ends: Floats, work: Floats,
) -> None:  # fmt: skip
    """Learn rows, and write the upper end, above the lowest mean, that each had before; 1: `skipped`.

    Outcomes that are NaN are left out.
    """
    block = get_model_block(layout, memory, index)
    n, lowest, image = block.size, settings[block.settings + NUMBERS * block.detail], work[: block.size]
    for i in range(outcomes.size):
        if outcomes[i] == outcomes[i]:
            x, fit, form = rows[i, 1 : 1 + n], 0.0, 0.0
            regression = get_action_regression(block, memory, int(rows[i, 0]))
            ends[i] = 1.0
            if int(rows[i, 0]) != skipped:
                fill_image(regression.learned, x, image)
                for k in range(n):
                    form += image[k] * image[k]
                    fit += regression.learned[n, k] * x[k]
                high = fit + compute_radius(regression, settings, 0.0, 0) * math.sqrt(form)
                ends[i] = min(max(high - lowest, 0.0), 1.0)
            learn_ridge(regression, x, ELSEWHERE, 1.0, False, outcomes[i : i + 1], settings, memory, work)
            regression.tally[SQUARES + 1] += outcomes[i]


@kernel
def fill_action_bounds(
    block: ModelBlock, action: int, regression: Regression, radius: float, stretch: float, features: Floats,
    settings: Floats, bounds: Floats, work: Floats,
) -> None:  # fmt: skip
    """Write the bounds of an action in its context, `stretch` times as wide as its regression says; `work` is (n,).

    The width ‖Tu‖ is written to CROSS for posterior draws.
    """
    n, signal, at = block.size, block.first, block.settings + NUMBERS * block.detail
    lowest, highest, image, form, fit = settings[at], settings[at + 1], work[: block.size], 0.0, 0.0
    context = features[action, 1 : 1 + n]
    fill_image(regression.learned, context, image)
    for i in range(n):
        form += image[i] * image[i]
        fit += regression.learned[n, i] * context[i]
    width = math.sqrt(form) * stretch
    half_width = radius * width
    low = min(max(fit - half_width, lowest), highest)
    high = max(min(fit + half_width, highest), lowest)
    centre = 0.5 * (low + high)
    bounds[signal, CENTRE, action], bounds[signal, HALF, action] = centre, 0.5 * (high - low)
    bounds[signal, CROSS, action] = width
    is_known = regression.tally[OBSERVATIONS] > 0.0
    bounds[signal, ESTIMATE, action] = min(max(fit, low), high) if is_known else centre


@kernel
def fill_per_action_bounds(
    layout: Ints, block: ModelBlock, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    work: Floats,
) -> None:  # fmt: skip
    """Write the bounds of every action in its context, and of the safe one; `work` is (n,)."""
    for action in range(block.detail):
        regression = get_action_regression(block, memory, action)
        radius = compute_radius(regression, settings, 0.0, 0)
        fill_action_bounds(block, action, regression, radius, 1.0, features, settings, bounds, work)
    apply_safe_declaration(layout, block.first, settings[block.settings + NUMBERS * block.detail + 2], bounds)


@kernel
def apply_safe_declaration(layout: Ints, signal: int, declared: float, bounds: Floats) -> None:
    """Write the bounds of this round's safe action: those of the listed action, clipped at what was declared of it.

    The declaration is an upper bound on a cost, a lower bound on the reward; a contradicted one changes nothing.
    """
    centre, half, fits = bounds[signal, CENTRE], bounds[signal, HALF], bounds[signal, ESTIMATE]
    safe_index = layout[SAFE_INDEX]
    last = centre.size - 1
    low, high = centre[safe_index] - half[safe_index], centre[safe_index] + half[safe_index]
    fits[last] = fits[safe_index]
    if signal == 0:
        low = max(low, min(declared, high))
    else:
        if low > declared:
            centre[last], half[last] = centre[safe_index], half[safe_index]
            return
        high = min(high, declared)
    fits[last] = min(max(fits[last], low), high)
    centre[last], half[last] = 0.5 * (low + high), 0.5 * (high - low)
    if half[last] > 0.0 and centre[last] + half[last] > high:  # rounding must not exceed the declared bound
        centre[last] = high - half[last]


@kernel
def check_safe_declaration(layout: Ints, signal: int, declared: float, bounds: Floats) -> int:
    """Return the code of a safe action's cost whose lower bound is above the declared one, or 0."""
    safe_index = layout[SAFE_INDEX]
    if signal > 0 and bounds[signal, CENTRE, safe_index] - bounds[signal, HALF, safe_index] > declared:
        return encode_contradiction(SAFE_COST, signal - 1)
    return 0


@kernel
def sample_action(
    block: ModelBlock, action: int, regression: Regression, features: Floats, settings: Floats, width: float, seed: int,
    run: int, round_: int,
) -> float:  # fmt: skip
    """Return a posterior draw of an action's mean in its context: N(<u, θ̂>, ν² s² ‖Tu‖²).

    s² = (R² + Σ e²/(1 + w²))/(1 + n) estimates the noise: rare outcomes have less than R².
    """
    n, fit, tally = block.size, 0.0, regression.tally
    for i in range(n):
        fit += regression.learned[n, i] * features[action, 1 + i]
    noise = get_ridge_assumptions(regression, settings).noise[0]
    noise_estimate = math.sqrt((noise * noise + tally[SQUARES]) / (1.0 + tally[OBSERVATIONS]))
    deviate = get_posterior_scale(settings) * normal(seed, run, round_, POSTERIOR + int(block.first), action)
    return fit + deviate * min(noise_estimate, noise) * width


@kernel
def sample_per_action_ridge(
    layout: Ints, block: ModelBlock, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    seed: int, run: int, round_: int, work: Floats,
) -> None:  # fmt: skip
    """Write a posterior draw of every action's mean in its context, and of the safe action's."""
    count, drawn = block.detail, bounds[block.first, SAMPLED]
    for action in range(count):
        regression = get_action_regression(block, memory, action)
        drawn[action] = sample_action(block, action, regression, features, settings, drawn[action], seed, run, round_)
    drawn[count] = drawn[layout[SAFE_INDEX]]
    clip_to_bounds(block, bounds)


@kernel
def fill_per_action_estimates(block: ModelBlock, rows: Floats, settings: Floats, memory: Floats, fits: Floats) -> None:
    """Write the estimate of every action with data, in its context."""
    for action in range(block.detail):
        regression, fit = get_action_regression(block, memory, action), 0.0
        for i in range(block.size):
            fit += regression.learned[block.size, i] * rows[action, 1 + i]
        if regression.tally[OBSERVATIONS] > 0.0:
            fits[action] = fit


def per_action_size(layout: Ints, index: int, candidates: int, capacity: int) -> int:
    """Return the length of a block's memory."""
    block = read_block_fields(layout, index)
    return int(pad_to_vector(block.detail * regression_size(block.size)))


@kernel
def check_per_action_ridge(layout: Ints, block: ModelBlock, settings: Floats, memory: Floats, bounds: Floats) -> int:
    """Return the code of the first contradiction of an action's regression, or of the safe action's cost; 0: none."""
    if settings[ALARM] == math.inf:
        return 0
    for action in range(block.detail):
        found = check_regression(get_action_regression(block, memory, action), settings, memory, 0.0)
        if found != 0:
            return found
    declared = settings[block.settings + NUMBERS * block.detail + 2]
    return check_safe_declaration(layout, block.first, declared, bounds)


@kernel
def widen_per_action_ridge(layout: Ints, old: ModelBlock, new: ModelBlock, memory: Floats, changed: Floats) -> None:
    """Copy every regression; the other memory may have more actions."""
    copy_values(memory, old.memory, changed, new.memory, old.detail * regression_size(old.size))


PIECE, FITS = as_python(get_action_regression), as_python(fill_per_action_estimates)
SUMMED, CHECK_REGRESSION = as_python(get_ridge_statistics), as_python(check_regression)


class PerActionRidgeDiagnostics(ModelDiagnostics):
    """Diagnostics of a model with a regression for every action."""

    has_safe_cost_per_user = True

    def get_evidence(self, block: Any, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        regression = PIECE(block, memory, int(layout[SAFE_INDEX]))
        observed = build_evidence(regression, settings, 0)
        mean = float(SUMMED(regression).safe_residuals[0]) / max(observed.outcomes, 1.0)
        return observed._replace(safe_count=observed.outcomes, safe_mean=mean)

    def find_contradictions(self, block: Any, layout: Ints, settings: Floats, memory: Floats) -> Iterator[int]:
        for action in range(int(block.detail) if block.first > 0 else 0):
            code = int(CHECK_REGRESSION(PIECE(block, memory, action), settings, memory, 0.0))
            if code:
                yield -code

    def get_sums(self, block: Any, settings: Floats, memory: Floats, key: str) -> Sums | None:
        if block.size > LARGEST:
            return None
        result: Sums = {}
        for action in range(int(block.detail)):
            result |= compute_regression_sums(PIECE(block, memory, action), settings, f"{key}.{action}")
        return result

    def count(self, block: Any, settings: Floats, memory: Floats) -> float | None:
        counts = (float(SUMMED(PIECE(block, memory, action)).observations) for action in range(int(block.detail)))
        return None if block.size > LARGEST else sum(counts)

    def moved(
        self, block: Any, settings: Floats, memory: Floats, marks: Marks, key: str, alarms: Sequence[float]
    ) -> Iterator[MeanChange]:
        regressions = [PIECE(block, memory, action) for action in range(int(block.detail))]
        for early, late, alarm in split_at_marks(marks, alarms):
            for action, regression in enumerate(regressions):
                shared = alarm + math.log(len(regressions))
                for one in find_regression_changes(regression, settings, early, late, f"{key}.{action}", shared):
                    yield one._replace(action=action)

    def fill_estimates(self, block: Any, features: Floats, settings: Floats, memory: Floats, fits: Floats) -> None:
        FITS(block, features, settings, memory, fits)

    def count_learned(self, block: Any, features: Floats, memory: Floats, index: int) -> float | None:
        return float(SUMMED(PIECE(block, memory, index)).observations)

    def fill_totals(self, block: Any, settings: Floats, memory: Floats, pulls: Floats, totals: Floats) -> None:
        for action in range(int(block.detail)):
            observed = SUMMED(PIECE(block, memory, action))
            pulls[action], totals[action] = observed.observations, observed.safe_residuals[0]


PER_ACTION_RIDGE = Model(
    "stagewise.models.per_action_ridge:PER_ACTION_RIDGE", get_model_block, per_action_size, start_per_action_ridge,
    fill_per_action_bounds, check_per_action_ridge, learn_per_action_ridge, None, widen_per_action_ridge,
    sample_per_action_ridge, diagnostics=PerActionRidgeDiagnostics(), estimates=1,
    learn_with_ends=learn_ridge_rows,
)  # fmt: skip
