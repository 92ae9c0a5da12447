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

from stagewise.engine.compile import Floats, Ints, kernel
from stagewise.engine.layout import RIDGE, SAFE_INDEX, ModelBlock, count_regressions, regression_size
from stagewise.engine.limits import SAFE_COST, encode_contradiction
from stagewise.engine.random import POSTERIOR, normal
from stagewise.engine.workspace import CENTRE, CROSS, ESTIMATE, HALF, SAMPLED, clip_to_bounds
from stagewise.models.regression import (
    ELSEWHERE,
    OBSERVATIONS,
    SQUARES,
    compute_radius,
    fill_image,
    get_ridge_assumptions,
    learn_ridge,
    start_ridge,
)
from stagewise.models.regression_tests import check_regression

NUMBERS = 7  # settings of one regression


@kernel
def get_action_regression(block: ModelBlock, memory: Floats, action: int) -> ModelBlock:
    """Return the regression of one action."""
    n = block.size
    at = block.memory + action * regression_size(n)
    tally, end = at + (n + 1) * n, at + regression_size(n)
    return ModelBlock(
        RIDGE, block.first, 1, n, block.radius, 0, 0, 0, 0, block.settings + NUMBERS * action, at, 0, 0,
        memory[tally:end], memory[at:tally].reshape(n + 1, n), memory[at:at].reshape(n + 2, 0), memory[at:at],
    )  # fmt: skip


@kernel
def start_per_action_ridge(block: ModelBlock, settings: Floats, memory: Floats) -> None:
    """Write V = λI for every action."""
    for action in range(count_regressions(block)):
        start_ridge(get_action_regression(block, memory, action), settings, memory)


@kernel
def learn_per_action_ridge(
    block: ModelBlock, row: Floats, observed: Floats, settings: Floats, memory: Floats, work: Floats
) -> None:
    """Learn the outcome (1,) of an action in its context; `work` is (3n + 1,)."""
    regression, context = get_action_regression(block, memory, int(row[0])), row[1 : 1 + block.size]
    learn_ridge(regression, context, ELSEWHERE, 1.0, False, observed, settings, memory, work)
    regression.tally[SQUARES + 1] += observed[0]


@kernel
def compute_per_action_bounds(
    layout: Ints, block: ModelBlock, rows: Floats, settings: Floats, memory: Floats, bounds: Floats, work: Floats
) -> int:
    """Write the bounds of every action in its context, and of the safe one; `work` is (n,).

    The width ‖Tu‖ of an action is written to CROSS for posterior draws. Returns the code of a contradiction, or 0.
    """
    n, signal, at = block.size, block.first, block.settings + NUMBERS * count_regressions(block)
    lowest, highest, found = settings[at], settings[at + 1], 0
    centre, half, widths, image = bounds[signal, CENTRE], bounds[signal, HALF], bounds[signal, CROSS], work[:n]
    for action in range(count_regressions(block)):
        regression, context, form, fit = get_action_regression(block, memory, action), rows[action, 1 : 1 + n], 0.0, 0.0
        fill_image(regression.learned, context, image)
        for i in range(n):
            form += image[i] * image[i]
            fit += regression.learned[n, i] * context[i]
        width = math.sqrt(form)
        half_width = compute_radius(regression, settings, 0.0, 0) * width
        low = min(max(fit - half_width, lowest), highest)
        high = max(min(fit + half_width, highest), lowest)
        centre[action], half[action], widths[action] = 0.5 * (low + high), 0.5 * (high - low), width
        bounds[signal, ESTIMATE, action] = (
            min(max(fit, low), high) if regression.tally[OBSERVATIONS] > 0.0 else centre[action]
        )
        contradiction = check_regression(regression, settings, memory, 0.0)
        found = contradiction if found == 0 else found
    contradiction = apply_safe_declaration(layout, signal, settings[at + 2], bounds)
    return contradiction if found == 0 else found


@kernel
def apply_safe_declaration(layout: Ints, signal: int, declared: float, bounds: Floats) -> int:
    """Write the bounds of this round's safe action: those of the listed action, clipped at what was declared of it.

    The declaration is an upper bound on a cost, a lower bound on the reward. Returns the code of a contradicted cost,
    or 0.
    """
    centre, half, fits, safe_index = (
        bounds[signal, CENTRE],
        bounds[signal, HALF],
        bounds[signal, ESTIMATE],
        layout[SAFE_INDEX],
    )
    last = centre.size - 1
    low, high = centre[safe_index] - half[safe_index], centre[safe_index] + half[safe_index]
    fits[last] = fits[safe_index]
    if signal == 0:
        low = max(low, min(declared, high))
    else:
        if low > declared:
            centre[last], half[last] = centre[safe_index], half[safe_index]
            return encode_contradiction(SAFE_COST, signal - 1)
        high = min(high, declared)
    fits[last] = min(max(fits[last], low), high)
    centre[last], half[last] = 0.5 * (low + high), 0.5 * (high - low)
    if half[last] > 0.0 and centre[last] + half[last] > high:  # rounding must not exceed the declared bound
        centre[last] = high - half[last]
    return 0


@kernel
def draw_per_action_ridge(
    layout: Ints, block: ModelBlock, rows: Floats, posterior_scale: float, settings: Floats, memory: Floats,
    bounds: Floats, seed: int, run: int, round_: int,
) -> None:  # fmt: skip
    """Write a posterior draw of every action's mean in its context, and of the safe action's: N(<u, θ̂>, ν² s² ‖Tu‖²).

    s² = (R² + Σ e²/(1 + w²))/(1 + n) estimates the noise: rare outcomes have less than R².
    """
    n, count, drawn = block.size, count_regressions(block), bounds[block.first, SAMPLED]
    for action in range(count):
        regression, fit = get_action_regression(block, memory, action), 0.0
        for i in range(n):
            fit += regression.learned[n, i] * rows[action, 1 + i]
        noise = get_ridge_assumptions(regression, settings).noise[0]
        noise_estimate = math.sqrt((noise * noise + regression.tally[SQUARES]) / (1.0 + regression.tally[OBSERVATIONS]))
        deviate = posterior_scale * normal(seed, run, round_, POSTERIOR + int(block.first), action)
        drawn[action] = fit + deviate * min(noise_estimate, noise) * drawn[action]
    drawn[count] = drawn[layout[SAFE_INDEX]]
    clip_to_bounds(block, bounds)


@kernel
def fill_per_action_estimates(block: ModelBlock, rows: Floats, settings: Floats, memory: Floats, fits: Floats) -> None:
    """Write the estimate of every action with data, in its context."""
    for action in range(count_regressions(block)):
        regression, fit = get_action_regression(block, memory, action), 0.0
        for i in range(block.size):
            fit += regression.learned[block.size, i] * rows[action, 1 + i]
        if regression.tally[OBSERVATIONS] > 0.0:
            fits[action] = fit
