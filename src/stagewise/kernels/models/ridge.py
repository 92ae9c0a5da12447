"""Ridge regression of several signals on the same features, one observation at a time.

A block's memory is two tables and its sums:

    rows    (n + k + 1, F) of cached candidates: Tz, their estimates, zᵀV⁻¹z = ‖Tz‖²; the safe action last
    learned (n + k, n)     T, lower triangular with V⁻¹ = TᵀT, V = λI + Σ zzᵀ; then the fits V⁻¹ Σ y z, a row a signal
    tally   (3 + 2k,)      log det V/λⁿ, the observations, those at x₀ | Σ e²/(1 + z'V⁻¹z) | Σ (y − known) at x₀

Cached candidates are updated with every observation, by the recursion that updates T: the bounds of M cached candidates
take O(M) instead of O(Mn²).

Anchored: the values at x₀ are known, and only the n = d−1 directions orthogonal to it are learned (n = d at x₀ = 0). A
Householder reflection H turns x₀ onto the last axis: z is Hx without its last entry, which is ±<x, e₀>. Free: nothing
is known at x₀, and z = x.

    settings: λ, L, unit | reflector (d,), where reflected | R | S | log 1/δ | known at x₀, all (k,)
"""

import math
from typing import NamedTuple

from stagewise.kernels.compile import Floats, distinct, kernel
from stagewise.kernels.layout import ModelBlock

LOG_DET, OBSERVATIONS, SAFE_OBSERVATIONS, SQUARES = 0, 1, 2, 3  # in the tally
AT_SAFE, ELSEWHERE = -1, -2  # in place of the index of the cached candidate whose ray contains an observed action


class RidgeAssumptions(NamedTuple):
    """The assumptions about k signals."""

    noise: Floats  # R
    bound: Floats  # S, of the part that is learned
    confidence: Floats  # log 1/δ
    known: Floats  # at x₀; 0 where free


class CoordinateFrame(NamedTuple):
    """How actions are mapped to coordinates."""

    ridge: float  # λ
    action_bound: float  # L
    unit: float  # factor that turns the last entry of Hx into <x, x₀>/‖x₀‖²
    reflector: Floats  # (d,), where reflected


class RidgeStatistics(NamedTuple):
    """The statistics of a regression of k signals, as views of the memory."""

    root: Floats  # (n, n) T, lower triangular: V⁻¹ = TᵀT
    fits: Floats  # (k, n) the estimates
    log_det: float  # log det V/λⁿ
    observations: float  # observations
    at_safe: float  # of them, at the safe action
    squares: Floats  # (k,) of the residuals
    safe_residuals: Floats  # (k,) summed outcomes at the safe action, less what is known there


@kernel
def get_ridge_statistics(block: ModelBlock) -> RidgeStatistics:
    """Return the statistics of a regression."""
    n, k, tally = block.size, block.signals, block.tally
    return RidgeStatistics(
        block.learned[:n], block.learned[n:], tally[LOG_DET], tally[OBSERVATIONS], tally[SAFE_OBSERVATIONS],
        tally[SQUARES : SQUARES + k], tally[SQUARES + k : SQUARES + 2 * k],
    )  # fmt: skip


@kernel
def get_ridge_assumptions(block: ModelBlock, settings: Floats) -> RidgeAssumptions:
    """Return the assumptions about a block's signals, as views of the settings."""
    at, k = block.settings + 3 + block.reflected * (block.size + 1), block.signals
    return RidgeAssumptions(
        settings[at : at + k], settings[at + k : at + 2 * k], settings[at + 2 * k : at + 3 * k],
        settings[at + 3 * k : at + 4 * k],
    )  # fmt: skip


@kernel
def get_coordinate_frame(block: ModelBlock, settings: Floats) -> CoordinateFrame:
    """Return how a block maps actions to coordinates (see `fill_coordinates`)."""
    at = block.settings
    end = at + 3 + block.reflected * (block.size + 1)
    return CoordinateFrame(settings[at], settings[at + 1], settings[at + 2], settings[at + 3 : end])


@kernel
def fill_coordinates(block: ModelBlock, settings: Floats, features: Floats, coordinates: Floats) -> float:
    """Write z for one action x, and return the share <x, x₀>/‖x₀‖² of the known value that it carries."""
    n = block.size
    if block.reflected == 0:
        for i in range(n):
            coordinates[i] = features[i]
        return 0.0
    reflector, along = settings[block.settings + 3 : block.settings + 4 + n], 0.0
    for i in range(n + 1):
        along += reflector[i] * features[i]
    for i in range(n):
        coordinates[i] = features[i] - 2.0 * along * reflector[i]
    return (features[n] - 2.0 * along * reflector[n]) * settings[block.settings + 2]


@kernel
def start_ridge(block: ModelBlock, settings: Floats, memory: Floats) -> None:
    """Write V = λI into an empty memory."""
    for i in range(block.size):
        block.learned[i, i] = 1.0 / math.sqrt(settings[block.settings])


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
def rotate_row(row: Floats, length: float, keep: float, give: float, pulls: Floats, forms: Floats) -> None:
    """Update one row of the columns Tx of the cached candidates."""
    for j in range(pulls.size):
        old = row[j]
        new = old * keep - pulls[j] * give
        row[j] = new
        pulls[j] += length * old
        forms[j] += new * new


@kernel
@distinct
def rotate_root_row(row: Floats, count: int, length: float, keep: float, give: float, gain: Floats) -> None:
    """Update the first `count` entries of a row of T."""
    for j in range(count):
        old = row[j]
        row[j] = old * keep - gain[j] * give
        gain[j] += length * old


@kernel
@distinct
def rotate_two_rows(
    row: Floats, length: float, keep: float, give: float, next_row: Floats, next_length: float, next_keep: float,
    next_give: float, pulls: Floats, forms: Floats,
) -> None:  # fmt: skip
    """Update two consecutive rows, so that sums are loaded and stored once for both."""
    for j in range(pulls.size):
        old, next_old, pull = row[j], next_row[j], pulls[j]
        new = old * keep - pull * give
        pull += length * old
        next_new = next_old * next_keep - pull * next_give
        row[j], next_row[j] = new, next_new
        pulls[j] = pull + next_length * next_old
        forms[j] = forms[j] + new * new + next_new * next_new


@kernel
def update_root(learned: Floats, rows: Floats, image: Floats, cached_only: bool, gain: Floats, pulls: Floats) -> float:
    """Add zz' to V: update T and the cached columns Tx, given f = Tz; return 1 + z'V⁻¹z for the old V.

        Tᵢ ← (αᵢ₋₁ Tᵢ − fᵢ bᵢ₋₁)/√(αᵢ₋₁αᵢ),    bᵢ = bᵢ₋₁ + fᵢ Tᵢ,    αᵢ = 1 + f₁² + … + fᵢ²        (Carlson 1973)

    Row by row, b ends as `gain` = V⁻¹z and, over the columns, `pulls` = x'V⁻¹z. The direct formula V⁻¹ − gg'/(1 + z'g)
    loses the narrow directions when play is uneven (docs/decisions/0005-square-root.md). `cached_only`: leave T
    unchanged. The last row of the columns receives ‖Tx‖².
    """
    before, norm, forms = 1.0, 1.0, rows[rows.shape[0] - 1]
    if not cached_only:
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
        next_norm, last_norm = math.sqrt(middle), math.sqrt(after)
        scale, next_scale = 1.0 / (norm * next_norm), 1.0 / (next_norm * last_norm)
        keep, give, next_keep, next_give = before * scale, length * scale, middle * next_scale, next_length * next_scale
        if not cached_only:
            rotate_root_row(learned[i], i + 1, length, keep, give, gain)
            rotate_root_row(learned[i + 1], i + 2, next_length, next_keep, next_give, gain)
        rotate_two_rows(rows[i], length, keep, give, rows[i + 1], next_length, next_keep, next_give, pulls, forms)
        before, norm = after, last_norm
    if image.size % 2 == 1:
        i, length = image.size - 1, image[image.size - 1]
        after = before + length * length
        scale = 1.0 / (norm * math.sqrt(after))
        if not cached_only:
            rotate_root_row(learned[i], i + 1, length, before * scale, length * scale, gain)
        rotate_row(rows[i], length, before * scale, length * scale, pulls, forms)
        before = after
    return before


@kernel
@distinct
def update_estimates(
    block: ModelBlock, size: int, cached_only: bool, after: float, errors: Floats, gain: Floats, pulls: Floats
) -> None:
    """Update the fits and the cached estimates by the prediction errors, and add to the sums.

    `size` coordinates are in use, out of the capacity. The squares e²/(1 + z'V⁻¹z) add up to
    min_θ Σ (y − <z, θ>)² + λ‖θ‖² (docs/theory/watch.md).
    """
    n, learned, rows, tally = block.size, block.learned, block.rows, block.tally
    for signal in range(block.signals):
        error = errors[signal]
        share = error / after
        tally[SQUARES + signal] += error * error / after
        if not cached_only:
            for i in range(size):
                learned[n + signal, i] += gain[i] * share
        for j in range(pulls.size):
            rows[n + signal, j] += pulls[j] * share
    tally[LOG_DET] += math.log(after)
    tally[OBSERVATIONS] += 1.0


@kernel
def learn_ridge(
    block: ModelBlock, features: Floats, index: int, step: float, cached_only: bool, values: Floats,
    settings: Floats, memory: Floats, work: Floats,
) -> None:  # fmt: skip
    """Learn the outcome (k,) of the action x; `work` is (3n + F + k,).

        θ̂ ← θ̂ + V⁻¹z (y − <z, θ̂>)/(1 + z'V⁻¹z),    log det V ← log det V + log(1 + z'V⁻¹z)

    `index`: the cached candidate whose ray contains x, `step` of the way from x₀; AT_SAFE: it is x₀; ELSEWHERE:
    neither. `cached_only`: T and θ̂ need not be updated, because only bounds of cached candidates will be computed.
    """
    n, k, width, safe = block.size, block.signals, block.width, block.cached - 1
    learned, rows, known = block.learned, block.rows, get_ridge_assumptions(block, settings).known
    pulls, rest = work[:width], work[width:]
    image, gain, coordinates, errors = rest[:n], rest[n : 2 * n], rest[2 * n : 3 * n], rest[3 * n : 3 * n + k]
    if index == ELSEWHERE or safe < 0:
        cached_only = False
        share = fill_coordinates(block, settings, features, coordinates)
        fill_image(learned, coordinates, image)
        for signal in range(k):
            fit, error = learned[n + signal], values[signal] - share * known[signal]
            for i in range(n):
                error -= fit[i] * coordinates[i]
            errors[signal] = error
    elif block.anchored == 1:
        column = max(index, 0)
        step = step if index >= 0 else 0.0
        for i in range(n):
            image[i] = step * rows[i, column]
        for signal in range(k):
            errors[signal] = values[signal] - ((1.0 - step) * known[signal] + step * rows[n + signal, column])
    else:
        column, step = (index, step) if index >= 0 else (safe, 1.0)
        remaining = 1.0 - step
        for i in range(n):
            image[i] = remaining * rows[i, safe] + step * rows[i, column]
        for signal in range(k):
            expected = remaining * rows[n + signal, safe] + step * rows[n + signal, column]
            errors[signal] = values[signal] - expected
    after = update_root(learned, rows, image, cached_only, gain, pulls)
    update_estimates(block, n, cached_only, after, errors, gain, pulls)


@kernel
def cache_ridge(
    block: ModelBlock, features: Floats, safe: Floats, settings: Floats, memory: Floats, work: Floats
) -> None:
    """Write the cached values of M candidates and of the safe action; `work` is (n,)."""
    n, k, known = block.size, block.signals, get_ridge_assumptions(block, settings).known
    learned, rows, coordinates = block.learned, block.rows, work[:n]
    for candidate in range(features.shape[0] + 1):
        listed = candidate < features.shape[0]
        share, form = fill_coordinates(block, settings, features[candidate] if listed else safe, coordinates), 0.0
        if not listed and block.anchored == 1:
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
