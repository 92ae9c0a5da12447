"""What a ridge regression says of many candidates at once, and of the safe action."""

import math
from typing import NamedTuple

from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.radius import fill_radii
from stagewise.kernels.ridge import Anchor, Regression, Ridge, add_multiple, multiply

BLOCK = 128  # candidates looked at together: wide enough for full vectors, small enough for the near caches


class View(NamedTuple):
    """What a ridge model says of M candidates and of the safe action, all arrays owned by the caller."""

    estimates: Floats  # (k, M) <x, θ̂>, one row a signal
    widths: Floats  # (M,) ‖x‖ in V⁻¹
    crosses: Floats  # (M,) <x, V⁻¹x₀>; untouched where anchored
    start: Floats  # (k,) the estimates at x₀
    radii: Floats  # (k,) β of every signal


@kernel
def look_at_start(ridge: Ridge, anchor: Anchor, start: Floats, image: Floats, pull: Floats) -> float:
    """Write the k estimates at the safe action, and V⁻¹x₀ where free; return its width ‖x₀‖ in V⁻¹."""
    for signal in range(start.size):
        start[signal] = anchor.known[signal]
    if anchor.start.size == 0:
        return 0.0
    form = multiply(ridge.root, anchor.start, image, pull)
    for signal in range(start.size):
        for i in range(anchor.start.size):
            start[signal] += ridge.fits[signal, i] * anchor.start[i]
    return math.sqrt(form)


@kernel
def gather(features: Floats, anchor: Anchor, first: int, last: int, columns: Floats, estimates: Floats) -> None:
    """Write the coordinates of candidates `first` to `last` side by side, and the known part of their estimates.

    Coordinate i of all of them stands in columns[i BLOCK : i BLOCK + last − first].
    """
    size = columns.size // BLOCK
    for candidate in range(first, last):
        action, lane, share = features[candidate], candidate - first, 0.0
        if anchor.reflector.size == 0:
            for i in range(size):
                columns[i * BLOCK + lane] = action[i]
        else:
            along = 0.0
            for i in range(action.size):
                along += anchor.reflector[i] * action[i]
            for i in range(size):
                columns[i * BLOCK + lane] = action[i] - 2.0 * along * anchor.reflector[i]
            share = (action[size] - 2.0 * along * anchor.reflector[size]) * anchor.unit
        for signal in range(anchor.known.size):
            estimates[signal, candidate] = share * anchor.known[signal]


@kernel
def add_products(vector: Floats, columns: Floats, totals: Floats) -> None:
    """Add <v, z> for each z."""
    for i in range(vector.size):
        factor, row = vector[i], columns[i * BLOCK : (i + 1) * BLOCK]
        for lane in range(totals.size):
            totals[lane] += factor * row[lane]


@kernel
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
def add_two_rows(
    root: Floats,
    i: int,
    columns: Floats,
    forms: Floats,
    image: Floats,
    crosses: Floats,
    part: Floats,
    other: Floats,
) -> None:
    """Do the same for rows i and i + 1, four columns at a time: eight products for each load and store.

    Every sum goes from the left, one product after the other, as in `ridge.follow` and `recall`: a candidate's bounds
    are the same to the bit whether it is followed or not.
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
    root: Floats, columns: Floats, forms: Floats, part: Floats, other: Floats, image: Floats, crosses: Floats
) -> None:
    """Write zᵀV⁻¹z = ‖Tz‖² for each z, and zᵀV⁻¹x₀ = <Tz, Tx₀> given the image Tx₀; with no crosses, only the first."""
    size = root.shape[0]
    forms[:] = 0.0
    crosses[:] = 0.0
    for pair in range(size // 2):
        add_two_rows(root, 2 * pair, columns, forms, image, crosses, part, other)
    if size % 2 == 1:
        add_row(root, size - 1, columns, forms, image, crosses, part)


@kernel
def look(features: Floats, model: Regression, view: View, work: Floats) -> float:
    """Fill the view and return the width at the safe action; `work` is (n BLOCK + 2 BLOCK + 2n,)."""
    ridge, anchor, belief = model.ridge, model.anchor, model.belief
    size, count = ridge.root.shape[0], features.shape[0]
    end = size * BLOCK
    columns, parts, rest = work[:end], work[end : end + 2 * BLOCK], work[end + 2 * BLOCK :]
    image, pull = rest[:size], rest[size : 2 * size]
    fill_radii(belief, size, ridge.tally[0], ridge.tally[1], view.radii)
    start_width = look_at_start(ridge, anchor, view.start, image, pull)
    first = 0
    while first < count:
        last = min(first + BLOCK, count)
        gather(features, anchor, first, last, columns, view.estimates)
        for signal in range(view.radii.size):
            add_products(ridge.fits[signal], columns, view.estimates[signal, first:last])
        crosses = view.crosses[first:last] if anchor.start.size > 0 else view.crosses[:0]
        forms = view.widths[first:last]
        squared_widths(ridge.root, columns, forms, parts[:BLOCK], parts[BLOCK:], image, crosses)
        first = last
    for candidate in range(count):
        view.widths[candidate] = math.sqrt(view.widths[candidate])
    return start_width


@kernel
def recall(model: Regression, view: View, work: Floats) -> float:
    """Fill the view of the followed candidates, but for the estimates, which stand where they are followed.

    Return the width at the safe action; `work` is (2n,).
    """
    ridge, followed, anchor = model.ridge, model.followed, model.anchor
    size, widths = ridge.root.shape[0], view.widths
    image, pull = work[:size], work[size : 2 * size]
    fill_radii(model.belief, size, ridge.tally[0], ridge.tally[1], view.radii)
    start_width = look_at_start(ridge, anchor, view.start, image, pull)
    for candidate in range(widths.size):
        widths[candidate] = math.sqrt(followed.forms[candidate])
    if anchor.start.size > 0:
        crosses = view.crosses
        crosses[:] = 0.0
        for i in range(size):
            add_multiple(image[i], followed.columns[i], crosses)
    return start_width
