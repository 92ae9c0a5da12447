"""What is kept of candidates that come back, in a regression by a reproducing kernel; and the same with more room."""

from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.layout import Part, known_actions
from stagewise.kernels.signals.ridge import declared_of_ridge, fill_image
from stagewise.kernels.signals.similarity import covariance_of, share_of_known, tie_to_safe
from stagewise.kernels.signals.space import locate, points_of, used_in


@kernel
def follow_space(layout: Ints, part: Part, features: Floats, settings: Floats, memory: Floats, work: Floats) -> None:
    """Write what is kept of K candidates and of the safe action from now on; `work` is (2u,)."""
    n, k, count, size = part.size, part.signals, features.shape[0], used_in(part, memory)
    learned, rows = part.learned, part.rows
    basis, known = points_of(layout, part, memory), declared_of_ridge(part, settings).known
    safe = known_actions(layout, settings, memory).safe
    covariance, coordinates, image = covariance_of(part, settings, safe), work[:size], work[size : 2 * size]
    for candidate in range(count + 1):
        action, form = features[candidate] if candidate < count else safe, 0.0
        tie = tie_to_safe(covariance, action)
        basis.residuals[candidate] = locate(covariance, basis, action, tie, coordinates)
        fill_image(learned, coordinates, image)
        for i in range(size):
            basis.places[i, candidate] = coordinates[i]
            rows[i, candidate] = image[i]
            form += image[i] * image[i]
        rows[n + k, candidate] = form
        for signal in range(k):
            total = share_of_known(covariance, tie) * known[signal]
            for i in range(size):
                total += learned[n + signal, i] * coordinates[i]
            rows[n + signal, candidate] = total


@kernel
def copy_table(source: Floats, target: Floats) -> None:
    """Copy a table into the corner of one that is as large, or larger."""
    for row in range(source.shape[0]):
        for i in range(source.shape[1]):
            target[row, i] = source[row, i]


@kernel
def copy_space(layout: Ints, old: Part, new: Part, memory: Floats, changed: Floats) -> None:
    """Copy what was learned, into a part with as much room or more."""
    basis, other, n = points_of(layout, old, memory), points_of(layout, new, changed), old.size
    for i in range(old.tally.size):
        new.tally[i] = old.tally[i]
    copy_table(old.learned[:n], new.learned)
    copy_table(old.learned[n:], new.learned[new.size :])
    for i in range(basis.sums.size):
        other.sums[i] = basis.sums[i]
    copy_table(basis.points, other.points)
    for i in range(n):
        other.ties[i] = basis.ties[i]
    copy_table(basis.root, other.root)


@kernel
def copy_followed(layout: Ints, old: Part, new: Part, memory: Floats, changed: Floats) -> None:
    """Copy what is kept of the same candidates: made again it would not be the same to the bit."""
    n = old.size
    basis, other = points_of(layout, old, memory), points_of(layout, new, changed)
    copy_table(old.rows[:n], new.rows)
    copy_table(old.rows[n:], new.rows[new.size :])
    copy_table(basis.places, other.places)
    for candidate in range(old.followed):
        other.residuals[candidate] = basis.residuals[candidate]
