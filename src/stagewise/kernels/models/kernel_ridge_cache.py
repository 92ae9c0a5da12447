"""Cached candidates of kernel ridge regression, and copies with more capacity."""

from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.layout import ModelBlock, get_known_actions
from stagewise.kernels.models.kernel_ridge import compute_coordinates, count_basis_points, get_basis_points
from stagewise.kernels.models.ridge import fill_image, get_ridge_assumptions
from stagewise.kernels.models.similarity import build_covariance, compute_known_share, compute_safe_covariance


@kernel
def cache_kernel_ridge(
    layout: Ints, block: ModelBlock, features: Floats, settings: Floats, memory: Floats, work: Floats
) -> None:
    """Write the cached values of K candidates and of the safe action; `work` is (2u,)."""
    n, k, count, size = block.size, block.signals, features.shape[0], count_basis_points(block, memory)
    learned, rows = block.learned, block.rows
    basis, known = get_basis_points(layout, block, memory), get_ridge_assumptions(block, settings).known
    safe = get_known_actions(layout, settings, memory).safe
    covariance, coordinates, image = build_covariance(block, settings, safe), work[:size], work[size : 2 * size]
    for candidate in range(count + 1):
        action, form = features[candidate] if candidate < count else safe, 0.0
        safe_covariance = compute_safe_covariance(covariance, action)
        basis.residuals[candidate] = compute_coordinates(covariance, basis, action, safe_covariance, coordinates)
        fill_image(learned, coordinates, image)
        for i in range(size):
            basis.cached_coordinates[i, candidate] = coordinates[i]
            rows[i, candidate] = image[i]
            form += image[i] * image[i]
        rows[n + k, candidate] = form
        for signal in range(k):
            total = compute_known_share(covariance, safe_covariance) * known[signal]
            for i in range(size):
                total += learned[n + signal, i] * coordinates[i]
            rows[n + signal, candidate] = total


@kernel
def copy_table(source: Floats, target: Floats) -> None:
    """Copy a table into the upper left corner of one that is as large or larger."""
    for row in range(source.shape[0]):
        for i in range(source.shape[1]):
            target[row, i] = source[row, i]


@kernel
def copy_kernel_ridge(layout: Ints, old: ModelBlock, new: ModelBlock, memory: Floats, changed: Floats) -> None:
    """Copy what was learned into a block with as much capacity or more."""
    basis, other, n = get_basis_points(layout, old, memory), get_basis_points(layout, new, changed), old.size
    for i in range(old.tally.size):
        new.tally[i] = old.tally[i]
    copy_table(old.learned[:n], new.learned)
    copy_table(old.learned[n:], new.learned[new.size :])
    for i in range(basis.sums.size):
        other.sums[i] = basis.sums[i]
    copy_table(basis.points, other.points)
    for i in range(n):
        other.safe_covariances[i] = basis.safe_covariances[i]
    copy_table(basis.root, other.root)


@kernel
def copy_cached_candidates(layout: Ints, old: ModelBlock, new: ModelBlock, memory: Floats, changed: Floats) -> None:
    """Copy the cached values of the same candidates; recomputed ones would differ in the last bits."""
    n = old.size
    basis, other = get_basis_points(layout, old, memory), get_basis_points(layout, new, changed)
    copy_table(old.rows[:n], new.rows)
    copy_table(old.rows[n:], new.rows[new.size :])
    copy_table(basis.cached_coordinates, other.cached_coordinates)
    for candidate in range(old.cached):
        other.residuals[candidate] = basis.residuals[candidate]
