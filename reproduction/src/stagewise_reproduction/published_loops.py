"""The rules of the authors' public code, as loops of their own; that they made the published curves is an inference.

The code is of github.com/pacchiano/constrainedBandits: `utilities_linear.py` as of 14 September 2020 (6613b02, the same
until the last commit) and `utilities.py` as of 3 October 2020 (4fd61d5, likewise). The rules are written anew from what
it does. They differ from the paper's text and are not safe choices (docs/explanation/errata.md, E33, E62 and E63), so
no policy offers them.
"""

import math

from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.draw import OUTCOME, POLICY, fill_normal, normal_pair, uniform
from stagewise.kernels.layout import Part, part_of
from stagewise.kernels.rules.pair import best_pair
from stagewise.kernels.rules.ray import safe_step
from stagewise.kernels.rules.tie import first_best
from stagewise.kernels.signals.ridge import LOG_DET, learn_ridge
from stagewise.kernels.trace import Trace, note
from stagewise.kernels.world import fill_outcome

RIDGE = 0.1
LOGGED_EVERY = 100


@kernel
def fill_choice(
    part: Part, threshold: float, sampled: bool, t: int, draws: Floats, hoped: Floats, steps: Floats
) -> None:
    """Write every ray's step τ/U and its worth there, with the published radii; `t` counts from 0, and is positive.

    ρ = 2 √(2 log(√det(Σ/λ)/δ_t)),  δ_t = 1/(1 + n),  n points logged;   cost: ρ + √λ,   reward: ρ/min(1, τ) + √λ
    """
    size = draws.size
    rows = part.rows
    rewards, costs, forms = rows[size], rows[size + 1], rows[size + 2]
    logged = 1.0 + (t - 1) // LOGGED_EVERY
    spread = 2.0 * math.sqrt(part.tally[LOG_DET] + 2.0 * math.log(1.0 + logged))
    cost_radius = spread + math.sqrt(RIDGE)
    reward_radius = spread / min(1.0, threshold) + math.sqrt(RIDGE)
    for ray in range(hoped.size):
        width = math.sqrt(forms[ray])
        steps[ray] = safe_step(costs[ray] + cost_radius * width, threshold)
        hoped[ray] = rewards[ray] + (0.0 if sampled else reward_radius * width)
    if sampled:
        for i in range(size):
            factor, column = math.sqrt(size) * reward_radius * draws[i], rows[i]
            for ray in range(hoped.size):
                hoped[ray] += column[ray] * factor
    for ray in range(hoped.size):
        hoped[ray] *= steps[ray]


@kernel
def play_linear(
    layout: Ints,
    settings: Floats,
    memory: Floats,
    means: Floats,
    noise: Floats,
    threshold: Floats,
    sampled: bool,
    best: float,
    trace: Trace,
    room: Floats,
    seed: int,
    run: int,
    rounds: int,
) -> None:
    """Play LC-LUCB, or Safe-LTS, on fixed rays whose true means are (2, M), with Gaussian noise."""
    part, count = part_of(layout, memory, 0), means.shape[1]
    size = part.size
    hoped, steps, draws = room[:count], room[count : 2 * count], room[2 * count : 2 * count + size]
    values, seen = room[2 * count + size : 2 * count + size + 2], room[2 * count + size + 2 : 2 * count + size + 4]
    work, dearest = room[2 * count + size + 4 :], 0.0
    for ray in range(count):
        dearest = max(dearest, means[1, ray])
    for t in range(rounds):
        if t == 0:
            ray = int(uniform(seed, run, 0, POLICY, 0) * count)
            step = threshold[0] / (2.0 * dearest)
        else:
            if sampled:
                fill_normal(draws, seed, run, t, POLICY)
            fill_choice(part, threshold[0], sampled, t, draws, hoped, steps)
            ray = first_best(hoped)
            step = steps[ray]
        first, second = normal_pair(seed, run, t, OUTCOME, 0)
        values[0], values[1] = step * means[0, ray], step * means[1, ray]
        seen[0], seen[1] = values[0] + noise[0] * first, values[1] + noise[1] * second
        note(trace, t, best, values, threshold)
        learn_ridge(part, hoped, ray, step, True, seen, settings, memory, work)


@kernel
def play_arms(
    means: Floats,
    noise: Floats,
    outcomes: int,
    threshold: Floats,
    best: float,
    trace: Trace,
    room: Floats,
    seed: int,
    run: int,
    rounds: int,
) -> None:
    """Play OPB on arms with true means (2, K); the cost of arm 0 is known."""
    arms = means.shape[1]
    pulls, rewards, costs = room[:arms], room[arms : 2 * arms], room[2 * arms : 3 * arms]
    hoped, dearest, values = room[3 * arms : 4 * arms], room[4 * arms : 5 * arms], room[5 * arms : 5 * arms + 2]
    truth, seen = room[5 * arms + 2 : 5 * arms + 4], room[5 * arms + 4 :]
    scale = 1.0 + 1.0 / threshold[0]
    for t in range(rounds):
        for arm in range(arms):
            width = math.sqrt(4.0 * math.log(rounds) / max(pulls[arm], 1.0))
            hoped[arm] = min(rewards[arm] + scale * width, 1.0)
            dearest[arm] = min(costs[arm] + width, 1.0) if arm > 0 else means[1, 0]
        safe = hoped[0]
        hoped[0] = -math.inf
        pair = best_pair(hoped, dearest, safe, means[1, 0], threshold[0])
        cheap, dear = max(pair.cheap, 0), max(pair.dear, 0)
        for signal in range(2):
            values[signal] = (1.0 - pair.share) * means[signal, cheap] + pair.share * means[signal, dear]
        note(trace, t, best, values, threshold)
        arm = dear if uniform(seed, run, t, POLICY, 0) < pair.share else cheap
        truth[0], truth[1] = means[0, arm], means[1, arm]
        fill_outcome(outcomes, truth, noise, seed, run, t, seen)
        pulls[arm] += 1.0
        rewards[arm] += (seen[0] - rewards[arm]) / pulls[arm]
        costs[arm] += (seen[1] - costs[arm]) / pulls[arm]
