"""Ridge regression of several signals on the same features, one observation at a time, and its bounds.

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

To add a radius, add a name to `Radius` and a branch to `radius`. A name without a branch is infinite, so that only the
safe action is played.
"""

import math
from typing import Literal, NamedTuple, get_args

from stagewise.engine.compile import Floats, Ints, distinct, kernel
from stagewise.engine.layout import ELSEWHERE, UNIT_RANGE, ModelBlock, pad_to_vector
from stagewise.engine.workspace import BLOCK, CENTRE, CROSS, HALF

Radius = Literal["joint", "logdet", "paper"]
RADII = get_args(Radius)
JOINT, LOGDET, PAPER = 0, 1, 2


@kernel
def radius(
    kind: int, noise: float, bound: float, ridge: float, confidence: float, log_det: float, size: int, energy: float
) -> float:
    """Return β from R, S, λ, log 1/δ, log det V/λⁿ, n and (t−1)L².

    joint:    √(R² (log det V/λⁿ + 2 log 1/δ) + λS²)              (docs/theory/joint-radius.md)
    logdet:   R √(log det V/λⁿ + 2 log 1/δ) + S√λ                 (Abbasi-Yadkori et al. 2011, Theorem 2)
    paper:    R √(n log((1 + (t−1)L²/λ)/δ)) + S√λ                 (the paper, Theorem 2; needs n ≥ 2)
    """
    if kind == JOINT:
        return math.sqrt(noise * noise * (log_det + 2.0 * confidence) + ridge * bound * bound)
    if kind == LOGDET:
        return noise * math.sqrt(log_det + 2.0 * confidence) + bound * math.sqrt(ridge)
    if kind == PAPER:
        return noise * math.sqrt(size * (math.log1p(energy / ridge) + confidence)) + bound * math.sqrt(ridge)
    return math.inf


LOG_DET, OBSERVATIONS, SAFE_OBSERVATIONS, SQUARES = 0, 1, 2, 3  # in the tally


class Regression(NamedTuple):
    """A block of k signals that are regressed together, with views of its memory."""

    first: int
    signals: int  # k
    size: int  # n: learned coordinates, or the capacity for basis points
    radius: int  # kind of radius
    anchored: int
    reflected: int
    detail: int
    per_candidate: int
    settings: int
    memory: int
    cached: int  # number of cached candidates, the safe action last; 0: none
    width: int  # F, the same, padded
    tally: Floats  # (3 + 2k,)
    learned: Floats  # (n + k, n)
    rows: Floats  # (n + k + 1, F)
    sets: Floats  # per-candidate sets, row after row (see `models.per_candidate`)


@kernel
def tally_size(count: int) -> int:
    """Return the number of sums that a regression of k signals keeps."""
    return 3 + 2 * count


@kernel
def count_cached_rows(size: int, count: int, per_candidate: int) -> int:
    """Return the number of values that a regression keeps of every cached candidate."""
    own = (1 + 3 * count if per_candidate > 0 else 0) + (2 + count if per_candidate == UNIT_RANGE else 0)
    return size + count + 1 + own


@kernel
def build_regression(block: ModelBlock, size: int, cached: int, memory: Floats) -> Regression:
    """Return the regression of a block, with n coordinates and this many cached candidates."""
    k, width, at = block.signals, pad_to_vector(cached), block.memory
    sets, learned = at + (size + k + 1) * width, at + count_cached_rows(size, k, block.per_candidate) * width
    tally = learned + (size + k) * size
    return Regression(
        block.first, k, size, block.radius, block.anchored, block.reflected, block.detail, block.per_candidate,
        block.settings, at, cached, width, memory[tally : tally + tally_size(k)],
        memory[learned:tally].reshape(size + k, size), memory[at:sets].reshape(size + k + 1, width),
        memory[sets:learned],
    )  # fmt: skip


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
def get_ridge_statistics(block: Regression) -> RidgeStatistics:
    n, k, tally = block.size, block.signals, block.tally
    return RidgeStatistics(
        block.learned[:n], block.learned[n:], tally[LOG_DET], tally[OBSERVATIONS], tally[SAFE_OBSERVATIONS],
        tally[SQUARES : SQUARES + k], tally[SQUARES + k : SQUARES + 2 * k],
    )  # fmt: skip


@kernel
def get_ridge_assumptions(block: Regression, settings: Floats) -> RidgeAssumptions:
    """Return the assumptions about a block's signals, as views of the settings."""
    at, k = block.settings + 3 + block.reflected * (block.size + 1), block.signals
    return RidgeAssumptions(
        settings[at : at + k], settings[at + k : at + 2 * k], settings[at + 2 * k : at + 3 * k],
        settings[at + 3 * k : at + 4 * k],
    )  # fmt: skip


@kernel
def get_coordinate_frame(block: Regression, settings: Floats) -> CoordinateFrame:
    """Return how a block maps actions to coordinates (see `fill_coordinates`)."""
    at = block.settings
    end = at + 3 + block.reflected * (block.size + 1)
    return CoordinateFrame(settings[at], settings[at + 1], settings[at + 2], settings[at + 3 : end])


@kernel
def fill_coordinates(block: Regression, settings: Floats, features: Floats, coordinates: Floats) -> float:
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
def start_ridge(layout: Ints, block: Regression, settings: Floats, memory: Floats, work: Floats) -> None:
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
    block: Regression, size: int, cached_only: bool, after: float, errors: Floats, gain: Floats, pulls: Floats
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
    block: Regression, features: Floats, index: int, step: float, cached_only: bool, values: Floats,
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
    block: Regression, features: Floats, safe: Floats, settings: Floats, memory: Floats, work: Floats
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


@kernel
@distinct
def gather_columns(
    block: Regression,
    features: Floats,
    settings: Floats,
    known: Floats,
    first: int,
    last: int,
    columns: Floats,
    bounds: Floats,
) -> None:
    """Write the coordinates of candidates `first` to `last` in columns, and the known part of their estimates.

    Coordinate i of all of them is in columns[i BLOCK : i BLOCK + last − first].
    """
    n, reflector = block.size, settings[block.settings + 3 : block.settings + 4 + block.size]
    for candidate in range(first, last):
        action, lane, share = features[candidate], candidate - first, 0.0
        if block.reflected == 0:
            for i in range(n):
                columns[i * BLOCK + lane] = action[i]
        else:
            along = 0.0
            for i in range(n + 1):
                along += reflector[i] * action[i]
            for i in range(n):
                columns[i * BLOCK + lane] = action[i] - 2.0 * along * reflector[i]
            share = (action[n] - 2.0 * along * reflector[n]) * settings[block.settings + 2]
        for signal in range(block.signals):
            bounds[block.first + signal, CENTRE, candidate] = share * known[signal]


@kernel
@distinct
def add_products(vector: Floats, columns: Floats, totals: Floats) -> None:
    """Add <v, z> for each z."""
    for i in range(vector.size):
        factor, row = vector[i], columns[i * BLOCK : (i + 1) * BLOCK]
        for lane in range(totals.size):
            totals[lane] += factor * row[lane]


@kernel
@distinct
def add_row(root: Floats, i: int, columns: Floats, forms: Floats, image: Floats, crosses: Floats, sums: Floats) -> None:
    """Add the square of row i of Tz, for each z, and its product with the image's entry i to the crosses, if any."""
    for lane in range(forms.size):
        sums[lane] = 0.0
    for j in range(i + 1):
        factor, other = root[i, j], columns[j * BLOCK : (j + 1) * BLOCK]
        for lane in range(forms.size):
            sums[lane] += factor * other[lane]
    for lane in range(forms.size):
        forms[lane] += sums[lane] * sums[lane]
    for lane in range(crosses.size):
        crosses[lane] += sums[lane] * image[i]


@kernel
@distinct
def add_two_rows(
    root: Floats,
    i: int,
    columns: Floats,
    forms: Floats,
    image: Floats,
    crosses: Floats,
    sums: Floats,
    next_sums: Floats,
) -> None:
    """Do the same for rows i and i + 1, four columns at a time: eight products for each load and store.

    Every sum runs from left to right, one product after the other, as in `cache_ridge`: a candidate's bounds have the
    same bits whether it is cached or not.
    """
    row, next_row = columns[i * BLOCK : (i + 1) * BLOCK], columns[(i + 1) * BLOCK : (i + 2) * BLOCK]
    own, next_own, between = root[i, i], root[i + 1, i + 1], root[i + 1, i]
    for lane in range(forms.size):
        sums[lane] = 0.0
        next_sums[lane] = 0.0
    j = 0
    while j < i:  # i is even: columns come in twos or fours
        a, b, p, q = root[i, j], root[i, j + 1], root[i + 1, j], root[i + 1, j + 1]
        first, second = columns[j * BLOCK : (j + 1) * BLOCK], columns[(j + 1) * BLOCK : (j + 2) * BLOCK]
        if j + 4 <= i:
            c, d, r, s = root[i, j + 2], root[i, j + 3], root[i + 1, j + 2], root[i + 1, j + 3]
            third, fourth = columns[(j + 2) * BLOCK : (j + 3) * BLOCK], columns[(j + 3) * BLOCK : (j + 4) * BLOCK]
            for lane in range(forms.size):
                w, x, y, z = first[lane], second[lane], third[lane], fourth[lane]
                sums[lane] = sums[lane] + a * w + b * x + c * y + d * z
                next_sums[lane] = next_sums[lane] + p * w + q * x + r * y + s * z
            j += 4
        else:
            for lane in range(forms.size):
                sums[lane] = sums[lane] + a * first[lane] + b * second[lane]
                next_sums[lane] = next_sums[lane] + p * first[lane] + q * second[lane]
            j += 2
    for lane in range(forms.size):
        total = sums[lane] + own * row[lane]
        next_total = next_sums[lane] + between * row[lane] + next_own * next_row[lane]
        forms[lane] = forms[lane] + total * total + next_total * next_total
    for lane in range(crosses.size):
        total = sums[lane] + own * row[lane]
        next_total = next_sums[lane] + between * row[lane] + next_own * next_row[lane]
        crosses[lane] = crosses[lane] + total * image[i] + next_total * image[i + 1]


@kernel
def fill_squared_widths(
    size: int, root: Floats, columns: Floats, forms: Floats, image: Floats, crosses: Floats, lane_sums: Floats
) -> None:
    """Write zᵀV⁻¹z = ‖Tz‖² for each z, and zᵀV⁻¹x₀ = <Tz, Tx₀> given the image Tx₀; with no crosses, only the first."""
    forms[:] = 0.0
    crosses[:] = 0.0
    for pair in range(size // 2):
        add_two_rows(root, 2 * pair, columns, forms, image, crosses, lane_sums[:BLOCK], lane_sums[BLOCK:])
    if size % 2 == 1:
        add_row(root, size - 1, columns, forms, image, crosses, lane_sums[:BLOCK])


@kernel
def compute_ridge_bounds(
    block: Regression, features: Floats, safe: Floats, settings: Floats, memory: Floats, bounds: Floats, work: Floats
) -> None:
    """Write the bounds of any candidates, and of the safe action; `work` is (bounds_work_size,)."""
    n, k, count, known = block.size, block.signals, features.shape[0], get_ridge_assumptions(block, settings).known
    learned, row = block.learned, count + 1
    forms, crosses, rest = work[:row], work[row : 2 * row], work[2 * row :]
    columns, lane_sums = rest[: n * BLOCK], rest[n * BLOCK : (n + 2) * BLOCK]
    image = rest[(n + 2) * BLOCK : (n + 2) * BLOCK + n]
    forms[count] = 0.0
    for signal in range(k):
        bounds[block.first + signal, CENTRE, count] = known[signal]
    if block.anchored == 0:
        fill_image(learned, safe[:n], image)
        for i in range(n):
            forms[count] += image[i] * image[i]
        crosses[count] = forms[count]
        for signal in range(k):
            total = 0.0
            for i in range(n):
                total += learned[n + signal, i] * safe[i]
            bounds[block.first + signal, CENTRE, count] = total
    first = 0
    while first < count:
        last = min(first + BLOCK, count)
        gather_columns(block, features, settings, known, first, last, columns, bounds)
        for signal in range(k):
            add_products(learned[n + signal], columns, bounds[block.first + signal, CENTRE, first:last])
        crossed = crosses[first:last] if block.anchored == 0 else crosses[:0]
        fill_squared_widths(n, learned, columns, forms[first:last], image, crossed, lane_sums)
        first = last
    fill_half_widths(block, settings, 0.0, forms, crosses, bounds)


@kernel
@distinct
def compute_cached_ridge_bounds(
    block: Regression, settings: Floats, memory: Floats, bounds: Floats, work: Floats
) -> None:
    """Write the bounds of the cached candidates, and of the safe action; `work` is (2F,), F = K + 1 padded."""
    n, k, row, rows, width = block.size, block.signals, block.cached, block.rows, block.width
    widths, crosses = work[:width], work[width : width + row]
    for candidate in range(width):
        widths[candidate] = math.sqrt(rows[n + k, candidate])
    for signal in range(k):
        beta = compute_radius(block, settings, 0.0, signal)
        centre, half = bounds[block.first + signal, CENTRE], bounds[block.first + signal, HALF]
        estimates = rows[n + signal]
        for candidate in range(row):
            half[candidate] = beta * widths[candidate]
        for candidate in range(row):
            centre[candidate] = estimates[candidate]
    if block.anchored == 0:
        crosses[:] = 0.0
        for i in range(n):
            pull = rows[i, row - 1]
            for candidate in range(row):
                crosses[candidate] += rows[i, candidate] * pull
        fill_crosses(block, settings, 0.0, crosses, bounds)


@kernel
def compute_radius(block: Regression, settings: Floats, neglected: float, signal: int) -> float:
    """Return β of a signal plus S times `neglected`, the √Σρ that a reproducing kernel's basis leaves out."""
    at, tally, declared = block.settings, block.tally, get_ridge_assumptions(block, settings)
    noise, bound, confidence = declared.noise[signal], declared.bound[signal], declared.confidence[signal]
    energy = tally[OBSERVATIONS] * settings[at + 1] * settings[at + 1]
    beta = radius(block.radius, noise, bound, settings[at], confidence, tally[LOG_DET], block.size, energy)
    return beta + bound * neglected


@kernel
def fill_half_widths(
    block: Regression, settings: Floats, neglected: float, forms: Floats, crosses: Floats, bounds: Floats
) -> None:
    """Turn squared widths into half-widths β ‖x‖ and crosses into β² <x, V⁻¹x₀>, for every signal of the block."""
    for candidate in range(forms.size):
        forms[candidate] = math.sqrt(forms[candidate])
    for signal in range(block.signals):
        beta, half = compute_radius(block, settings, neglected, signal), bounds[block.first + signal, HALF]
        for candidate in range(forms.size):
            half[candidate] = beta * forms[candidate]
    if block.anchored == 0:
        fill_crosses(block, settings, neglected, crosses, bounds)


@kernel
def fill_crosses(block: Regression, settings: Floats, neglected: float, crosses: Floats, bounds: Floats) -> None:
    """Write β² <x, V⁻¹x₀> for every signal of the block."""
    for signal in range(block.signals):
        beta, cross = compute_radius(block, settings, neglected, signal), bounds[block.first + signal, CROSS]
        for candidate in range(crosses.size):
            cross[candidate] = beta * beta * crosses[candidate]
