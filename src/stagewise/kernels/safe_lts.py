"""Safe-LTS (Moradipari et al. 2019): LC-LUCB's safe steps, with a sampled reward in place of an optimistic one."""

import math

from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.draw import POLICY, fill_normal
from stagewise.kernels.linear import (
    Sight,
    Terms,
    learned_dimension,
    named_shape,
    named_sight,
    named_terms,
    reward_ridge,
    see,
)
from stagewise.kernels.ray import choose, settle
from stagewise.kernels.ridge import place

THEORY, NONE, AUTHORS = 0, 1, 2


@kernel
def inflation(kind: int, terms: Terms, sight: Sight, dimension: int) -> float:
    """Return how many radii the draw spreads.

    theory:  1 + 2LS/min_j(τ_j − c₀_j);    none: 1;    authors (of the constraint paper, in code): √n / min(1, τ)
    """
    promise, m = terms.promise, terms.promise.limits.size
    slack, least = math.inf, 1.0
    for j in range(m):
        doubt = promise.cost_scale * sight.radii[1 + j] * sight.start[2 + m]
        slack = min(slack, promise.limits[j] - sight.start[1 + j] - doubt)
        least = min(least, promise.thresholds[j])
    if kind == THEORY:
        return 1.0 + 2.0 * terms.reach * terms.parameter_bound / slack if slack > 0.0 else 1.0
    return 1.0 if kind == NONE else math.sqrt(dimension) / least


@kernel
def tilt(features: Floats, terms: Terms, shift: Floats, coordinates: Floats, sight: Sight) -> None:
    """Move the estimated rewards from θ̂ to the sampled θ̂ + shift."""
    for ray in range(features.shape[0]):
        place(features[ray], terms.reward_anchor, coordinates)
        for i in range(shift.size):
            sight.estimates[0, ray] += coordinates[i] * shift[i]
    for i in range(terms.reward_anchor.start.size):
        sight.start[0] += terms.reward_anchor.start[i] * shift[i]


@kernel
def decide(
    features: Floats,
    eligible: Flags,
    flags: Ints,
    numbers: Floats,
    memory: Floats,
    sheet: Floats,
    work: Floats,
    kind: int,
    seed: int,
    run: int,
    round_: int,
) -> int:
    """Return the ray taken, or minus the reason for the safe action.

    The sample is θ̂ + spread Tᵀη with η ~ N(0, I), which has covariance spread² V⁻¹.
    """
    shape = named_shape(flags)
    terms = named_terms(shape, numbers)
    sight = named_sight(shape, sheet, features.shape[0])
    see(features, shape, terms, reward_ridge(shape, memory), memory, sight, work)
    size = learned_dimension(shape, shape.reward_known)
    root = reward_ridge(shape, memory).root
    draws, shift, coordinates = work[:size], work[size : 2 * size], work[2 * size : 3 * size]
    fill_normal(draws, seed, run, round_, POLICY)
    spread = sight.radii[0] * inflation(kind, terms, sight, size)
    for i in range(size):
        shift[i] = 0.0
        for j in range(i + 1):
            shift[j] += spread * draws[i] * root[i, j]
    tilt(features, terms, shift, coordinates, sight)
    sight.radii[0] = 0.0
    ray = choose(sight, terms.promise, eligible)
    settle(sight, terms.promise, features, terms.safe, ray)
    return ray
