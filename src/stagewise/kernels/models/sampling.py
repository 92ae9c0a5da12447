"""Posterior sampling of the reward instead of optimism: Safe-LTS (Moradipari et al. 2019)."""

import math

from stagewise.kernels.bounds import CENTRE, HALF
from stagewise.kernels.compile import Floats, Ints, distinct, kernel
from stagewise.kernels.constraints import COST_SCALE, get_limit, get_threshold
from stagewise.kernels.layout import LIMITS, SAMPLING, ModelBlock, get_reward_range
from stagewise.kernels.models.ridge import OBSERVATIONS, fill_coordinates
from stagewise.kernels.models.ridge_bounds import compute_radius
from stagewise.kernels.random_streams import POLICY, fill_normal

THEORY, PLAIN, AUTHORS = 1, 2, 3  # inflation of the sample; 0: nothing is sampled


@kernel
def compute_inflation(layout: Ints, settings: Floats, bounds: Floats, size: int) -> float:
    """Return the scale of the draw, in radii.

    theory:  1 + 2LS/min_j(τ_j − c₀_j);    none: 1;    authors (the code of the constraint paper): √n / min(1, τ)
    """
    slack, least, safe = math.inf, 1.0, bounds.shape[2] - 1
    for j in range(layout[LIMITS]):
        half = settings[COST_SCALE] * bounds[1 + j, HALF, safe]
        slack = min(slack, get_limit(layout, settings, j) - bounds[1 + j, CENTRE, safe] - half)
        least = min(least, get_threshold(layout, settings, j))
    if layout[SAMPLING] == THEORY:
        return 1.0 + get_reward_range(settings) / slack if slack > 0.0 else 1.0
    return 1.0 if layout[SAMPLING] == PLAIN else math.sqrt(size) / least


@kernel
@distinct
def sample_reward(
    layout: Ints, block: ModelBlock, features: Floats, safe: Floats, known: bool, settings: Floats, memory: Floats,
    bounds: Floats, seed: int, run: int, round_: int, work: Floats,
) -> None:  # fmt: skip
    """Move the rewards from θ̂ to a sampled θ̃ and treat them as known; `known`: the candidates are cached.

    θ̃ = θ̂ + scale Tᵀη with η ~ N(0, I) has covariance scale² V⁻¹: <z, θ̃ − θ̂> = scale <Tz, η>.
    """
    n, rows = block.size, block.rows
    draws, shift, coordinates = work[:n], work[n : 2 * n], work[2 * n : 3 * n]
    fill_normal(draws, seed, run, round_, POLICY)
    scale = compute_radius(block, settings, 0.0, 0) * compute_inflation(layout, settings, bounds, n)
    for i in range(n):
        draws[i] *= scale
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
                shift[j] += draws[i] * block.learned[i, j]
        shift_rewards(
            block,
            features,
            safe,
            settings,
            block.learned,
            block.tally[OBSERVATIONS] == 0.0,
            draws,
            shift,
            coordinates,
            centre,
        )
    for candidate in range(half.size):
        half[candidate] = 0.0


@kernel
def shift_rewards(
    block: ModelBlock, features: Floats, safe: Floats, settings: Floats, learned: Floats, no_data: bool,
    draws: Floats, shift: Floats, coordinates: Floats, centre: Floats,
) -> None:  # fmt: skip
    """Move the estimated rewards by <z, shift>.

    Without data T is diagonal, and <Tz, η> is summed as for cached rays, with the same bits: the first offer is not
    cached in Python, but cached in a compiled loop.
    """
    for candidate in range(features.shape[0] + 1 - block.anchored):
        action = features[candidate] if candidate < features.shape[0] else safe
        fill_coordinates(block, settings, action, coordinates)
        for i in range(block.size):
            along = learned[i, i] * coordinates[i] * draws[i] if no_data else coordinates[i] * shift[i]
            centre[candidate] += along
