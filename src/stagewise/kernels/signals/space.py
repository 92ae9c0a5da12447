"""Regression by a reproducing kernel: linear ridge regression in an orthonormal basis that grows with what is observed.

The basis is Newton's: observed points p₁ … p_u with k₀(P, P) = LLᵀ, coordinates c(x) = L⁻¹ k₀(P, x), and the squared
distance ρ(x) = k₀(x, x) − ‖c(x)‖² of what lies off their span. With V = λI + Σ ccᵀ (docs/theory/kernels.md)

    estimate = known part + <c, θ̂>,    width² = cᵀV⁻¹c + ρ/λ,    log det V/λᵘ = log det(I + K/λ)

    settings: λ, novelty, ℓ | R | B | log 1/δ | known at x₀, all (k,); a point with ρ ≤ novelty k(x, x) is not worth
              a basis point. The radius is one that needs neither L nor n
    memory:   a regression's tables (see `ridge`) of the coordinates c, with room for n of them | what is below
"""

import math
from typing import NamedTuple

from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.layout import FEATURES, Known, Part, known_actions, tally_size
from stagewise.kernels.signals.ridge import ELSEWHERE, add_multiple, declared_of_ridge, fill_image, move, settle
from stagewise.kernels.signals.similarity import (
    Covariance,
    covariance_of,
    share_of_known,
    similarity,
    tie_to_safe,
    unknown,
    unknown_norm,
)

ROUNDING = 1e-14  # of k(x, x): a point this near to the span lies in it, as far as double precision can tell
USED, NEGLECTED = 0, 1  # u, and Σρ over the observations whose part off the span was neglected


class Points(NamedTuple):
    """The points p₁ … p_u that span what was learned, where the followed candidates lie, and room for more points."""

    places: Floats  # (n, F) the coordinates c of what is followed, the safe action last,
    residuals: Floats  # (F,) and ρ
    sums: Floats  # (2,) USED and NEGLECTED
    points: Floats  # (n, d)
    ties: Floats  # (n,) k(x₀, p)
    root: Floats  # (n, n) L, lower triangular


@kernel
def points_at(part: Part) -> int:
    """Return where the basis begins in the memory: behind the regression's tables."""
    n, k = part.size, part.signals
    return part.memory + tally_size(k) + (n + k) * n + (n + k + 1) * part.width


@kernel
def points_of(layout: Ints, part: Part, memory: Floats) -> Points:
    """Return the basis of a part, as views of the memory."""
    n, d, places = part.size, layout[FEATURES], points_at(part)
    residuals = places + n * part.width
    sums = residuals + part.width
    points = sums + 2
    ties = points + n * d
    root = ties + n
    return Points(
        memory[places:residuals].reshape(n, part.width), memory[residuals:sums], memory[sums:points],
        memory[points:ties].reshape(n, d), memory[ties:root], memory[root : root + n * n].reshape(n, n),
    )  # fmt: skip


@kernel
def used_in(part: Part, memory: Floats) -> int:
    """Return u, how many points of the basis are used."""
    return int(memory[points_at(part) + (part.size + 1) * part.width + USED])


@kernel
def neglected_in(part: Part, memory: Floats) -> float:
    """Return √Σρ of what was neglected."""
    return math.sqrt(memory[points_at(part) + (part.size + 1) * part.width + NEGLECTED])


@kernel
def candidate_of(action: Floats, known: Known) -> int:
    """Return the first candidate that is this action to the bit, the safe action last of all, or ELSEWHERE."""
    count = known.followed.shape[0]
    for candidate in range(count + 1):
        equal = True
        for i in range(action.size):
            other = known.followed[candidate, i] if candidate < count else known.safe[i]
            if other != action[i]:
                equal = False
                break
        if equal:
            return candidate
    return ELSEWHERE


@kernel
def locate(covariance: Covariance, basis: Points, action: Floats, tie: float, coordinates: Floats) -> float:
    """Write c(x) = L⁻¹ k₀(P, x), and return ρ(x)."""
    share, rest = share_of_known(covariance, tie), unknown_norm(covariance, action, tie)
    for i in range(coordinates.size):
        value = unknown(covariance, action, share, basis.points[i], basis.ties[i])
        for j in range(i):
            value -= basis.root[i, j] * coordinates[j]
        value /= basis.root[i, i]
        coordinates[i] = value
        rest -= value * value
    return 0.0 if coordinates.size == covariance.rank else max(rest, 0.0)


@kernel
def add_point(
    layout: Ints, part: Part, action: Floats, coordinates: Floats, residual: float, settings: Floats, memory: Floats
) -> None:
    """Take a point with coordinates c and ρ > 0 into the basis: L gains the row (c, √ρ), T the row (0, 1/√λ).

    The new coordinate of a followed candidate x is (k₀(p, x) − <c(p), c(x)>)/√ρ(p).
    """
    basis, size, learned, rows = points_of(layout, part, memory), used_in(part, memory), part.learned, part.rows
    forms = rows[part.size + part.signals]
    known = known_actions(layout, settings, memory)
    covariance = covariance_of(part, settings, known.safe)
    tie, pivot, unit = tie_to_safe(covariance, action), math.sqrt(residual), 1.0 / math.sqrt(settings[part.settings])
    basis.sums[USED] += 1.0
    basis.ties[size] = tie
    for i in range(action.size):
        basis.points[size, i] = action[i]
    for i in range(size):
        basis.root[size, i] = coordinates[i]
    basis.root[size, size] = pivot
    learned[size, size] = unit  # the rest of its row, and of the fits, is still 0
    fresh = basis.places[size]
    for candidate in range(part.followed):
        other = known.followed[candidate] if candidate < part.followed - 1 else known.safe
        share = share_of_known(covariance, tie_to_safe(covariance, other))
        fresh[candidate] = unknown(covariance, other, share, action, tie)
    for i in range(size):
        add_multiple(-coordinates[i], basis.places[i], fresh)
    for candidate in range(part.followed):
        value = fresh[candidate] / pivot
        fresh[candidate] = value
        rows[size, candidate] = value * unit
        forms[candidate] += value * unit * (value * unit)
        rest = basis.residuals[candidate] - value * value
        basis.residuals[candidate] = 0.0 if size + 1 == covariance.rank else max(rest, 0.0)


@kernel
def learn_space(
    layout: Ints, part: Part, action: Floats, lean: bool, values: Floats, settings: Floats, memory: Floats, work: Floats
) -> None:
    """Take in what was seen (k,) when the action x was played; `work` is (3n + F + k,).

    A point off the span joins the basis while there is room. Otherwise it is learned from by its coordinates alone, and
    its ρ is added to what the radius pays for. `lean`: T and θ̂ need not be kept (see `learn_ridge`).
    """
    n, k, size, width = part.size, part.signals, used_in(part, memory), part.width
    basis, known = points_of(layout, part, memory), declared_of_ridge(part, settings).known
    learned, rows = part.learned, part.rows
    actions = known_actions(layout, settings, memory)
    covariance = covariance_of(part, settings, actions.safe)
    pulls, others = work[:width], work[width:]
    coordinates, image, gain = others[:n], others[n : 2 * n], others[2 * n : 3 * n]
    surprises = others[3 * n : 3 * n + k]
    place, norm = candidate_of(action, actions), similarity(covariance.kind, covariance.lengthscale, action, action)
    if place >= 0:
        residual = basis.residuals[place]
        for i in range(size):
            coordinates[i] = basis.places[i, place]
            image[i] = rows[i, place]
        for signal in range(k):
            surprises[signal] = values[signal] - rows[n + signal, place]
    else:
        tie = tie_to_safe(covariance, action)
        residual = locate(covariance, basis, action, tie, coordinates[:size])
        fill_image(learned, coordinates[:size], image)
        for signal in range(k):
            surprise = values[signal] - share_of_known(covariance, tie) * known[signal]
            for i in range(size):
                surprise -= learned[n + signal, i] * coordinates[i]
            surprises[signal] = surprise
    if residual > settings[part.settings + 1] * norm and size < n:
        add_point(layout, part, action, coordinates, residual, settings, memory)
        image[size] = math.sqrt(residual) * learned[size, size]
        size += 1
    elif residual > ROUNDING * norm:
        basis.sums[NEGLECTED] += residual
    after = move(learned, rows, image[:size], lean, gain, pulls)
    settle(part, size, lean, after, surprises, gain, pulls)
