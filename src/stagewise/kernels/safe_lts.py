"""Safe-LTS (Moradipari et al. 2019): LC-LUCB's safe steps, with a sampled reward in place of an optimistic one."""

import math

from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.draw import POLICY, fill_normal
from stagewise.kernels.following import copy_estimates, recognised
from stagewise.kernels.linear import Mind, mistold, named_mind, see
from stagewise.kernels.ray import choose, settle
from stagewise.kernels.ridge import Regression, add_multiple, place
from stagewise.kernels.sight import Sight, named_sight

THEORY, NONE, AUTHORS = 0, 1, 2


@kernel
def inflation(kind: int, mind: Mind, sight: Sight, dimension: int) -> float:
    """Return how many radii the draw spreads.

    theory:  1 + 2LS/min_j(τ_j − c₀_j);    none: 1;    authors (of the constraint paper, in code): √n / min(1, τ)
    """
    promise, m = mind.promise, mind.promise.limits.size
    slack, least = math.inf, 1.0
    for j in range(m):
        doubt = promise.cost_scale * sight.radii[1 + j] * sight.start[2 + m]
        slack = min(slack, promise.limits[j] - sight.start[1 + j] - doubt)
        least = min(least, promise.thresholds[j])
    if kind == THEORY:
        return 1.0 + 2.0 * mind.reach * mind.parameter_bound / slack if slack > 0.0 else 1.0
    return 1.0 if kind == NONE else math.sqrt(dimension) / least


@kernel
def tilt(
    features: Floats, model: Regression, draws: Floats, shift: Floats, coordinates: Floats, rewards: Floats
) -> None:
    """Move the estimated rewards from θ̂ to the sampled θ̂ + shift.

    Before anything is seen T is diagonal, and <Tz, η> is added up as it is for followed rays, to the same bits: what is
    offered first is looked at afresh by hand, and followed in a compiled loop.
    """
    root, unseen = model.ridge.root, model.ridge.tally[1] == 0.0
    for ray in range(features.shape[0]):
        place(features[ray], model.anchor, coordinates)
        for i in range(shift.size):
            rewards[ray] += root[i, i] * coordinates[i] * draws[i] if unseen else coordinates[i] * shift[i]


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
    """Return the ray taken, or minus the reason for the safe action."""
    mind = named_mind(flags, numbers, memory)
    sight, known = named_sight(mind.shape, sheet, features.shape[0]), recognised(features, mind.followed)
    if known:
        copy_estimates(mind, sight)
    return take(features, known, eligible, mind, sight, work, kind, seed, run, round_)


@kernel
def take(
    features: Floats,
    known: bool,
    eligible: Flags,
    mind: Mind,
    sight: Sight,
    work: Floats,
    kind: int,
    seed: int,
    run: int,
    round_: int,
) -> int:
    """Decide; `known`: these are the followed rays.

    The sample is θ̃ = θ̂ + spread Tᵀη with η ~ N(0, I), which has covariance spread² V⁻¹: <z, θ̃ − θ̂> = spread <Tz, η>.
    """
    see(features, known, mind, sight, work)
    model, root = mind.reward, mind.reward.ridge.root
    size = root.shape[0]
    draws, shift, coordinates = work[:size], work[size : 2 * size], work[2 * size : 3 * size]
    fill_normal(draws, seed, run, round_, POLICY)
    spread = sight.radii[0] * inflation(kind, mind, sight, size)
    for i in range(size):
        draws[i] *= spread
    if known:
        for ray in range(sight.rewards.size):
            sight.rewards[ray] = model.followed.estimates[0, ray]
        for i in range(size):
            add_multiple(draws[i], model.followed.columns[i], sight.rewards)
    if not known or model.anchor.start.size > 0:
        for i in range(size):
            shift[i] = 0.0
            for j in range(i + 1):
                shift[j] += draws[i] * root[i, j]
        for i in range(model.anchor.start.size):
            sight.start[0] += model.anchor.start[i] * shift[i]
    if not known:
        tilt(features, model, draws, shift, coordinates, sight.rewards)
    sight.radii[0] = 0.0
    ray = choose(sight, mind.promise, eligible, mistold(mind))
    settle(sight, mind.promise, features, mind.safe, ray)
    return ray
