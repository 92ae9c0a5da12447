"""What a regression by a reproducing kernel says of many candidates at once, and of the safe action: their bounds."""

from stagewise.kernels.bounds import CENTRE
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.layout import Part, known_actions
from stagewise.kernels.signals.look import BLOCK, add_products, fill_halves, squared_widths
from stagewise.kernels.signals.ridge import declared_of_ridge
from stagewise.kernels.signals.similarity import (
    Covariance,
    covariance_of,
    share_of_known,
    tie_to_safe,
    unknown,
    unknown_norm,
)
from stagewise.kernels.signals.space import Points, neglected_in, points_of, used_in


@kernel
def gather_space(
    part: Part, features: Floats, covariance: Covariance, known: Floats, basis: Points, size: int, first: int,
    last: int, columns: Floats, rest: Floats, bounds: Floats,
) -> None:  # fmt: skip
    """Write k₀(P, x), k₀(x, x) and the known part of the estimates for candidates `first` to `last`, side by side."""
    for candidate in range(first, last):
        action, lane = features[candidate], candidate - first
        tie = tie_to_safe(covariance, action)
        share = share_of_known(covariance, tie)
        rest[lane] = unknown_norm(covariance, action, tie)
        for i in range(size):
            columns[i * BLOCK + lane] = unknown(covariance, action, share, basis.points[i], basis.ties[i])
        for signal in range(part.signals):
            bounds[part.first + signal, CENTRE, candidate] = share * known[signal]


@kernel
def substitute(size: int, root: Floats, columns: Floats, rest: Floats) -> None:
    """Turn k₀(P, x) into c = L⁻¹ k₀(P, x) in place, and k₀(x, x) into ρ, four columns of L at a time."""
    for i in range(size):
        target, j = columns[i * BLOCK : (i + 1) * BLOCK], 0
        while j + 4 <= i:
            a, b, c, d = root[i, j], root[i, j + 1], root[i, j + 2], root[i, j + 3]
            first, second = columns[j * BLOCK : (j + 1) * BLOCK], columns[(j + 1) * BLOCK : (j + 2) * BLOCK]
            third, fourth = columns[(j + 2) * BLOCK : (j + 3) * BLOCK], columns[(j + 3) * BLOCK : (j + 4) * BLOCK]
            for lane in range(rest.size):
                target[lane] -= a * first[lane] + b * second[lane] + c * third[lane] + d * fourth[lane]
            j += 4
        while j < i:
            factor, other = root[i, j], columns[j * BLOCK : (j + 1) * BLOCK]
            for lane in range(rest.size):
                target[lane] -= factor * other[lane]
            j += 1
        pivot = root[i, i]
        for lane in range(rest.size):
            value = target[lane] / pivot
            target[lane] = value
            rest[lane] -= value * value


@kernel
def look_space(
    layout: Ints, part: Part, features: Floats, settings: Floats, memory: Floats, bounds: Floats, work: Floats
) -> None:
    """Write the bounds of any candidates, and of the safe action, which is always followed; `work` is (look_size,)."""
    size, count, first, ridge = used_in(part, memory), features.shape[0], 0, settings[part.settings]
    basis, known = points_of(layout, part, memory), declared_of_ridge(part, settings).known
    learned, rows = part.learned, part.rows
    covariance = covariance_of(part, settings, known_actions(layout, settings, memory).safe)
    row, safe = count + 1, part.followed - 1
    forms, crosses, columns = work[:row], work[row : 2 * row], work[2 * row : 2 * row + size * BLOCK]
    scratch = work[2 * row + size * BLOCK :]
    lanes, parts = scratch[:BLOCK], scratch[BLOCK : 3 * BLOCK]
    while first < count:
        last = min(first + BLOCK, count)
        rest, widths = lanes[: last - first], forms[first:last]
        gather_space(part, features, covariance, known, basis, size, first, last, columns, rest, bounds)
        substitute(size, basis.root, columns, rest)
        if size == covariance.rank:
            rest[:] = 0.0
        for signal in range(part.signals):
            fit = learned[part.size + signal, :size]
            add_products(fit, columns, bounds[part.first + signal, CENTRE, first:last])
        squared_widths(size, learned, columns, widths, crosses[:0], crosses[:0], parts)
        for lane in range(rest.size):
            widths[lane] += max(rest[lane], 0.0) / ridge
        first = last
    forms[count] = rows[part.size + part.signals, safe] + basis.residuals[safe] / ridge
    for signal in range(part.signals):
        bounds[part.first + signal, CENTRE, count] = rows[part.size + signal, safe]
    crosses[:] = 0.0  # no ray is bent: points between two are no mixtures of them
    fill_halves(part, settings, neglected_in(part, memory), forms, crosses, bounds)


@kernel
def recall_space(layout: Ints, part: Part, settings: Floats, memory: Floats, bounds: Floats, work: Floats) -> None:
    """Write the bounds of the followed candidates, and of the safe action; `work` is (2 (K + 1),)."""
    n, k, row, ridge = part.size, part.signals, part.followed, settings[part.settings]
    rows, residuals = part.rows, points_of(layout, part, memory).residuals
    forms, crosses, kept = work[:row], work[row : 2 * row], rows[n + k]
    for signal in range(k):
        centre, estimates = bounds[part.first + signal, CENTRE], rows[n + signal]
        for candidate in range(row):
            centre[candidate] = estimates[candidate]
    for candidate in range(row):
        forms[candidate] = kept[candidate] + residuals[candidate] / ridge
    crosses[:] = 0.0
    fill_halves(part, settings, neglected_in(part, memory), forms, crosses, bounds)
