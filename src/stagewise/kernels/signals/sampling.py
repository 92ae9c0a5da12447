"""A sampled reward in place of an optimistic one: Safe-LTS (Moradipari et al. 2019)."""

import math

from stagewise.kernels.bounds import CENTRE, HALF
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.draw import POLICY, fill_normal
from stagewise.kernels.layout import LIMITS, SAMPLING, Part
from stagewise.kernels.rules.promise import COST_SCALE, limit_of, threshold_of
from stagewise.kernels.signals.radius import radius
from stagewise.kernels.signals.ridge import LOG_DET, TAKEN, place, stated, tables_of

THEORY, PLAIN, AUTHORS = 1, 2, 3  # how the sample is inflated; 0: nothing is sampled


@kernel
def inflation(layout: Ints, settings: Floats, bounds: Floats, size: int) -> float:
    """Return how many radii the draw spreads.

    theory:  1 + 2LS/min_j(τ_j − c₀_j);    none: 1;    authors (of the constraint paper, in code): √n / min(1, τ)
    """
    slack, least, safe = math.inf, 1.0, bounds.shape[2] - 1
    for j in range(layout[LIMITS]):
        doubt = settings[COST_SCALE] * bounds[1 + j, HALF, safe]
        slack = min(slack, limit_of(layout, settings, j) - bounds[1 + j, CENTRE, safe] - doubt)
        least = min(least, threshold_of(layout, settings, j))
    if layout[SAMPLING] == THEORY:
        return 1.0 + settings[settings.size - 1] / slack if slack > 0.0 else 1.0  # 2LS is the last of the settings
    return 1.0 if layout[SAMPLING] == PLAIN else math.sqrt(size) / least


@kernel
def sample(
    layout: Ints, part: Part, features: Floats, safe: Floats, known: bool, settings: Floats, memory: Floats,
    bounds: Floats, seed: int, run: int, round_: int, work: Floats,
) -> None:  # fmt: skip
    """Move the rewards from θ̂ to a sampled θ̃ and take them as known; `known`: the candidates are followed.

    θ̃ = θ̂ + spread Tᵀη with η ~ N(0, I) has covariance spread² V⁻¹: <z, θ̃ − θ̂> = spread <Tz, η>.
    """
    n, tables, declared = part.size, tables_of(part, memory), stated(part, settings)
    tally, rows, width = tables.tally, tables.rows, part.width
    draws, shift, coordinates = work[:n], work[n : 2 * n], work[2 * n : 3 * n]
    fill_normal(draws, seed, run, round_, POLICY)
    ridge, reach = settings[part.settings], tally[TAKEN] * settings[part.settings + 1] * settings[part.settings + 1]
    beta = radius(
        part.radius, declared.noise[0], declared.bound[0], ridge, declared.confidence[0], tally[LOG_DET], n, reach
    )
    spread = beta * inflation(layout, settings, bounds, n)
    for i in range(n):
        draws[i] *= spread
    centre, half = bounds[0, CENTRE], bounds[0, HALF]
    if known:
        for i in range(n):
            row, draw = rows[i * width : (i + 1) * width], draws[i]
            for candidate in range(centre.size):
                centre[candidate] += row[candidate] * draw
    else:
        own = tables.own.reshape(n + part.signals, n)
        shift[:] = 0.0
        for i in range(n):
            for j in range(i + 1):
                shift[j] += draws[i] * own[i, j]
        tilt(part, features, safe, settings, own, tally[TAKEN] == 0.0, draws, shift, coordinates, centre)
    for candidate in range(half.size):
        half[candidate] = 0.0


@kernel
def tilt(
    part: Part, features: Floats, safe: Floats, settings: Floats, own: Floats, unseen: bool,
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
            along = own[i, i] * coordinates[i] * draws[i] if unseen else coordinates[i] * shift[i]
            centre[candidate] += along
