"""Kernel ridge regression as linear ridge regression in an orthonormal basis that grows with what is observed.

The basis is Newton's: observed points p₁ … p_u with k₀(P, P) = LLᵀ, coordinates c(x) = L⁻¹ k₀(P, x), and the squared
distance ρ(x) = k₀(x, x) − ‖c(x)‖² of what lies off their span. With V = λI + Σ ccᵀ (docs/theory/kernels.md)

    estimate = known part + <c, θ̂>,    width² = cᵀV⁻¹c + ρ/λ,    log det V/λᵘ = log det(I + K/λ)
"""

import math
from typing import NamedTuple

from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.radius import Belief, fill_radii
from stagewise.kernels.reproducing import (
    Covariance,
    own_norm,
    share_of_known,
    tie_to_safe,
    unknown,
    unknown_norm,
)
from stagewise.kernels.ridge import ELSEWHERE, Followed, Ridge, add_multiple, fill_image, move, note_square

ROUNDING = 1e-14  # of k(x, x): a point this near to the span lies in it, as far as double precision can tell


class Basis(NamedTuple):
    """The points p₁ … p_u that span what was learned; there is room for more."""

    size: Floats  # (2,) u, and Σρ over the observations whose part off the span was neglected
    points: Floats  # (room, d)
    ties: Floats  # (room,) k(x₀, p)
    root: Floats  # (room, room) L, lower triangular


class Space(NamedTuple):
    """A model of k signals in one reproducing-kernel space. The last followed candidate is always the safe action."""

    covariance: Covariance
    tolerance: float  # a point with ρ(x) ≤ tolerance · k(x, x) is not worth a basis point
    belief: Belief
    known: Floats  # (k,) the signals at x₀; zero where unknown
    basis: Basis
    ridge: Ridge  # of the coordinates
    candidates: Floats  # (F, d) what is followed
    places: Floats  # (room, F) their coordinates c,
    followed: Followed  # their Tc, estimates and cᵀV⁻¹c,
    residuals: Floats  # (F,) and their ρ


@kernel
def used(space: Space) -> int:
    """Return u, the number of basis points."""
    return int(space.basis.size[0])


@kernel
def fill_space_radii(space: Space, radii: Floats) -> None:
    """Write β = √(R² (log det V/λᵘ + 2 log 1/δ) + λB²) + B √Σρ, the last term for what was neglected."""
    tally, neglected = space.ridge.tally, math.sqrt(space.basis.size[1])
    fill_radii(space.belief, used(space), tally[0], tally[1], radii)
    for signal in range(radii.size):
        radii[signal] += space.belief.norm_bound[signal] * neglected


@kernel
def found(action: Floats, candidates: Floats) -> int:
    """Return the first candidate that is this action to the bit, or ELSEWHERE."""
    for candidate in range(candidates.shape[0]):
        same = True
        for i in range(action.size):
            if candidates[candidate, i] != action[i]:
                same = False
                break
        if same:
            return candidate
    return ELSEWHERE


@kernel
def locate(space: Space, action: Floats, share: float, coordinates: Floats) -> float:
    """Write c(x) = L⁻¹ k₀(P, x), and return ρ(x)."""
    basis, rest = space.basis, unknown_norm(space.covariance, action, share)
    for i in range(coordinates.size):
        row, value = basis.root[i], unknown(space.covariance, action, share, basis.points[i], basis.ties[i])
        for j in range(i):
            value -= row[j] * coordinates[j]
        value /= row[i]
        coordinates[i] = value
        rest -= value * value
    return 0.0 if coordinates.size == space.covariance.rank else max(rest, 0.0)


@kernel
def follow(space: Space, coordinates: Floats, image: Floats) -> None:
    """Write what is kept of the candidates from now on; the work space is (u,) twice."""
    for candidate in range(space.candidates.shape[0]):
        action = space.candidates[candidate]
        share, form = share_of_known(space.covariance, action), 0.0
        space.residuals[candidate] = locate(space, action, share, coordinates)
        fill_image(space.ridge.root, coordinates, image)
        for i in range(coordinates.size):
            space.places[i, candidate] = coordinates[i]
            space.followed.columns[i, candidate] = image[i]
            form += image[i] * image[i]
        space.followed.forms[candidate] = form
        for signal in range(space.known.size):
            total = share * space.known[signal]
            for i in range(coordinates.size):
                total += space.ridge.fits[signal, i] * coordinates[i]
            space.followed.estimates[signal, candidate] = total


@kernel
def add_point(space: Space, action: Floats, coordinates: Floats, residual: float) -> None:
    """Take a point with coordinates c and ρ > 0 into the basis: L gains the row (c, √ρ), T the row (0, 1/√λ).

    The new coordinate of a followed candidate x is (k₀(p, x) − <c(p), c(x)>)/√ρ(p).
    """
    basis, followed, size, pivot = space.basis, space.followed, used(space), math.sqrt(residual)
    unit, tie = 1.0 / math.sqrt(space.belief.ridge), tie_to_safe(space.covariance, action)
    basis.size[0] += 1.0
    basis.ties[size] = tie
    for i in range(action.size):
        basis.points[size, i] = action[i]
    for i in range(size):
        basis.root[size, i] = coordinates[i]
        space.ridge.root[size, i] = 0.0
    basis.root[size, size] = pivot
    space.ridge.root[size, size] = unit
    for signal in range(space.known.size):
        space.ridge.fits[signal, size] = 0.0
    fresh = space.places[size]
    for candidate in range(fresh.size):
        other = space.candidates[candidate]
        share = share_of_known(space.covariance, other)
        fresh[candidate] = unknown(space.covariance, other, share, action, tie)
    for i in range(size):
        add_multiple(-coordinates[i], space.places[i], fresh)
    for candidate in range(fresh.size):
        value = fresh[candidate] / pivot
        fresh[candidate] = value
        followed.columns[size, candidate] = value * unit
        followed.forms[candidate] += value * unit * (value * unit)
        rest = space.residuals[candidate] - value * value
        space.residuals[candidate] = 0.0 if size + 1 == space.covariance.rank else max(rest, 0.0)


@kernel
def recollect(space: Space, place: int, values: Floats, coordinates: Floats, image: Floats, surprises: Floats) -> float:
    """Write c, Tc and y − estimate of a followed candidate, and return its ρ."""
    for i in range(used(space)):
        coordinates[i] = space.places[i, place]
        image[i] = space.followed.columns[i, place]
    for signal in range(values.size):
        surprises[signal] = values[signal] - space.followed.estimates[signal, place]
    return space.residuals[place]


@kernel
def examine(
    space: Space, action: Floats, values: Floats, coordinates: Floats, image: Floats, surprises: Floats
) -> float:
    """Write c, Tc and y − estimate of any action, and return its ρ."""
    size, share = used(space), share_of_known(space.covariance, action)
    residual = locate(space, action, share, coordinates[:size])
    fill_image(space.ridge.root, coordinates[:size], image)
    for signal in range(values.size):
        surprise = values[signal] - share * space.known[signal]
        for i in range(size):
            surprise -= space.ridge.fits[signal, i] * coordinates[i]
        surprises[signal] = surprise
    return residual


@kernel
def study(space: Space, action: Floats, lean: bool, values: Floats, work: Floats) -> None:
    """Take in what was seen (k,) when the action x was played; `work` is (3 room + F + k,).

    A point off the span joins the basis while there is room. Otherwise it is learned from by its coordinates alone, and
    its ρ is added to what the radius pays for. `lean`: T and θ̂ need not be kept (see `ridge.learn`).
    """
    room, ridge, followed = space.basis.points.shape[0], space.ridge, space.followed
    coordinates, image, gain = work[:room], work[room : 2 * room], work[2 * room : 3 * room]
    pulls, surprises = work[3 * room : 3 * room + followed.forms.size], work[3 * room + followed.forms.size :]
    place, norm = found(action, space.candidates), own_norm(space.covariance, action)
    if place >= 0:
        residual = recollect(space, place, values, coordinates, image, surprises)
    else:
        residual = examine(space, action, values, coordinates, image, surprises)
    size = used(space)
    if residual > space.tolerance * norm and size < room:
        add_point(space, action, coordinates, residual)
        image[size] = math.sqrt(residual) * ridge.root[size, size]
        size += 1
    elif residual > ROUNDING * norm:
        space.basis.size[1] += residual
    after = move(ridge.root, followed, image[:size], lean, gain, pulls)
    for signal in range(values.size):
        surprise = surprises[signal] / after
        note_square(ridge, signal, surprises[signal], after)
        if not lean:
            add_multiple(surprise, gain, ridge.fits[signal, :size])
        add_multiple(surprise, pulls, followed.estimates[signal])
    ridge.tally[0] += math.log(after)
    ridge.tally[1] += 1.0
