"""What a kernel regression says of many candidates at once, and of the safe action."""

import math

from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.look import BLOCK, View, add_products, squared_widths
from stagewise.kernels.newton import Space, fill_space_radii, used
from stagewise.kernels.reproducing import share_of_known, unknown, unknown_norm


def look_size(room: int) -> int:
    """Return the length of the scratch array."""
    return (room + 3) * BLOCK


@kernel
def gather(features: Floats, space: Space, first: int, last: int, columns: Floats, rest: Floats, view: View) -> None:
    """Write k₀(P, x), k₀(x, x) and the known part of the estimates for candidates `first` to `last`, side by side."""
    basis, covariance = space.basis, space.covariance
    for candidate in range(first, last):
        action, lane = features[candidate], candidate - first
        share = share_of_known(covariance, action)
        rest[lane] = unknown_norm(covariance, action, share)
        for i in range(used(space)):
            columns[i * BLOCK + lane] = unknown(covariance, action, share, basis.points[i], basis.ties[i])
        for signal in range(space.known.size):
            view.estimates[signal, candidate] = share * space.known[signal]


@kernel
def substitute(root: Floats, columns: Floats, rest: Floats) -> None:
    """Turn k₀(P, x) into c = L⁻¹ k₀(P, x) in place, and k₀(x, x) into ρ, four columns of L at a time."""
    for i in range(root.shape[0]):
        row, target, j = root[i], columns[i * BLOCK : (i + 1) * BLOCK], 0
        while j + 4 <= i:
            a, b, c, d = row[j], row[j + 1], row[j + 2], row[j + 3]
            first, second = columns[j * BLOCK : (j + 1) * BLOCK], columns[(j + 1) * BLOCK : (j + 2) * BLOCK]
            third, fourth = columns[(j + 2) * BLOCK : (j + 3) * BLOCK], columns[(j + 3) * BLOCK : (j + 4) * BLOCK]
            for lane in range(rest.size):
                target[lane] -= a * first[lane] + b * second[lane] + c * third[lane] + d * fourth[lane]
            j += 4
        while j < i:
            factor, other = row[j], columns[j * BLOCK : (j + 1) * BLOCK]
            for lane in range(rest.size):
                target[lane] -= factor * other[lane]
            j += 1
        pivot = row[i]
        for lane in range(rest.size):
            value = target[lane] / pivot
            target[lane] = value
            rest[lane] -= value * value


@kernel
def look_afresh(features: Floats, space: Space, view: View, work: Floats) -> None:
    """Fill the view of any candidates; `work` is (look_size(u),)."""
    size, count, first = used(space), features.shape[0], 0
    columns, lanes = work[: size * BLOCK], work[size * BLOCK : (size + 3) * BLOCK]
    while first < count:
        last = min(first + BLOCK, count)
        rest, widths = lanes[: last - first], view.widths[first:last]
        gather(features, space, first, last, columns, rest, view)
        substitute(space.basis.root[:size], columns, rest)
        if size == space.covariance.rank:
            rest[:] = 0.0
        for signal in range(space.known.size):
            add_products(space.ridge.fits[signal, :size], columns, view.estimates[signal, first:last])
        part, other, nothing = lanes[BLOCK : 2 * BLOCK], lanes[2 * BLOCK :], lanes[:0]
        squared_widths(space.ridge.root[:size], columns, widths, part, other, nothing, nothing)
        for lane in range(rest.size):
            widths[lane] = math.sqrt(widths[lane] + max(rest[lane], 0.0) / space.belief.ridge)
        first = last


@kernel
def width_of(space: Space, candidate: int) -> float:
    """Return √(cᵀV⁻¹c + ρ/λ) of a followed candidate."""
    return math.sqrt(space.followed.forms[candidate] + space.residuals[candidate] / space.belief.ridge)


@kernel
def look(features: Floats, known: bool, space: Space, view: View, work: Floats) -> float:
    """Fill the view and return the width at the safe action; `known`: these candidates are followed."""
    safe, estimates = space.residuals.size - 1, space.followed.estimates
    fill_space_radii(space, view.radii)
    for signal in range(space.known.size):
        view.start[signal] = estimates[signal, safe]
    if known:
        for signal in range(space.known.size):
            for candidate in range(safe):
                view.estimates[signal, candidate] = estimates[signal, candidate]
        for candidate in range(safe):
            view.widths[candidate] = width_of(space, candidate)
    else:
        look_afresh(features, space, view, work)
    return width_of(space, safe)
