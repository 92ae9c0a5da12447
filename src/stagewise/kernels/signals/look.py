"""What a regression says of many candidates at once, and of the safe action: the bounds of its signals."""

import math

from stagewise.kernels.bounds import CENTRE, CROSS, HALF
from stagewise.kernels.compile import Floats, distinct, kernel
from stagewise.kernels.layout import Part
from stagewise.kernels.signals.radius import radius
from stagewise.kernels.signals.ridge import LOG_DET, TAKEN, declared_of_ridge, fill_image

BLOCK = 128  # candidates looked at together: wide enough for full vectors, small enough for the near caches


@kernel
def look_size(size: int, count: int) -> int:
    """Return the length of the scratch array for a look at `count` candidates."""
    return 2 * (count + 1) + (size + 3) * BLOCK + 2 * size


@kernel
@distinct
def gather(
    part: Part,
    features: Floats,
    settings: Floats,
    known: Floats,
    first: int,
    last: int,
    columns: Floats,
    bounds: Floats,
) -> None:
    """Write the coordinates of candidates `first` to `last` side by side, and the known part of their estimates.

    Coordinate i of all of them stands in columns[i BLOCK : i BLOCK + last − first].
    """
    n, reflector = part.size, settings[part.settings + 3 : part.settings + 4 + part.size]
    for candidate in range(first, last):
        action, lane, share = features[candidate], candidate - first, 0.0
        if part.reflected == 0:
            for i in range(n):
                columns[i * BLOCK + lane] = action[i]
        else:
            along = 0.0
            for i in range(n + 1):
                along += reflector[i] * action[i]
            for i in range(n):
                columns[i * BLOCK + lane] = action[i] - 2.0 * along * reflector[i]
            share = (action[n] - 2.0 * along * reflector[n]) * settings[part.settings + 2]
        for signal in range(part.signals):
            bounds[part.first + signal, CENTRE, candidate] = share * known[signal]


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
def add_row(root: Floats, i: int, columns: Floats, forms: Floats, image: Floats, crosses: Floats, part: Floats) -> None:
    """Add the square of row i of Tz, for each z, and its product with the image's entry i to the crosses, if any."""
    for lane in range(forms.size):
        part[lane] = 0.0
    for j in range(i + 1):
        factor, other = root[i, j], columns[j * BLOCK : (j + 1) * BLOCK]
        for lane in range(forms.size):
            part[lane] += factor * other[lane]
    for lane in range(forms.size):
        forms[lane] += part[lane] * part[lane]
    for lane in range(crosses.size):
        crosses[lane] += part[lane] * image[i]


@kernel
@distinct
def add_two_rows(
    root: Floats, i: int, columns: Floats, forms: Floats, image: Floats, crosses: Floats, part: Floats, other: Floats
) -> None:
    """Do the same for rows i and i + 1, four columns at a time: eight products for each load and store.

    Every sum goes from the left, one product after the other, as in `follow_ridge`: a candidate's bounds are the same
    to the bit whether it is followed or not.
    """
    row, next_row = columns[i * BLOCK : (i + 1) * BLOCK], columns[(i + 1) * BLOCK : (i + 2) * BLOCK]
    own, next_own, between = root[i, i], root[i + 1, i + 1], root[i + 1, i]
    for lane in range(forms.size):
        part[lane] = 0.0
        other[lane] = 0.0
    j = 0
    while j < i:  # i is even: columns come by two or by four
        a, b, p, q = root[i, j], root[i, j + 1], root[i + 1, j], root[i + 1, j + 1]
        first, second = columns[j * BLOCK : (j + 1) * BLOCK], columns[(j + 1) * BLOCK : (j + 2) * BLOCK]
        if j + 4 <= i:
            c, d, r, s = root[i, j + 2], root[i, j + 3], root[i + 1, j + 2], root[i + 1, j + 3]
            third, fourth = columns[(j + 2) * BLOCK : (j + 3) * BLOCK], columns[(j + 3) * BLOCK : (j + 4) * BLOCK]
            for lane in range(forms.size):
                w, x, y, z = first[lane], second[lane], third[lane], fourth[lane]
                part[lane] = part[lane] + a * w + b * x + c * y + d * z
                other[lane] = other[lane] + p * w + q * x + r * y + s * z
            j += 4
        else:
            for lane in range(forms.size):
                part[lane] = part[lane] + a * first[lane] + b * second[lane]
                other[lane] = other[lane] + p * first[lane] + q * second[lane]
            j += 2
    for lane in range(forms.size):
        total = part[lane] + own * row[lane]
        next_total = other[lane] + between * row[lane] + next_own * next_row[lane]
        forms[lane] = forms[lane] + total * total + next_total * next_total
    for lane in range(crosses.size):
        total = part[lane] + own * row[lane]
        next_total = other[lane] + between * row[lane] + next_own * next_row[lane]
        crosses[lane] = crosses[lane] + total * image[i] + next_total * image[i + 1]


@kernel
def squared_widths(
    size: int, root: Floats, columns: Floats, forms: Floats, image: Floats, crosses: Floats, parts: Floats
) -> None:
    """Write zᵀV⁻¹z = ‖Tz‖² for each z, and zᵀV⁻¹x₀ = <Tz, Tx₀> given the image Tx₀; with no crosses, only the first."""
    forms[:] = 0.0
    crosses[:] = 0.0
    for pair in range(size // 2):
        add_two_rows(root, 2 * pair, columns, forms, image, crosses, parts[:BLOCK], parts[BLOCK:])
    if size % 2 == 1:
        add_row(root, size - 1, columns, forms, image, crosses, parts[:BLOCK])


@kernel
def look_ridge(
    part: Part, features: Floats, safe: Floats, settings: Floats, memory: Floats, bounds: Floats, work: Floats
) -> None:
    """Write the bounds of any candidates, and of the safe action; `work` is (look_size,)."""
    n, k, count, known = part.size, part.signals, features.shape[0], declared_of_ridge(part, settings).known
    learned, row = part.learned, count + 1
    forms, crosses, rest = work[:row], work[row : 2 * row], work[2 * row :]
    columns, parts, image = (
        rest[: n * BLOCK],
        rest[n * BLOCK : (n + 2) * BLOCK],
        rest[(n + 2) * BLOCK : (n + 2) * BLOCK + n],
    )
    forms[count] = 0.0
    for signal in range(k):
        bounds[part.first + signal, CENTRE, count] = known[signal]
    if part.anchored == 0:
        fill_image(learned, safe[:n], image)
        for i in range(n):
            forms[count] += image[i] * image[i]
        crosses[count] = forms[count]
        for signal in range(k):
            total = 0.0
            for i in range(n):
                total += learned[n + signal, i] * safe[i]
            bounds[part.first + signal, CENTRE, count] = total
    first = 0
    while first < count:
        last = min(first + BLOCK, count)
        gather(part, features, settings, known, first, last, columns, bounds)
        for signal in range(k):
            add_products(learned[n + signal], columns, bounds[part.first + signal, CENTRE, first:last])
        crossed = crosses[first:last] if part.anchored == 0 else crosses[:0]
        squared_widths(n, learned, columns, forms[first:last], image, crossed, parts)
        first = last
    fill_halves(part, settings, 0.0, forms, crosses, bounds)


@kernel
@distinct
def recall_ridge(part: Part, settings: Floats, memory: Floats, bounds: Floats, work: Floats) -> None:
    """Write the bounds of the followed candidates, and of the safe action; `work` is (2F,), F = K + 1 padded."""
    n, k, row, rows, width = part.size, part.signals, part.followed, part.rows, part.width
    widths, crosses = work[:width], work[width : width + row]
    for candidate in range(width):
        widths[candidate] = math.sqrt(rows[n + k, candidate])
    for signal in range(k):
        beta = radius_of(part, settings, 0.0, signal)
        centre, half = bounds[part.first + signal, CENTRE], bounds[part.first + signal, HALF]
        estimates = rows[n + signal]
        for candidate in range(row):
            half[candidate] = beta * widths[candidate]
        for candidate in range(row):
            centre[candidate] = estimates[candidate]
    if part.anchored == 0:
        crosses[:] = 0.0
        for i in range(n):
            pull = rows[i, row - 1]
            for candidate in range(row):
                crosses[candidate] += rows[i, candidate] * pull
        fill_crosses(part, settings, 0.0, crosses, bounds)


@kernel
def radius_of(part: Part, settings: Floats, neglected: float, signal: int) -> float:
    """Return β of a signal, and S times `neglected`: √Σρ of what a reproducing kernel's basis leaves out."""
    at, tally, declared = part.settings, part.tally, declared_of_ridge(part, settings)
    noise, bound, confidence = declared.noise[signal], declared.bound[signal], declared.confidence[signal]
    energy = tally[TAKEN] * settings[at + 1] * settings[at + 1]
    beta = radius(part.radius, noise, bound, settings[at], confidence, tally[LOG_DET], part.size, energy)
    return beta + bound * neglected


@kernel
def fill_halves(part: Part, settings: Floats, neglected: float, forms: Floats, crosses: Floats, bounds: Floats) -> None:
    """Turn squared widths into half-widths β ‖x‖ and crosses into β² <x, V⁻¹x₀>, for every signal of the part."""
    for candidate in range(forms.size):
        forms[candidate] = math.sqrt(forms[candidate])
    for signal in range(part.signals):
        beta, half = radius_of(part, settings, neglected, signal), bounds[part.first + signal, HALF]
        for candidate in range(forms.size):
            half[candidate] = beta * forms[candidate]
    if part.anchored == 0:
        fill_crosses(part, settings, neglected, crosses, bounds)


@kernel
def fill_crosses(part: Part, settings: Floats, neglected: float, crosses: Floats, bounds: Floats) -> None:
    """Write β² <x, V⁻¹x₀> for every signal of the part."""
    for signal in range(part.signals):
        beta, cross = radius_of(part, settings, neglected, signal), bounds[part.first + signal, CROSS]
        for candidate in range(crosses.size):
            cross[candidate] = beta * beta * crosses[candidate]
