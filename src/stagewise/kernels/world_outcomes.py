"""True means of an action in a world, and outcomes drawn around them."""

import math

from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.random_streams import ACTIONS, OUTCOME, fill_normal, normal, normal_pair, uniform_pair

GAUSSIAN, UNIFORM, RADEMACHER, BERNOULLI, CLIPPED, SHRUNK = 0, 1, 2, 3, 4, 5


@kernel
def fill_means(parameters: Floats, action: Floats, means: Floats) -> None:
    """Write <x, θ*> and every <x, μ*_j>."""
    for signal in range(means.size):
        total = 0.0
        for i in range(action.size):
            total += parameters[signal, i] * action[i]
        means[signal] = total


@kernel
def noisy(kind: int, mean: float, scale: float, draw: float, chance: float) -> float:
    """Return an outcome with this mean, from a normal draw and the uniform number behind it.

    GAUSSIAN: mean + s N(0, 1).  UNIFORM on mean ± √3 s.  RADEMACHER: mean ± s.  Each has standard deviation s and is
    s-sub-Gaussian.  BERNOULLI: 1 with probability mean.  CLIPPED: GAUSSIAN cut to [0, 1].  SHRUNK: (1 − s) mean + s B
    for a BERNOULLI B, which stays in [0, 1] and has the variance s² mean (1 − mean).
    """
    if kind == GAUSSIAN:
        return mean + scale * draw
    if kind == UNIFORM:
        return mean + scale * math.sqrt(3.0) * (2.0 * chance - 1.0)
    if kind == RADEMACHER:
        return mean + (scale if chance < 0.5 else -scale)
    if kind == BERNOULLI:
        return 1.0 if chance < mean else 0.0
    if kind == SHRUNK:
        return min(max((1.0 - scale) * mean + (scale if chance < mean else 0.0), 0.0), 1.0)
    return min(max(mean + scale * draw, 0.0), 1.0)


@kernel
def fill_outcome(kind: int, means: Floats, noise: Floats, seed: int, run: int, round_: int, outcome: Floats) -> None:
    """Write the outcome of this round: signal k uses position k of the round's outcome stream."""
    for pair in range((means.size + 1) // 2):
        if kind in (GAUSSIAN, CLIPPED):
            draws, chances = normal_pair(seed, run, round_, OUTCOME, pair), (0.0, 0.0)
        else:
            draws, chances = (0.0, 0.0), uniform_pair(seed, run, round_, OUTCOME, pair)
        first = 2 * pair
        outcome[first] = noisy(kind, means[first], noise[first], draws[0], chances[0])
        if first + 1 < means.size:
            outcome[first + 1] = noisy(kind, means[first + 1], noise[first + 1], draws[1], chances[1])


@kernel
def fill_signed_outcome(
    kind: int, means: Floats, noise: Floats, signs: Floats, seed: int, run: int, round_: int, outcome: Floats
) -> None:
    """Do the same for signed costs: the outcome is drawn in the world's own sign and then signed."""
    for signal in range(means.size):
        means[signal] *= signs[signal]
    fill_outcome(kind, means, noise, seed, run, round_, outcome)
    for signal in range(means.size):
        outcome[signal] *= signs[signal]


@kernel
def fill_directions(features: Floats, seed: int, run: int, round_: int) -> None:
    """Write a new action set: every row uniform on the unit sphere."""
    fill_normal(features.reshape(features.size), seed, run, round_, ACTIONS)
    for row in range(features.shape[0]):
        size = 0.0
        for i in range(features.shape[1]):
            size += features[row, i] * features[row, i]
        size = 1.0 / math.sqrt(size)
        for i in range(features.shape[1]):
            features[row, i] *= size


@kernel
def fill_round_safe_action(safe: Floats, before: int, length: float, seed: int, run: int, round_: int) -> None:
    """Write a round's own safe action: of this length, in a uniform direction, from stream position `before` on."""
    size = 0.0
    for i in range(safe.size):
        safe[i] = normal(seed, run, round_, ACTIONS, before + i)
        size += safe[i] * safe[i]
    size = length / math.sqrt(size)
    for i in range(safe.size):
        safe[i] *= size
