"""The rules of the authors' public code, as separate loops; that they made the published curves is an inference.

The code is github.com/pacchiano/constrainedBandits: `utilities_linear.py` as of 14 September 2020 (6613b02, unchanged
until the last commit) and `utilities.py` as of 3 October 2020 (4fd61d5, likewise). The rules are reimplemented. They
differ from the paper's text and are not safe choices (docs/explanation/errata.md, E33, E62 and E63), so no policy
offers them.
"""

import math

from stagewise.engine.compile import Floats, Ints, kernel
from stagewise.engine.loop import Trace, record_round
from stagewise.engine.pair import find_best_pair, first_best
from stagewise.engine.random import OUTCOME, POLICY, fill_normal, normal_pair, uniform
from stagewise.engine.workspace import safe_step
from stagewise.engine.world_draws import fill_outcome
from stagewise.models.regression import LOG_DET, Regression, learn_ridge
from stagewise.models.ridge import view_ridge

RIDGE = 0.1
LOGGED_EVERY = 100


@kernel
def fill_choice(
    block: Regression, threshold: float, sampled: bool, t: int, draws: Floats, optimistic_reward: Floats, steps: Floats
) -> None:
    """Write every ray's step τ/U and its value there, with the published radii; `t` counts from 0, and is positive.

    ρ = 2 √(2 log(√det(Σ/λ)/δ_t)),  δ_t = 1/(1 + n),  n points logged;   cost: ρ + √λ,   reward: ρ/min(1, τ) + √λ
    """
    size = draws.size
    rows = block.rows
    rewards, costs, forms = rows[size], rows[size + 1], rows[size + 2]
    logged = 1.0 + (t - 1) // LOGGED_EVERY
    confidence_width = 2.0 * math.sqrt(block.tally[LOG_DET] + 2.0 * math.log(1.0 + logged))
    cost_radius = confidence_width + math.sqrt(RIDGE)
    reward_radius = confidence_width / min(1.0, threshold) + math.sqrt(RIDGE)
    for ray in range(optimistic_reward.size):
        width = math.sqrt(forms[ray])
        steps[ray] = safe_step(costs[ray] + cost_radius * width, threshold)
        optimistic_reward[ray] = rewards[ray] + (0.0 if sampled else reward_radius * width)
    if sampled:
        for i in range(size):
            factor, column = math.sqrt(size) * reward_radius * draws[i], rows[i]
            for ray in range(optimistic_reward.size):
                optimistic_reward[ray] += column[ray] * factor
    for ray in range(optimistic_reward.size):
        optimistic_reward[ray] *= steps[ray]


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
    scratch: Floats,
    seed: int,
    run: int,
    rounds: int,
) -> None:
    """Play LC-LUCB, or Safe-LTS, on fixed rays whose true means are (2, M), with Gaussian noise."""
    block, count = view_ridge(layout, memory, 0), means.shape[1]
    size = block.size
    optimistic_rewards, steps, draws = (
        scratch[:count],
        scratch[count : 2 * count],
        scratch[2 * count : 2 * count + size],
    )
    values, outcome = (
        scratch[2 * count + size : 2 * count + size + 2],
        scratch[2 * count + size + 2 : 2 * count + size + 4],
    )
    work, largest_cost = scratch[2 * count + size + 4 :], 0.0
    for ray in range(count):
        largest_cost = max(largest_cost, means[1, ray])
    for t in range(rounds):
        if t == 0:
            ray = int(uniform(seed, run, 0, POLICY, 0) * count)
            step = threshold[0] / (2.0 * largest_cost)
        else:
            if sampled:
                fill_normal(draws, seed, run, t, POLICY)
            fill_choice(block, threshold[0], sampled, t, draws, optimistic_rewards, steps)
            ray = first_best(optimistic_rewards)
            step = steps[ray]
        first, second = normal_pair(seed, run, t, OUTCOME, 0)
        values[0], values[1] = step * means[0, ray], step * means[1, ray]
        outcome[0], outcome[1] = values[0] + noise[0] * first, values[1] + noise[1] * second
        record_round(trace, t, best, values, threshold)
        learn_ridge(block, optimistic_rewards, ray, step, True, outcome, settings, memory, work)


@kernel
def play_arms(
    means: Floats,
    noise: Floats,
    outcomes: int,
    threshold: Floats,
    best: float,
    trace: Trace,
    scratch: Floats,
    seed: int,
    run: int,
    rounds: int,
) -> None:
    """Play OPB on arms with true means (2, K); the cost of arm 0 is known."""
    arms = means.shape[1]
    pulls, rewards, costs = scratch[:arms], scratch[arms : 2 * arms], scratch[2 * arms : 3 * arms]
    optimistic_rewards, pessimistic_costs, values = (
        scratch[3 * arms : 4 * arms],
        scratch[4 * arms : 5 * arms],
        scratch[5 * arms : 5 * arms + 2],
    )
    truth, outcome = scratch[5 * arms + 2 : 5 * arms + 4], scratch[5 * arms + 4 :]
    scale = 1.0 + 1.0 / threshold[0]
    for t in range(rounds):
        for arm in range(arms):
            width = math.sqrt(4.0 * math.log(rounds) / max(pulls[arm], 1.0))
            optimistic_rewards[arm] = min(rewards[arm] + scale * width, 1.0)
            pessimistic_costs[arm] = min(costs[arm] + width, 1.0) if arm > 0 else means[1, 0]
        safe = optimistic_rewards[0]
        optimistic_rewards[0] = -math.inf
        pair = find_best_pair(optimistic_rewards, pessimistic_costs, safe, means[1, 0], threshold[0])
        cheap_arm, costly_arm = max(pair.cheap, 0), max(pair.costly, 0)
        for signal in range(2):
            values[signal] = (1.0 - pair.share) * means[signal, cheap_arm] + pair.share * means[signal, costly_arm]
        record_round(trace, t, best, values, threshold)
        arm = costly_arm if uniform(seed, run, t, POLICY, 0) < pair.share else cheap_arm
        truth[0], truth[1] = means[0, arm], means[1, arm]
        fill_outcome(outcomes, truth, noise, seed, run, t, outcome)
        pulls[arm] += 1.0
        rewards[arm] += (outcome[0] - rewards[arm]) / pulls[arm]
        costs[arm] += (outcome[1] - costs[arm]) / pulls[arm]
