"""Kernel ridge regression: linear ridge regression in an orthonormal basis that grows with the observed points.

The basis is Newton's: observed points p₁ … p_u with k₀(P, P) = LLᵀ, coordinates c(x) = L⁻¹ k₀(P, x), and the squared
distance ρ(x) = k₀(x, x) − ‖c(x)‖² of what lies off their span. With V = λI + Σ ccᵀ (docs/theory/kernels.md)

    estimate = known part + <c, θ̂>,    width² = cᵀV⁻¹c + ρ/λ,    log det V/λᵘ = log det(I + K/λ)

    settings: λ, novelty, ℓ | R | B | log 1/δ | known at x₀, all (k,); a point with ρ ≤ novelty k(x, x) adds no
              basis point. The radius is one that needs neither L nor n
    memory:   a regression's tables (see `ridge`) of the coordinates c, with capacity n | `BasisPoints`
"""

import math
from typing import NamedTuple

from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.layout import FEATURES, KnownActions, ModelBlock, get_known_actions, tally_size
from stagewise.kernels.models.ridge import (
    ELSEWHERE,
    add_multiple,
    fill_image,
    get_ridge_assumptions,
    update_estimates,
    update_root,
)
from stagewise.kernels.models.similarity import (
    Covariance,
    build_covariance,
    compute_known_share,
    compute_residual_covariance,
    compute_residual_norm,
    compute_safe_covariance,
    evaluate_kernel,
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
def get_points_offset(block: ModelBlock) -> int:
    """Return the offset of the basis in the memory, after the regression's tables."""
    n, k = block.size, block.signals
    return block.memory + tally_size(k) + (n + k) * n + (n + k + 1) * block.width


@kernel
def get_basis_points(layout: Ints, block: ModelBlock, memory: Floats) -> BasisPoints:
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
def count_basis_points(block: ModelBlock, memory: Floats) -> int:
    """Return u, the number of basis points in use."""
    return int(memory[get_points_offset(block) + (block.size + 1) * block.width + USED])


@kernel
def get_neglected_norm(block: ModelBlock, memory: Floats) -> float:
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
    share, rest = (
        compute_known_share(covariance, safe_covariance),
        compute_residual_norm(covariance, action, safe_covariance),
    )
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
    block: ModelBlock,
    action: Floats,
    coordinates: Floats,
    residual: float,
    settings: Floats,
    memory: Floats,
) -> None:
    """Add a point with coordinates c and ρ > 0 to the basis: L gains the row (c, √ρ), T the row (0, 1/√λ).

    The new coordinate of a cached candidate x is (k₀(p, x) − <c(p), c(x)>)/√ρ(p).
    """
    basis, size, learned, rows = (
        get_basis_points(layout, block, memory),
        count_basis_points(block, memory),
        block.learned,
        block.rows,
    )
    forms = rows[block.size + block.signals]
    known = get_known_actions(layout, settings, memory)
    covariance = build_covariance(block, settings, known.safe)
    safe_covariance, pivot, unit = (
        compute_safe_covariance(covariance, action),
        math.sqrt(residual),
        1.0 / math.sqrt(settings[block.settings]),
    )
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
    layout: Ints,
    block: ModelBlock,
    action: Floats,
    cached_only: bool,
    values: Floats,
    settings: Floats,
    memory: Floats,
    work: Floats,
) -> None:
    """Learn the outcome (k,) of the action x; `work` is (3n + F + k,).

    A point outside the span joins the basis while there is capacity. Otherwise only its coordinates are used, and its ρ
    is added to what the radius accounts for. `cached_only`: T and θ̂ need not be updated (see `learn_ridge`).
    """
    n, k, size, width = block.size, block.signals, count_basis_points(block, memory), block.width
    basis, known = get_basis_points(layout, block, memory), get_ridge_assumptions(block, settings).known
    learned, rows = block.learned, block.rows
    actions = get_known_actions(layout, settings, memory)
    covariance = build_covariance(block, settings, actions.safe)
    pulls, others = work[:width], work[width:]
    coordinates, image, gain = others[:n], others[n : 2 * n], others[2 * n : 3 * n]
    errors = others[3 * n : 3 * n + k]
    cached_index, norm = (
        find_candidate(action, actions),
        evaluate_kernel(covariance.kind, covariance.lengthscale, action, action),
    )
    if cached_index >= 0:
        residual = basis.residuals[cached_index]
        for i in range(size):
            coordinates[i] = basis.cached_coordinates[i, cached_index]
            image[i] = rows[i, cached_index]
        for signal in range(k):
            errors[signal] = values[signal] - rows[n + signal, cached_index]
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
