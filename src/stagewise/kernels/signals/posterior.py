"""A draw from what is believed of every signal: N(fit, ν² R² V⁻¹), held within the bounds."""

import math

from stagewise.kernels.bounds import CENTRE, HALF, SAMPLED
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.draw import POSTERIOR, fill_normal
from stagewise.kernels.layout import HOME, Part
from stagewise.kernels.promise import limit_of
from stagewise.kernels.signals.arms import declared_of_arms, is_ranged, pulled
from stagewise.kernels.signals.ridge import TAKEN, declared_of_ridge, place


@kernel
def draw_ridge(
    part: Part, features: Floats, safe: Floats, known: bool, spread: float, settings: Floats, bounds: Floats,
    seed: int, run: int, round_: int, work: Floats,
) -> None:  # fmt: skip
    """Write a draw of every candidate's mean, and of the safe action's; `known`: the candidates are followed.

    `work` is ((k + 2) n,).

        <z, θ̃> = <z, θ̂> + ν R <Tz, η>,    η ~ N(0, I)

    Before anything is seen T is diagonal, and the sum is the same to the bit whether candidates are followed or not.
    """
    n, k, declared, count = part.size, part.signals, declared_of_ridge(part, settings), bounds.shape[2]
    draws, sampled, coordinates = work[: k * n], work[k * n : (k + 1) * n], work[(k + 1) * n : (k + 2) * n]
    fill_normal(draws, seed, run, round_, POSTERIOR + int(part.first))
    rows, learned, unseen = part.rows, part.learned, part.tally[TAKEN] == 0.0
    for signal in range(k):
        drawn, scale = bounds[part.first + signal, SAMPLED], spread * declared.noise[signal]
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
                share, moved, fit = place(part, settings, action, coordinates), 0.0, 0.0
                if candidate == features.shape[0] and part.anchored == 1:
                    share = 1.0
                    coordinates[:] = 0.0
                for i in range(n):
                    if unseen:
                        moved += learned[i, i] * coordinates[i] * draws[signal * n + i]
                    else:
                        moved += coordinates[i] * sampled[i]
                    fit += learned[n + signal, i] * coordinates[i]
                drawn[candidate] = share * declared.known[signal] + fit + scale * moved
    hold(part, bounds)


@kernel
def hold(part: Part, bounds: Floats) -> None:
    """Move every draw to the nearest mean within its bounds."""
    for signal in range(part.first, part.first + part.signals):
        centre, half, drawn = bounds[signal, CENTRE], bounds[signal, HALF], bounds[signal, SAMPLED]
        for candidate in range(drawn.size):
            drawn[candidate] = min(
                max(drawn[candidate], centre[candidate] - half[candidate]), centre[candidate] + half[candidate]
            )


@kernel
def drawn_share(ones: float, pulls: float, prior: float, deviate: float) -> float:
    """Return a share near (S + ½)/(n + 1/2q), given a prior mean q ≤ ½, moved by `deviate` posterior deviations.

    sin²(arcsin √p + deviate/2√(n + 1/2q))        the scale on which all shares vary alike, and none leaves [0, 1]
    """
    weight = pulls + 0.5 / prior
    angle = math.asin(math.sqrt((ones + 0.5) / weight)) + 0.5 * deviate / math.sqrt(weight)
    sine = math.sin(min(max(angle, 0.0), 0.5 * math.pi))
    return sine * sine


@kernel
def draw_arms(
    layout: Ints, part: Part, spread: float, settings: Floats, memory: Floats, bounds: Floats, seed: int, run: int,
    round_: int,
) -> None:  # fmt: skip
    """Write a draw of every arm's mean, and of the safe arm's, around what its n pulls have shown.

    N(mean, ν² R²/n), or a `drawn_share` for outcomes in a range of length 1; for a cost its prior mean is the limit: an
    arm that was hardly pulled is then neither hopeless nor free.
    """
    table, declared, k, count = pulled(part, memory).table, declared_of_arms(part, settings), part.signals, part.size
    for signal in range(k):
        at = part.first + signal
        drawn, centre, half = bounds[at, SAMPLED], bounds[at, CENTRE], bounds[at, HALF]
        means, noise, low = (1 + 2 * k + signal) * count, declared.noise[signal], declared.low[signal]
        fill_normal(drawn[:count], seed, run, round_, POSTERIOR + int(at))
        prior = 0.5 if at == 0 else min(max(limit_of(layout, settings, at - 1) - low, 1e-6), 0.5)
        for arm in range(count):
            pulls, mean = table[arm], table[means + arm]
            deviate = spread * drawn[arm]
            if is_ranged(part.radius):
                drawn[arm] = low + drawn_share(pulls * (mean - low), pulls, prior, deviate)
            elif pulls > 0.0:
                drawn[arm] = mean + deviate * noise / math.sqrt(pulls)
            else:
                drawn[arm] = centre[arm] + deviate * half[arm]
        home = layout[HOME]
        drawn[count] = centre[count] if half[count] == 0.0 or home < 0 else drawn[home]
    hold(part, bounds)
