"""Ridge regression of several signals on the same features, one observation at a time.

A part's memory is two tables and its sums:

    rows    (n + k + 1, F) of the candidates that come back: Tz, their estimates, zᵀV⁻¹z = ‖Tz‖²; the safe action last
    learned (n + k, n)     T, lower triangular with V⁻¹ = TᵀT, V = λI + Σ zzᵀ; then the fits V⁻¹ Σ y z, a row a signal
    tally   (3 + 2k,)      log det V/λⁿ, the observations, those at x₀ | Σ e²/(1 + z'V⁻¹z) | Σ (y − known) at x₀

What is followed moves with every observation, by the same recursion that moves T: a look at M followed candidates takes
O(M) instead of O(Mn²).

Anchored: the values at x₀ are known, and only the n = d−1 directions orthogonal to it are learned (n = d at x₀ = 0). A
Householder reflection H turns x₀ onto the last axis: z is Hx without its last entry, which is ±<x, e₀>. Free: nothing
is known at x₀, and z = x.

    settings: λ, L, unit | reflector (d,), where reflected | R | S | log 1/δ | known at x₀, all (k,)
"""

import math
from typing import NamedTuple

from stagewise.kernels.compile import Floats, distinct, kernel
from stagewise.kernels.layout import Part

LOG_DET, TAKEN, SAFE_TAKEN, SQUARES = 0, 1, 2, 3  # in the tally
AT_SAFE, ELSEWHERE = -1, -2  # in the place of the followed candidate on whose ray an observed action lies


class DeclaredOfRidge(NamedTuple):
    """What was declared of k signals."""

    noise: Floats  # R
    bound: Floats  # S, of the part that is learned
    confidence: Floats  # log 1/δ
    known: Floats  # at x₀; 0 where free


class Frame(NamedTuple):
    """How actions become coordinates, and what they are held against."""

    ridge: float  # λ
    action_bound: float  # L
    unit: float  # what turns the last entry of Hx into <x, x₀>/‖x₀‖²
    reflector: Floats  # (d,), where reflected


class Summed(NamedTuple):
    """What a regression of k signals has learned, as views of the memory."""

    root: Floats  # (n, n) T, lower triangular: V⁻¹ = TᵀT
    fits: Floats  # (k, n) the estimates
    log_det: float  # log det V/λⁿ
    taken: float  # observations
    at_safe: float  # of them, at the safe action
    squares: Floats  # (k,) of the residuals
    strays: Floats  # (k,) summed outcomes at the safe action, less what is known there


@kernel
def summed(part: Part) -> Summed:
    """Return what a regression has learned."""
    n, k, tally = part.size, part.signals, part.tally
    return Summed(
        part.learned[:n], part.learned[n:], tally[LOG_DET], tally[TAKEN], tally[SAFE_TAKEN],
        tally[SQUARES : SQUARES + k], tally[SQUARES + k : SQUARES + 2 * k],
    )  # fmt: skip


@kernel
def declared_of_ridge(part: Part, settings: Floats) -> DeclaredOfRidge:
    """Return what was declared of a part's signals, as views of the settings."""
    at, k = part.settings + 3 + part.reflected * (part.size + 1), part.signals
    return DeclaredOfRidge(
        settings[at : at + k], settings[at + k : at + 2 * k], settings[at + 2 * k : at + 3 * k],
        settings[at + 3 * k : at + 4 * k],
    )  # fmt: skip


@kernel
def frame_of(part: Part, settings: Floats) -> Frame:
    """Return how a part makes coordinates of actions (see `place`)."""
    at = part.settings
    end = at + 3 + part.reflected * (part.size + 1)
    return Frame(settings[at], settings[at + 1], settings[at + 2], settings[at + 3 : end])


@kernel
def place(part: Part, settings: Floats, features: Floats, coordinates: Floats) -> float:
    """Write z for one action x, and return the share <x, x₀>/‖x₀‖² of what is known that it carries."""
    n = part.size
    if part.reflected == 0:
        for i in range(n):
            coordinates[i] = features[i]
        return 0.0
    reflector, along = settings[part.settings + 3 : part.settings + 4 + n], 0.0
    for i in range(n + 1):
        along += reflector[i] * features[i]
    for i in range(n):
        coordinates[i] = features[i] - 2.0 * along * reflector[i]
    return (features[n] - 2.0 * along * reflector[n]) * settings[part.settings + 2]


@kernel
def start_ridge(part: Part, settings: Floats, memory: Floats) -> None:
    """Write V = λI into an empty memory."""
    for i in range(part.size):
        part.learned[i, i] = 1.0 / math.sqrt(settings[part.settings])


@kernel
def fill_image(learned: Floats, coordinates: Floats, image: Floats) -> None:
    """Write f = Tz."""
    for i in range(coordinates.size):
        row, total = learned[i], 0.0
        for j in range(i + 1):
            total += row[j] * coordinates[j]
        image[i] = total


@kernel
def add_multiple(factor: float, vector: Floats, sum_: Floats) -> None:
    """Add a multiple of a vector to a sum."""
    for i in range(sum_.size):
        sum_[i] += vector[i] * factor


@kernel
@distinct
def turn(row: Floats, length: float, keep: float, give: float, pulls: Floats, forms: Floats) -> None:
    """Move one row of the columns Tx of what is followed."""
    for j in range(pulls.size):
        old = row[j]
        new = old * keep - pulls[j] * give
        row[j] = new
        pulls[j] += length * old
        forms[j] += new * new


@kernel
@distinct
def turn_own(row: Floats, count: int, length: float, keep: float, give: float, gain: Floats) -> None:
    """Move so many numbers of a row of T itself."""
    for j in range(count):
        old = row[j]
        row[j] = old * keep - gain[j] * give
        gain[j] += length * old


@kernel
@distinct
def turn_two(
    row: Floats, length: float, keep: float, give: float, next_row: Floats, next_length: float, next_keep: float,
    next_give: float, pulls: Floats, forms: Floats,
) -> None:  # fmt: skip
    """Do the same with two rows, one after the other, so that sums are loaded and stored once for both."""
    for j in range(pulls.size):
        old, next_old, pull = row[j], next_row[j], pulls[j]
        new = old * keep - pull * give
        pull += length * old
        next_new = next_old * next_keep - pull * next_give
        row[j], next_row[j] = new, next_new
        pulls[j] = pull + next_length * next_old
        forms[j] = forms[j] + new * new + next_new * next_new


@kernel
def move(learned: Floats, rows: Floats, image: Floats, lean: bool, gain: Floats, pulls: Floats) -> float:
    """Take zz' into T and into the columns Tx of what is followed, given f = Tz; return 1 + z'V⁻¹z, for the V before.

        Tᵢ ← (αᵢ₋₁ Tᵢ − fᵢ bᵢ₋₁)/√(αᵢ₋₁αᵢ),    bᵢ = bᵢ₋₁ + fᵢ Tᵢ,    αᵢ = 1 + f₁² + … + fᵢ²        (Carlson 1973)

    Row by row, b ends as `gain` = V⁻¹z and, over the columns, `pulls` = x'V⁻¹z. The plain formula V⁻¹ − gg'/(1 + z'g)
    loses the narrow directions when play is uneven (docs/decisions/0005-square-root.md). `lean`: leave T as it is.
    The last row of the columns gets ‖Tx‖².
    """
    before, spread, forms = 1.0, 1.0, rows[rows.shape[0] - 1]
    if not lean:
        for j in range(gain.size):
            gain[j] = 0.0
    for j in range(pulls.size):
        pulls[j] = 0.0
        forms[j] = 0.0
    for pair in range(image.size // 2):
        i = 2 * pair
        length, next_length = image[i], image[i + 1]
        middle = before + length * length
        after = middle + next_length * next_length
        next_spread, last_spread = math.sqrt(middle), math.sqrt(after)
        scale, next_scale = 1.0 / (spread * next_spread), 1.0 / (next_spread * last_spread)
        keep, give, next_keep, next_give = before * scale, length * scale, middle * next_scale, next_length * next_scale
        if not lean:
            turn_own(learned[i], i + 1, length, keep, give, gain)
            turn_own(learned[i + 1], i + 2, next_length, next_keep, next_give, gain)
        turn_two(rows[i], length, keep, give, rows[i + 1], next_length, next_keep, next_give, pulls, forms)
        before, spread = after, last_spread
    if image.size % 2 == 1:
        i, length = image.size - 1, image[image.size - 1]
        after = before + length * length
        scale = 1.0 / (spread * math.sqrt(after))
        if not lean:
            turn_own(learned[i], i + 1, length, before * scale, length * scale, gain)
        turn(rows[i], length, before * scale, length * scale, pulls, forms)
        before = after
    return before


@kernel
@distinct
def settle(part: Part, size: int, lean: bool, after: float, surprises: Floats, gain: Floats, pulls: Floats) -> None:
    """Move the fits and the followed estimates by what was a surprise, and add to the sums.

    `size` coordinates are used of those that there is room for. The squares e²/(1 + z'V⁻¹z) add up to
    min_θ Σ (y − <z, θ>)² + λ‖θ‖² (docs/theory/watch.md).
    """
    n, learned, rows, tally = part.size, part.learned, part.rows, part.tally
    for signal in range(part.signals):
        surprise = surprises[signal]
        share = surprise / after
        tally[SQUARES + signal] += surprise * surprise / after
        if not lean:
            for i in range(size):
                learned[n + signal, i] += gain[i] * share
        for j in range(pulls.size):
            rows[n + signal, j] += pulls[j] * share
    tally[LOG_DET] += math.log(after)
    tally[TAKEN] += 1.0


@kernel
def learn_ridge(
    part: Part, features: Floats, index: int, step: float, lean: bool, values: Floats,
    settings: Floats, memory: Floats, work: Floats,
) -> None:  # fmt: skip
    """Take in what was seen (k,) when the action x was played; `work` is (3n + F + k,).

        θ̂ ← θ̂ + V⁻¹z (y − <z, θ̂>)/(1 + z'V⁻¹z),    log det V ← log det V + log(1 + z'V⁻¹z)

    `index`: the followed candidate on whose ray it lies, `step` of the way from x₀; AT_SAFE: it is x₀; ELSEWHERE:
    neither is said. `lean`: T and θ̂ need not be kept, because nothing but the followed candidates will be looked at.
    """
    n, k, width, safe = part.size, part.signals, part.width, part.followed - 1
    learned, rows, known = part.learned, part.rows, declared_of_ridge(part, settings).known
    pulls, rest = work[:width], work[width:]
    image, gain, coordinates, surprises = rest[:n], rest[n : 2 * n], rest[2 * n : 3 * n], rest[3 * n : 3 * n + k]
    if index == ELSEWHERE or safe < 0:
        lean = False
        share = place(part, settings, features, coordinates)
        fill_image(learned, coordinates, image)
        for signal in range(k):
            fit, surprise = learned[n + signal], values[signal] - share * known[signal]
            for i in range(n):
                surprise -= fit[i] * coordinates[i]
            surprises[signal] = surprise
    elif part.anchored == 1:
        place_ = max(index, 0)
        step = step if index >= 0 else 0.0
        for i in range(n):
            image[i] = step * rows[i, place_]
        for signal in range(k):
            surprises[signal] = values[signal] - ((1.0 - step) * known[signal] + step * rows[n + signal, place_])
    else:
        place_, step = (index, step) if index >= 0 else (safe, 1.0)
        remaining = 1.0 - step
        for i in range(n):
            image[i] = remaining * rows[i, safe] + step * rows[i, place_]
        for signal in range(k):
            expected = remaining * rows[n + signal, safe] + step * rows[n + signal, place_]
            surprises[signal] = values[signal] - expected
    after = move(learned, rows, image, lean, gain, pulls)
    settle(part, n, lean, after, surprises, gain, pulls)


@kernel
def follow_ridge(part: Part, features: Floats, safe: Floats, settings: Floats, memory: Floats, work: Floats) -> None:
    """Write what is kept of M candidates and of the safe action from now on; `work` is (n,)."""
    n, k, known = part.size, part.signals, declared_of_ridge(part, settings).known
    learned, rows, coordinates = part.learned, part.rows, work[:n]
    for candidate in range(features.shape[0] + 1):
        listed = candidate < features.shape[0]
        share, form = place(part, settings, features[candidate] if listed else safe, coordinates), 0.0
        if not listed and part.anchored == 1:
            share = 1.0
            coordinates[:] = 0.0
        for i in range(n):
            total = 0.0
            for j in range(i + 1):
                total += learned[i, j] * coordinates[j]
            rows[i, candidate] = total
            form += total * total
        rows[n + k, candidate] = form
        for signal in range(k):
            total = share * known[signal]
            for i in range(n):
                total += learned[n + signal, i] * coordinates[i]
            rows[n + signal, candidate] = total
