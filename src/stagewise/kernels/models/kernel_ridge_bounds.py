"""Bounds of kernel ridge regression for many candidates at once, and for the safe action."""

from stagewise.kernels.bounds import CENTRE
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.layout import ModelBlock, get_known_actions
from stagewise.kernels.models.kernel_ridge import BasisPoints, count_basis_points, get_basis_points, get_neglected_norm
from stagewise.kernels.models.ridge import get_ridge_assumptions
from stagewise.kernels.models.ridge_bounds import BLOCK, add_products, fill_half_widths, fill_squared_widths
from stagewise.kernels.models.similarity import (
    Covariance,
    build_covariance,
    compute_known_share,
    compute_residual_covariance,
    compute_residual_norm,
    compute_safe_covariance,
)


@kernel
def gather_kernel_columns(
    block: ModelBlock, features: Floats, covariance: Covariance, known: Floats, basis: BasisPoints, size: int,
    first: int, last: int, columns: Floats, rest: Floats, bounds: Floats,
) -> None:  # fmt: skip
    """Write k₀(P, x), k₀(x, x) and the known part of the estimates for candidates `first` to `last`, in columns."""
    for candidate in range(first, last):
        action, lane = features[candidate], candidate - first
        safe_covariance = compute_safe_covariance(covariance, action)
        share = compute_known_share(covariance, safe_covariance)
        rest[lane] = compute_residual_norm(covariance, action, safe_covariance)
        for i in range(size):
            columns[i * BLOCK + lane] = compute_residual_covariance(
                covariance, action, share, basis.points[i], basis.safe_covariances[i]
            )
        for signal in range(block.signals):
            bounds[block.first + signal, CENTRE, candidate] = share * known[signal]


@kernel
def forward_substitute(size: int, root: Floats, columns: Floats, rest: Floats) -> None:
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
def compute_kernel_ridge_bounds(
    layout: Ints, block: ModelBlock, features: Floats, settings: Floats, memory: Floats, bounds: Floats, work: Floats
) -> None:
    """Write the bounds of candidates, and of the safe action, which is always cached; `work` is (bounds_work_size,)."""
    size, count, first, ridge = count_basis_points(block, memory), features.shape[0], 0, settings[block.settings]
    basis, known = get_basis_points(layout, block, memory), get_ridge_assumptions(block, settings).known
    learned, rows = block.learned, block.rows
    covariance = build_covariance(block, settings, get_known_actions(layout, settings, memory).safe)
    row, safe = count + 1, block.cached - 1
    forms, crosses, columns = work[:row], work[row : 2 * row], work[2 * row : 2 * row + size * BLOCK]
    scratch = work[2 * row + size * BLOCK :]
    lanes, lane_sums = scratch[:BLOCK], scratch[BLOCK : 3 * BLOCK]
    while first < count:
        last = min(first + BLOCK, count)
        rest, widths = lanes[: last - first], forms[first:last]
        gather_kernel_columns(block, features, covariance, known, basis, size, first, last, columns, rest, bounds)
        forward_substitute(size, basis.root, columns, rest)
        if size == covariance.rank:
            rest[:] = 0.0
        for signal in range(block.signals):
            fit = learned[block.size + signal, :size]
            add_products(fit, columns, bounds[block.first + signal, CENTRE, first:last])
        fill_squared_widths(size, learned, columns, widths, crosses[:0], crosses[:0], lane_sums)
        for lane in range(rest.size):
            widths[lane] += max(rest[lane], 0.0) / ridge
        first = last
    forms[count] = rows[block.size + block.signals, safe] + basis.residuals[safe] / ridge
    for signal in range(block.signals):
        bounds[block.first + signal, CENTRE, count] = rows[block.size + signal, safe]
    crosses[:] = 0.0  # rays are not curved: points between two are not mixtures of them
    fill_half_widths(block, settings, get_neglected_norm(block, memory), forms, crosses, bounds)


@kernel
def compute_cached_kernel_ridge_bounds(
    layout: Ints, block: ModelBlock, settings: Floats, memory: Floats, bounds: Floats, work: Floats
) -> None:
    """Write the bounds of the cached candidates, and of the safe action; `work` is (2 (K + 1),)."""
    n, k, row, ridge = block.size, block.signals, block.cached, settings[block.settings]
    rows, residuals = block.rows, get_basis_points(layout, block, memory).residuals
    forms, crosses, kept = work[:row], work[row : 2 * row], rows[n + k]
    for signal in range(k):
        centre, estimates = bounds[block.first + signal, CENTRE], rows[n + signal]
        for candidate in range(row):
            centre[candidate] = estimates[candidate]
    for candidate in range(row):
        forms[candidate] = kept[candidate] + residuals[candidate] / ridge
    crosses[:] = 0.0
    fill_half_widths(block, settings, get_neglected_norm(block, memory), forms, crosses, bounds)
