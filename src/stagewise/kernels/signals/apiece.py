"""A signal that is linear in the context, with a regression of its own for every action.

    memory:   for each action what `signals.ridge` remembers of one signal and of no candidates: learned (n + 1, n)
              and the tally, which ends in Σ y
    settings: for each action what `signals.ridge` reads: λ, L, unit, R, S, log 1/δ, known; then the lowest and the
              highest mean there is, and what was declared of the safe action's

An action in its context is a row: the action's number, the n features of the context, then what others read. The radius
has these n in it, not those of all actions together, and a new action is a new regression: nothing else changes
(docs/theory/context.md).
"""

import math

from stagewise.kernels.bounds import CENTRE, CROSS, FIT, HALF, SAMPLED
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.draw import POSTERIOR, normal
from stagewise.kernels.layout import HOME, RIDGE, Part, piece_size, regressions_of
from stagewise.kernels.promise import BASELINE, disputed
from stagewise.kernels.signals.look import radius_of
from stagewise.kernels.signals.posterior import hold
from stagewise.kernels.signals.ridge import (
    ELSEWHERE,
    SQUARES,
    TAKEN,
    declared_of_ridge,
    fill_image,
    learn_ridge,
    start_ridge,
)
from stagewise.kernels.signals.watch import mistold_regression

NUMBERS = 7  # of one regression in the settings


@kernel
def piece_of(part: Part, memory: Floats, action: int) -> Part:
    """Return the regression of one action."""
    n = part.size
    at = part.memory + action * piece_size(n)
    tally, end = at + (n + 1) * n, at + piece_size(n)
    return Part(
        RIDGE, part.first, 1, n, part.radius, 0, 0, 0, 0, part.settings + NUMBERS * action, at, 0, 0, memory[tally:end],
        memory[at:tally].reshape(n + 1, n), memory[at:at].reshape(n + 2, 0), memory[at:at],
    )  # fmt: skip


@kernel
def start_apiece(part: Part, settings: Floats, memory: Floats) -> None:
    """Write V = λI for every action."""
    for action in range(regressions_of(part)):
        start_ridge(piece_of(part, memory, action), settings, memory)


@kernel
def learn_apiece(part: Part, row: Floats, seen: Floats, settings: Floats, memory: Floats, work: Floats) -> None:
    """Take in what was seen (1,) of an action in its context; `work` is (3n + 1,)."""
    piece, context = piece_of(part, memory, int(row[0])), row[1 : 1 + part.size]
    learn_ridge(piece, context, ELSEWHERE, 1.0, False, seen, settings, memory, work)
    piece.tally[SQUARES + 1] += seen[0]


@kernel
def look_apiece(
    layout: Ints, part: Part, rows: Floats, settings: Floats, memory: Floats, bounds: Floats, work: Floats
) -> int:
    """Write the bounds of every action in its context, and of the safe one; `work` is (n,).

    The width ‖Tu‖ of an action stands in CROSS for the draw. Returns what was declared and is contradicted, or 0.
    """
    n, signal, at = part.size, part.first, part.settings + NUMBERS * regressions_of(part)
    lowest, highest, found = settings[at], settings[at + 1], 0
    centre, half, widths, image = bounds[signal, CENTRE], bounds[signal, HALF], bounds[signal, CROSS], work[:n]
    for action in range(regressions_of(part)):
        piece, context, form, fit = piece_of(part, memory, action), rows[action, 1 : 1 + n], 0.0, 0.0
        fill_image(piece.learned, context, image)
        for i in range(n):
            form += image[i] * image[i]
            fit += piece.learned[n, i] * context[i]
        width = math.sqrt(form)
        half_width = radius_of(piece, settings, 0.0, 0) * width
        low = min(max(fit - half_width, lowest), highest)
        high = max(min(fit + half_width, highest), lowest)
        centre[action], half[action], widths[action] = 0.5 * (low + high), 0.5 * (high - low), width
        bounds[signal, FIT, action] = min(max(fit, low), high) if piece.tally[TAKEN] > 0.0 else centre[action]
        mistold = mistold_regression(piece, settings, memory, 0.0)
        found = mistold if found == 0 else found
    mistold = declare_home(layout, signal, settings[at + 2], bounds)
    return mistold if found == 0 else found


@kernel
def declare_home(layout: Ints, signal: int, declared: float, bounds: Floats) -> int:
    """Write the bounds of this round's safe action: its own as one of the actions, and what was declared of it.

    Of a cost that is the most it may be, of the reward the least. Returns that a cost is declared too low, or 0.
    """
    centre, half, fits, home = bounds[signal, CENTRE], bounds[signal, HALF], bounds[signal, FIT], layout[HOME]
    last = centre.size - 1
    low, high = centre[home] - half[home], centre[home] + half[home]
    fits[last] = fits[home]
    if signal == 0:
        low = max(low, min(declared, high))
    else:
        if low > declared:
            centre[last], half[last] = centre[home], half[home]
            return disputed(BASELINE, signal - 1)
        high = min(high, declared)
    fits[last] = min(max(fits[last], low), high)
    centre[last], half[last] = 0.5 * (low + high), 0.5 * (high - low)
    if half[last] > 0.0 and centre[last] + half[last] > high:  # rounding may not add to what was declared
        centre[last] = high - half[last]
    return 0


@kernel
def draw_apiece(
    layout: Ints, part: Part, rows: Floats, spread: float, settings: Floats, memory: Floats, bounds: Floats,
    seed: int, run: int, round_: int,
) -> None:  # fmt: skip
    """Write a draw of every action's mean in its context, and of the safe action's: N(<u, θ̂>, ν² s² ‖Tu‖²).

    s² = (R² + Σ e²/(1 + w²))/(1 + n) is what the noise seems to be: outcomes that are rare have less than R².
    """
    n, count, drawn = part.size, regressions_of(part), bounds[part.first, SAMPLED]
    for action in range(count):
        piece, fit = piece_of(part, memory, action), 0.0
        for i in range(n):
            fit += piece.learned[n, i] * rows[action, 1 + i]
        noise = declared_of_ridge(piece, settings).noise[0]
        seems = math.sqrt((noise * noise + piece.tally[SQUARES]) / (1.0 + piece.tally[TAKEN]))
        deviate = spread * normal(seed, run, round_, POSTERIOR + int(part.first), action)
        drawn[action] = fit + deviate * min(seems, noise) * drawn[action]
    drawn[count] = drawn[layout[HOME]]
    hold(part, bounds)


@kernel
def fill_fits(part: Part, rows: Floats, settings: Floats, memory: Floats, fits: Floats) -> None:
    """Write the estimate of every action of which something was seen, in its context."""
    for action in range(regressions_of(part)):
        piece, fit = piece_of(part, memory, action), 0.0
        for i in range(part.size):
            fit += piece.learned[part.size, i] * rows[action, 1 + i]
        if piece.tally[TAKEN] > 0.0:
            fits[action] = fit
