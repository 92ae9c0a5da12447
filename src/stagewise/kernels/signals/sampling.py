"""A sampled reward in place of an optimistic one: Safe-LTS (Moradipari et al. 2019)."""

import math

from stagewise.kernels.bounds import CENTRE, HALF
from stagewise.kernels.compile import Floats, Ints, distinct, kernel
from stagewise.kernels.draw import POLICY, fill_normal
from stagewise.kernels.layout import LIMITS, SAMPLING, Part, length_of
from stagewise.kernels.promise import COST_SCALE, limit_of, threshold_of
from stagewise.kernels.signals.look import radius_of
from stagewise.kernels.signals.ridge import TAKEN, place

THEORY, PLAIN, AUTHORS = 1, 2, 3  # how the sample is inflated; 0: nothing is sampled


@kernel
def inflation(layout: Ints, settings: Floats, bounds: Floats, size: int) -> float:
    """Return how many radii the draw spreads.

    theory:  1 + 2LS/min_j(τ_j − c₀_j);    none: 1;    authors (of the constraint paper, in code): √n / min(1, τ)
    """
    slack, least, safe = math.inf, 1.0, bounds.shape[2] - 1
    for j in range(layout[LIMITS]):
        half = settings[COST_SCALE] * bounds[1 + j, HALF, safe]
        slack = min(slack, limit_of(layout, settings, j) - bounds[1 + j, CENTRE, safe] - half)
        least = min(least, threshold_of(layout, settings, j))
    if layout[SAMPLING] == THEORY:
        return 1.0 + length_of(settings) / slack if slack > 0.0 else 1.0
    return 1.0 if layout[SAMPLING] == PLAIN else math.sqrt(size) / least


@kernel
@distinct
def sample(
    layout: Ints, part: Part, features: Floats, safe: Floats, known: bool, settings: Floats, memory: Floats,
    bounds: Floats, seed: int, run: int, round_: int, work: Floats,
) -> None:  # fmt: skip
    """Move the rewards from θ̂ to a sampled θ̃ and take them as known; `known`: the candidates are followed.

    θ̃ = θ̂ + spread Tᵀη with η ~ N(0, I) has covariance spread² V⁻¹: <z, θ̃ − θ̂> = spread <Tz, η>.
    """
    n, rows = part.size, part.rows
    draws, shift, coordinates = work[:n], work[n : 2 * n], work[2 * n : 3 * n]
    fill_normal(draws, seed, run, round_, POLICY)
    spread = radius_of(part, settings, 0.0, 0) * inflation(layout, settings, bounds, n)
    for i in range(n):
        draws[i] *= spread
    centre, half = bounds[0, CENTRE], bounds[0, HALF]
    if known:
        for i in range(n):
            draw = draws[i]
            for candidate in range(centre.size):
                centre[candidate] += rows[i, candidate] * draw
    else:
        shift[:] = 0.0
        for i in range(n):
            for j in range(i + 1):
                shift[j] += draws[i] * part.learned[i, j]
        tilt(part, features, safe, settings, part.learned, part.tally[TAKEN] == 0.0, draws, shift, coordinates, centre)
    for candidate in range(half.size):
        half[candidate] = 0.0


@kernel
def tilt(
    part: Part, features: Floats, safe: Floats, settings: Floats, learned: Floats, unseen: bool,
    draws: Floats, shift: Floats, coordinates: Floats, centre: Floats,
) -> None:  # fmt: skip
    """Move the estimated rewards by <z, shift>.

    Before anything is seen T is diagonal, and <Tz, η> is added up as it is for followed rays, to the same bits: what is
    offered first is looked at afresh by hand, and followed in a compiled loop.
    """
    for candidate in range(features.shape[0] + 1 - part.anchored):
        action = features[candidate] if candidate < features.shape[0] else safe
        place(part, settings, action, coordinates)
        for i in range(part.size):
            along = learned[i, i] * coordinates[i] * draws[i] if unseen else coordinates[i] * shift[i]
            centre[candidate] += along
