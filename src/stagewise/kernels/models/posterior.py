"""Posterior draws of every signal: N(fit, ν² R² V⁻¹), clipped to the bounds."""

import math

from stagewise.kernels.bounds import CENTRE, HALF, SAMPLED
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.constraints import get_limit
from stagewise.kernels.layout import SAFE_INDEX, ModelBlock
from stagewise.kernels.models.arm_means import get_arm_table, get_arms_assumptions, is_ranged
from stagewise.kernels.models.ridge import OBSERVATIONS, fill_coordinates, get_ridge_assumptions
from stagewise.kernels.random_streams import POSTERIOR, fill_normal


@kernel
def draw_ridge(
    block: ModelBlock, features: Floats, safe: Floats, known: bool, posterior_scale: float, settings: Floats,
    bounds: Floats, seed: int, run: int, round_: int, work: Floats,
) -> None:  # fmt: skip
    """Write a posterior draw of every candidate's mean, and of the safe action's; `known`: the candidates are cached.

    `work` is ((k + 2) n,).

        <z, θ̃> = <z, θ̂> + ν R <Tz, η>,    η ~ N(0, I)

    Without data T is diagonal, and the sum has the same bits whether candidates are cached or not.
    """
    n, k, declared, count = block.size, block.signals, get_ridge_assumptions(block, settings), bounds.shape[2]
    draws, sampled, coordinates = work[: k * n], work[k * n : (k + 1) * n], work[(k + 1) * n : (k + 2) * n]
    fill_normal(draws, seed, run, round_, POSTERIOR + int(block.first))
    rows, learned, no_data = block.rows, block.learned, block.tally[OBSERVATIONS] == 0.0
    for signal in range(k):
        drawn, scale = bounds[block.first + signal, SAMPLED], posterior_scale * declared.noise[signal]
        if known:
            estimates = rows[n + signal]
            for candidate in range(count):
                drawn[candidate] = 0.0
            for i in range(n):
                row, draw = rows[i], draws[signal * n + i]
                for candidate in range(count):
                    drawn[candidate] += row[candidate] * draw
            for candidate in range(count):
                drawn[candidate] = estimates[candidate] + scale * drawn[candidate]
        else:
            for i in range(n):
                sampled[i] = 0.0
            for i in range(n):
                for j in range(i + 1):
                    sampled[j] += draws[signal * n + i] * learned[i, j]
            for candidate in range(count):
                action = features[candidate] if candidate < features.shape[0] else safe
                share, deviation, fit = fill_coordinates(block, settings, action, coordinates), 0.0, 0.0
                if candidate == features.shape[0] and block.anchored == 1:
                    share = 1.0
                    coordinates[:] = 0.0
                for i in range(n):
                    if no_data:
                        deviation += learned[i, i] * coordinates[i] * draws[signal * n + i]
                    else:
                        deviation += coordinates[i] * sampled[i]
                    fit += learned[n + signal, i] * coordinates[i]
                drawn[candidate] = share * declared.known[signal] + fit + scale * deviation
    clip_to_bounds(block, bounds)


@kernel
def clip_to_bounds(block: ModelBlock, bounds: Floats) -> None:
    """Clip every draw to the bounds."""
    for signal in range(block.first, block.first + block.signals):
        centre, half, drawn = bounds[signal, CENTRE], bounds[signal, HALF], bounds[signal, SAMPLED]
        for candidate in range(drawn.size):
            drawn[candidate] = min(
                max(drawn[candidate], centre[candidate] - half[candidate]), centre[candidate] + half[candidate]
            )


@kernel
def draw_rate(ones: float, pulls: float, prior: float, deviate: float) -> float:
    """Return a rate near (S + ½)/(n + 1/2q), given a prior mean q ≤ ½, moved by `deviate` posterior deviations.

    sin²(arcsin √p + deviate/2√(n + 1/2q))        the variance-stabilising scale, on which no rate leaves [0, 1]
    """
    weight = pulls + 0.5 / prior
    angle = math.asin(math.sqrt((ones + 0.5) / weight)) + 0.5 * deviate / math.sqrt(weight)
    sine = math.sin(min(max(angle, 0.0), 0.5 * math.pi))
    return sine * sine


@kernel
def draw_arms(
    layout: Ints, block: ModelBlock, posterior_scale: float, settings: Floats, memory: Floats, bounds: Floats,
    seed: int, run: int, round_: int,
) -> None:  # fmt: skip
    """Write a posterior draw of every arm's mean, and of the safe arm's, given its n pulls.

    N(mean, ν² R²/n), or `draw_rate` for outcomes in a range of length 1. The prior mean of a cost is its limit, so an
    arm with few pulls is neither excluded nor free.
    """
    table, declared, k, count = (
        get_arm_table(block, memory).table,
        get_arms_assumptions(block, settings),
        block.signals,
        block.size,
    )
    for signal in range(k):
        at = block.first + signal
        drawn, centre, half = bounds[at, SAMPLED], bounds[at, CENTRE], bounds[at, HALF]
        means, noise, low = (1 + 2 * k + signal) * count, declared.noise[signal], declared.low[signal]
        fill_normal(drawn[:count], seed, run, round_, POSTERIOR + int(at))
        prior = 0.5 if at == 0 else min(max(get_limit(layout, settings, at - 1) - low, 1e-6), 0.5)
        for arm in range(count):
            pulls, mean = table[arm], table[means + arm]
            deviate = posterior_scale * drawn[arm]
            if is_ranged(block.radius):
                drawn[arm] = low + draw_rate(pulls * (mean - low), pulls, prior, deviate)
            elif pulls > 0.0:
                drawn[arm] = mean + deviate * noise / math.sqrt(pulls)
            else:
                drawn[arm] = centre[arm] + deviate * half[arm]
        safe_index = layout[SAFE_INDEX]
        drawn[count] = centre[count] if half[count] == 0.0 or safe_index < 0 else drawn[safe_index]
    clip_to_bounds(block, bounds)
