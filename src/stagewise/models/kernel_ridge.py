"""Kernel ridge regression: linear ridge regression in an orthonormal basis that grows with the observed points.

The basis is Newton's: observed points p₁ … p_u with k₀(P, P) = LLᵀ, coordinates c(x) = L⁻¹ k₀(P, x), and the squared
distance ρ(x) = k₀(x, x) − ‖c(x)‖² of what lies off their span. With V = λI + Σ ccᵀ (docs/theory/kernels.md)

    estimate = known part + <c, θ̂>,    width² = cᵀV⁻¹c + ρ/λ,    log det V/λᵘ = log det(I + K/λ)

    settings: λ, novelty, ℓ | R | B | log 1/δ | known at x₀, all (k,); a point with ρ ≤ novelty k(x, x) adds no
              basis point. The radius is one that needs neither L nor n
    memory:   a regression's tables (see `ridge`) of the coordinates c, with capacity n | `BasisPoints`
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python, kernel
from stagewise.engine.layout import (
    CACHED,
    CAPACITY,
    ELSEWHERE,
    FEATURES,
    MODEL_BLOCKS,
    KnownActions,
    get_known_actions,
    get_model_block,
    pad_to_vector,
    read_block_fields,
)
from stagewise.engine.model import Model
from stagewise.engine.workspace import BLOCK, CENTRE, is_same_action
from stagewise.models.diagnostics import (
    Evidence,
    ModelDiagnostics,
    build_evidence,
    check_regression,
    record_safe_outcome,
)
from stagewise.models.model_block import ModelBlockSpec, RegressionModel, build_known_values, split_regressions
from stagewise.models.regression import (
    JOINT,
    Regression,
    add_multiple,
    add_products,
    build_regression,
    fill_half_widths,
    fill_image,
    fill_squared_widths,
    get_ridge_assumptions,
    tally_size,
    update_estimates,
    update_root,
)
from stagewise.models.similarity import (
    Covariance,
    Kernel,
    build_covariance,
    compute_known_share,
    compute_residual_covariance,
    compute_residual_norm,
    compute_safe_covariance,
    evaluate_kernel,
    similarity,
)

ROUNDING = 1e-14  # of k(x, x): a point this near to the span lies in it within double precision
USED, NEGLECTED = 0, 1  # u, and Σρ of the observations whose part outside the span was neglected


class BasisPoints(NamedTuple):
    """The points p₁ … p_u that span what was learned, the cached candidates' coordinates, and unused capacity."""

    cached_coordinates: Floats  # (n, F) the coordinates c of cached candidates, the safe action last
    residuals: Floats  # (F,) their ρ
    sums: Floats  # (2,) USED and NEGLECTED
    points: Floats  # (n, d)
    safe_covariances: Floats  # (n,) k(x₀, p)
    root: Floats  # (n, n) L, lower triangular


@kernel
def get_points_offset(block: Regression) -> int:
    """Return the offset of the basis in the memory, after the regression's tables."""
    n, k = block.size, block.signals
    return block.memory + tally_size(k) + (n + k) * n + (n + k + 1) * block.width


@kernel
def get_basis_points(layout: Ints, block: Regression, memory: Floats) -> BasisPoints:
    """Return the basis of a block, as views of the memory."""
    n, d, cached_coordinates = block.size, layout[FEATURES], get_points_offset(block)
    residuals = cached_coordinates + n * block.width
    sums = residuals + block.width
    points = sums + 2
    safe_covariances = points + n * d
    root = safe_covariances + n
    return BasisPoints(
        memory[cached_coordinates:residuals].reshape(n, block.width), memory[residuals:sums], memory[sums:points],
        memory[points:safe_covariances].reshape(n, d), memory[safe_covariances:root],
        memory[root : root + n * n].reshape(n, n),
    )  # fmt: skip


@kernel
def count_basis_points(block: Regression, memory: Floats) -> int:
    """Return u, the number of basis points in use."""
    return int(memory[get_points_offset(block) + (block.size + 1) * block.width + USED])


@kernel
def get_neglected_norm(block: Regression, memory: Floats) -> float:
    """Return √Σρ of what was neglected."""
    return math.sqrt(memory[get_points_offset(block) + (block.size + 1) * block.width + NEGLECTED])


@kernel
def find_candidate(action: Floats, known: KnownActions) -> int:
    """Return the first cached candidate that equals this action to the bit, the safe action last, or ELSEWHERE."""
    count = known.cached.shape[0]
    for candidate in range(count + 1):
        equal = True
        for i in range(action.size):
            other = known.cached[candidate, i] if candidate < count else known.safe[i]
            if other != action[i]:
                equal = False
                break
        if equal:
            return candidate
    return ELSEWHERE


@kernel
def compute_coordinates(
    covariance: Covariance, basis: BasisPoints, action: Floats, safe_covariance: float, coordinates: Floats
) -> float:
    """Write c(x) = L⁻¹ k₀(P, x), and return ρ(x)."""
    share = compute_known_share(covariance, safe_covariance)
    rest = compute_residual_norm(covariance, action, safe_covariance)
    for i in range(coordinates.size):
        value = compute_residual_covariance(covariance, action, share, basis.points[i], basis.safe_covariances[i])
        for j in range(i):
            value -= basis.root[i, j] * coordinates[j]
        value /= basis.root[i, i]
        coordinates[i] = value
        rest -= value * value
    return 0.0 if coordinates.size == covariance.rank else max(rest, 0.0)


@kernel
def add_basis_point(
    layout: Ints,
    block: Regression,
    action: Floats,
    coordinates: Floats,
    residual: float,
    settings: Floats,
    memory: Floats,
) -> None:
    """Add a point with coordinates c and ρ > 0 to the basis: L gains the row (c, √ρ), T the row (0, 1/√λ).

    The new coordinate of a cached candidate x is (k₀(p, x) − <c(p), c(x)>)/√ρ(p).
    """
    basis, size, learned = get_basis_points(layout, block, memory), count_basis_points(block, memory), block.learned
    rows = block.rows
    forms = rows[block.size + block.signals]
    known = get_known_actions(layout, settings, memory)
    covariance = build_covariance(block, settings, known.safe)
    safe_covariance, pivot = compute_safe_covariance(covariance, action), math.sqrt(residual)
    unit = 1.0 / math.sqrt(settings[block.settings])
    basis.sums[USED] += 1.0
    basis.safe_covariances[size] = safe_covariance
    for i in range(action.size):
        basis.points[size, i] = action[i]
    for i in range(size):
        basis.root[size, i] = coordinates[i]
    basis.root[size, size] = pivot
    learned[size, size] = unit  # the rest of its row, and of the fits, is still 0
    fresh = basis.cached_coordinates[size]
    for candidate in range(block.cached):
        other = known.cached[candidate] if candidate < block.cached - 1 else known.safe
        share = compute_known_share(covariance, compute_safe_covariance(covariance, other))
        fresh[candidate] = compute_residual_covariance(covariance, other, share, action, safe_covariance)
    for i in range(size):
        add_multiple(-coordinates[i], basis.cached_coordinates[i], fresh)
    for candidate in range(block.cached):
        value = fresh[candidate] / pivot
        fresh[candidate] = value
        rows[size, candidate] = value * unit
        forms[candidate] += value * unit * (value * unit)
        rest = basis.residuals[candidate] - value * value
        basis.residuals[candidate] = 0.0 if size + 1 == covariance.rank else max(rest, 0.0)


@kernel
def learn_kernel_ridge(
    layout: Ints, block: Regression, action: Floats, index: int, cached_index: int, step: float, cached_only: bool,
    values: Floats, settings: Floats, memory: Floats, work: Floats,
) -> None:  # fmt: skip
    """Learn the outcome (k,) of the action x; at the safe action it counts against the known values too.

    A point outside the span joins the basis while there is capacity. Otherwise only its coordinates are used, and its ρ
    is added to what the radius accounts for. `cached_only`: T and θ̂ need not be updated (see `learn_ridge`). `work`
    is (3n + F + k,).
    """
    n, k, size, width = block.size, block.signals, count_basis_points(block, memory), block.width
    basis, known = get_basis_points(layout, block, memory), get_ridge_assumptions(block, settings).known
    learned, rows = block.learned, block.rows
    actions = get_known_actions(layout, settings, memory)
    covariance = build_covariance(block, settings, actions.safe)
    pulls, others = work[:width], work[width:]
    coordinates, image, gain = others[:n], others[n : 2 * n], others[2 * n : 3 * n]
    errors = others[3 * n : 3 * n + k]
    at, norm = find_candidate(action, actions), evaluate_kernel(covariance.kind, covariance.lengthscale, action, action)
    if at >= 0:
        residual = basis.residuals[at]
        for i in range(size):
            coordinates[i] = basis.cached_coordinates[i, at]
            image[i] = rows[i, at]
        for signal in range(k):
            errors[signal] = values[signal] - rows[n + signal, at]
    else:
        safe_covariance = compute_safe_covariance(covariance, action)
        residual = compute_coordinates(covariance, basis, action, safe_covariance, coordinates[:size])
        fill_image(learned, coordinates[:size], image)
        for signal in range(k):
            error = values[signal] - compute_known_share(covariance, safe_covariance) * known[signal]
            for i in range(size):
                error -= learned[n + signal, i] * coordinates[i]
            errors[signal] = error
    if residual > settings[block.settings + 1] * norm and size < n:
        add_basis_point(layout, block, action, coordinates, residual, settings, memory)
        image[size] = math.sqrt(residual) * learned[size, size]
        size += 1
    elif residual > ROUNDING * norm:
        basis.sums[NEGLECTED] += residual
    after = update_root(learned, rows, image[:size], cached_only, gain, pulls)
    update_estimates(block, size, cached_only, after, errors, gain, pulls)
    if is_same_action(action, actions.safe):
        record_safe_outcome(block, settings, memory, values)


@kernel
def gather_kernel_columns(
    block: Regression, features: Floats, covariance: Covariance, known: Floats, basis: BasisPoints, size: int,
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
    layout: Ints, block: Regression, features: Floats, settings: Floats, memory: Floats, bounds: Floats, work: Floats
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
    layout: Ints, block: Regression, settings: Floats, memory: Floats, bounds: Floats, work: Floats
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


@kernel
def cache_kernel_ridge(
    layout: Ints, block: Regression, features: Floats, settings: Floats, memory: Floats, work: Floats
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
def copy_kernel_ridge(layout: Ints, old: Regression, new: Regression, memory: Floats, changed: Floats) -> None:
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
def copy_cached_candidates(layout: Ints, old: Regression, new: Regression, memory: Floats, changed: Floats) -> None:
    """Copy the cached values of the same candidates; recomputed ones would differ in the last bits."""
    n = old.size
    basis, other = get_basis_points(layout, old, memory), get_basis_points(layout, new, changed)
    copy_table(old.rows[:n], new.rows)
    copy_table(old.rows[n:], new.rows[new.size :])
    copy_table(basis.cached_coordinates, other.cached_coordinates)
    for candidate in range(old.cached):
        other.residuals[candidate] = basis.residuals[candidate]


NEGLECTED_NORM = as_python(get_neglected_norm)


class KernelRidgeDiagnostics(ModelDiagnostics):
    """Diagnostics of kernel ridge regression, where residuals may also come from what the basis leaves out."""

    checks_safe_value = True

    def tests_noise(self, block: Regression) -> bool:
        return True

    def get_evidence(self, block: Regression, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        return build_evidence(block, settings, signal, float(NEGLECTED_NORM(block, memory)))


@kernel
def view_kernel_ridge(layout: Ints, memory: Floats, index: int) -> Regression:
    """Return the regression of a block; the safe action is always cached."""
    block = get_model_block(layout, memory, index)
    return build_regression(block, int(memory[CAPACITY]), max(int(memory[CACHED]), 0) + 1, memory)


def kernel_ridge_size(layout: Ints, index: int, candidates: int, capacity: int) -> int:
    """Return the length of a block's memory."""
    k, width = read_block_fields(layout, index).signals, int(pad_to_vector(max(candidates, 0) + 1))
    basis = (capacity + 1) * width + 2 + capacity * (int(layout[FEATURES]) + 1 + capacity)
    return int(pad_to_vector(tally_size(k) + (capacity + k) * capacity + (capacity + k + 1) * width + basis))


@kernel
def start_kernel_ridge(layout: Ints, block: Regression, settings: Floats, memory: Floats, work: Floats) -> None:
    """Cache the safe action."""
    known = get_known_actions(layout, settings, memory)
    cache_kernel_ridge(layout, block, known.cached, settings, memory, work)


@kernel
def fill_kernel_ridge_bounds(
    layout: Ints, block: Regression, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    work: Floats,
) -> None:  # fmt: skip
    """Write the bounds of any candidates, and of the safe action; `known`: the candidates are cached."""
    if known:
        compute_cached_kernel_ridge_bounds(layout, block, settings, memory, bounds, work)
    else:
        compute_kernel_ridge_bounds(layout, block, features, settings, memory, bounds, work)


@kernel
def check_kernel_ridge(layout: Ints, block: Regression, settings: Floats, memory: Floats, bounds: Floats) -> int:
    """Return the code of a contradicted noise, or value at the safe action; 0: none."""
    return check_regression(block, settings, memory, get_neglected_norm(block, memory))


@kernel
def change_kernel_ridge(
    layout: Ints, old: Regression, new: Regression, features: Floats, settings: Floats, memory: Floats, changed: Floats,
    work: Floats,
) -> None:  # fmt: skip
    """Copy what was learned, and cache other candidates."""
    copy_kernel_ridge(layout, old, new, memory, changed)
    cache_kernel_ridge(layout, new, features, settings, changed, work)


@kernel
def widen_kernel_ridge(layout: Ints, old: Regression, new: Regression, memory: Floats, changed: Floats) -> None:
    """Copy what was learned and cached into a block with more capacity."""
    copy_kernel_ridge(layout, old, new, memory, changed)
    copy_cached_candidates(layout, old, new, memory, changed)


VIEW, COUNT_BASIS_POINTS = as_python(view_kernel_ridge), as_python(count_basis_points)
POINTS_OFFSET = as_python(get_points_offset)


def count_free_points(layout: Ints, memory: Floats, index: int, rows: Floats, values: Floats) -> int:
    """Return how many more basis points there is room for."""
    return int(memory[CAPACITY]) - int(COUNT_BASIS_POINTS(VIEW(layout, memory, index), memory))


def is_basis_valid(block: Regression, memory: Floats) -> bool:
    """Return whether the number of basis points is a number that there is room for."""
    used, neglected = memory[POINTS_OFFSET(block) + (block.size + 1) * block.width :][[USED, NEGLECTED]]
    return bool(used % 1.0 == 0.0 and 0.0 <= used <= memory[CAPACITY] and neglected >= 0.0)


KERNEL_RIDGE = Model(
    "stagewise.models.kernel_ridge:KERNEL_RIDGE", view_kernel_ridge, kernel_ridge_size, start_kernel_ridge,
    fill_kernel_ridge_bounds, check_kernel_ridge, learn_kernel_ridge, change_kernel_ridge, widen_kernel_ridge,
    diagnostics=KernelRidgeDiagnostics(), capacity="points", free_rows=count_free_points, is_valid=is_basis_valid,
)  # fmt: skip


def get_most_basis_points(layout: Ints, memory: Floats) -> int:
    """Return the largest number of basis points that a block of this memory uses."""
    return max(COUNT_BASIS_POINTS(VIEW(layout, memory, index), memory) for index in range(layout[MODEL_BLOCKS]))


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelModel(RegressionModel):
    """The assumptions about signals in a reproducing kernel's space."""

    kernel: Kernel
    novelty: float

    @property
    def safe_norm(self) -> float:
        """k(x₀, x₀); 0 where every function of the space vanishes."""
        return similarity(self.kernel, self.safe, self.safe)

    def build_blocks(self) -> Iterator[ModelBlockSpec]:
        """Yield the regressions; those that share one share a basis."""
        values = build_known_values(self.reward, self.costs, len(self.names))
        fixed, bounds = np.array([self.ridge, self.novelty, self.kernel.lengthscale]), self.learned_bounds()
        for first, last, known in split_regressions(len(self.names), self.reward is not None, self.costs is not None):
            declared = (self.noise, bounds, self.confidence, values if known else np.zeros(values.size))
            integers = (first, last - first, 0, JOINT, int(known), 0, self.kernel.kind, 0)
            yield ModelBlockSpec(
                KERNEL_RIDGE, integers, np.concatenate([fixed, *(row[first:last] for row in declared)])
            )

    def learned_bounds(self) -> Floats:
        """Return what B leaves for the learned part; the safe action's norm is √k(x₀, x₀)."""
        return self.compute_remaining_bounds(math.sqrt(self.safe_norm), "only functions of norm {} or more take there")
