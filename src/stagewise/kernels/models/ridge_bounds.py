"""Bounds of a ridge regression for many candidates at once, and for the safe action."""

import math

from stagewise.kernels.bounds import CENTRE, CROSS, HALF
from stagewise.kernels.compile import Floats, distinct, kernel
from stagewise.kernels.layout import ModelBlock
from stagewise.kernels.models.radius import radius
from stagewise.kernels.models.ridge import LOG_DET, OBSERVATIONS, fill_image, get_ridge_assumptions

BLOCK = 128  # candidates per chunk: enough for full vector registers, small enough for the L1 cache


@kernel
def bounds_work_size(size: int, count: int) -> int:
    """Return the length of the scratch array for the bounds of `count` candidates."""
    return 2 * (count + 1) + (size + 3) * BLOCK + 2 * size


@kernel
@distinct
def gather_columns(
    block: ModelBlock,
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
    block: ModelBlock, features: Floats, safe: Floats, settings: Floats, memory: Floats, bounds: Floats, work: Floats
) -> None:
    """Write the bounds of any candidates, and of the safe action; `work` is (bounds_work_size,)."""
    n, k, count, known = block.size, block.signals, features.shape[0], get_ridge_assumptions(block, settings).known
    learned, row = block.learned, count + 1
    forms, crosses, rest = work[:row], work[row : 2 * row], work[2 * row :]
    columns, lane_sums, image = (
        rest[: n * BLOCK],
        rest[n * BLOCK : (n + 2) * BLOCK],
        rest[(n + 2) * BLOCK : (n + 2) * BLOCK + n],
    )
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
    block: ModelBlock, settings: Floats, memory: Floats, bounds: Floats, work: Floats
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
def compute_radius(block: ModelBlock, settings: Floats, neglected: float, signal: int) -> float:
    """Return β of a signal plus S times `neglected`, the √Σρ that a reproducing kernel's basis leaves out."""
    at, tally, declared = block.settings, block.tally, get_ridge_assumptions(block, settings)
    noise, bound, confidence = declared.noise[signal], declared.bound[signal], declared.confidence[signal]
    energy = tally[OBSERVATIONS] * settings[at + 1] * settings[at + 1]
    beta = radius(block.radius, noise, bound, settings[at], confidence, tally[LOG_DET], block.size, energy)
    return beta + bound * neglected


@kernel
def fill_half_widths(
    block: ModelBlock, settings: Floats, neglected: float, forms: Floats, crosses: Floats, bounds: Floats
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
def fill_crosses(block: ModelBlock, settings: Floats, neglected: float, crosses: Floats, bounds: Floats) -> None:
    """Write β² <x, V⁻¹x₀> for every signal of the block."""
    for signal in range(block.signals):
        beta, cross = compute_radius(block, settings, neglected, signal), bounds[block.first + signal, CROSS]
        for candidate in range(crosses.size):
            cross[candidate] = beta * beta * crosses[candidate]
