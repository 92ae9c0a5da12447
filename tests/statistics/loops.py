"""Whole runs of the policies' own kernels against a known truth: how far the true expected cost went over a threshold.

Each loop returns the largest excess of a run, and in how many rounds something else than the safe action was dared.
"""

import math

from stagewise.kernels.ridge import ELSEWHERE

from stagewise.kernels import lc_lucb, linear, opb, oplb, safe_lts
from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.draw import OUTCOME, POLICY, normal, uniform

UNSAMPLED = -1  # in the place of Safe-LTS's inflation: LC-LUCB or ROFUL


@kernel
def observe(
    action: Floats, truth: Floats, noise: Floats, seed: int, run: int, round_: int, means: Floats, values: Floats
) -> None:
    """Write the mean reward and costs (1 + m,) of an action, and the same with Gaussian noise."""
    for signal in range(values.size):
        means[signal] = 0.0
        for i in range(action.size):
            means[signal] += truth[signal, i] * action[i]
        stream, position = OUTCOME, signal
        values[signal] = means[signal] + noise[signal] * normal(seed, run, round_, stream, position)


@kernel
def run_rays(
    targets: Floats,
    truth: Floats,
    noise: Floats,
    thresholds: Floats,
    flags: Ints,
    numbers: Floats,
    memory: Floats,
    sheet: Floats,
    work: Floats,
    scratch: Floats,
    everything: Flags,
    inflation: int,
    seed: int,
    run: int,
    rounds: int,
) -> tuple[float, int]:
    """Play one point on rays in every round; what counts is the point's own cost."""
    d, m = targets.shape[1], thresholds.size
    means, values, action = scratch[: 1 + m], scratch[1 + m : 2 + 2 * m], sheet[sheet.size - d :]
    excess, dared = -math.inf, 0
    for t in range(rounds):
        if inflation == UNSAMPLED:
            code = lc_lucb.decide(targets, everything, flags, numbers, memory, sheet, work)
        else:
            code = safe_lts.decide(targets, everything, flags, numbers, memory, sheet, work, inflation, seed, run, t)
        dared += code >= 0
        observe(action, truth, noise, seed, run, t, means, values)
        for j in range(m):
            excess = max(excess, means[1 + j] - thresholds[j])
        linear.learn_from(action, ELSEWHERE, 1.0, values, flags, numbers, memory, work)
    return excess, dared


@kernel
def mixed_cost(costs: Floats, safe_cost: float, support: Ints, shares: Floats) -> float:
    """Return the expected cost of a mixture."""
    total = 0.0
    for place in range(support.size):
        if shares[place] > 0.0:
            total += shares[place] * (safe_cost if support[place] < 0 else costs[support[place]])
    return total


@kernel
def first_share(m: int, count: int) -> int:
    """Return where the probabilities (m + 2,) stand that a decision left among its odds."""
    return (2 + 2 * m) * count + 3 * m + 2


@kernel
def run_mixtures(
    features: Floats,
    truth: Floats,
    noise: Floats,
    thresholds: Floats,
    costs: Floats,
    safe_costs: Floats,
    flags: Ints,
    numbers: Floats,
    memory: Floats,
    sheet: Floats,
    work: Floats,
    flat: Floats,
    support: Ints,
    scratch: Floats,
    everything: Flags,
    seed: int,
    run: int,
    rounds: int,
) -> tuple[float, int]:
    """Draw from a mixture of actions in every round; what counts is the mixture's expected cost."""
    d, m, count = features.shape[1], thresholds.size, features.shape[0]
    means, values, action = scratch[: 1 + m], scratch[1 + m : 2 + 2 * m], sheet[sheet.size - d :]
    shares = flat[first_share(m, count) : first_share(m, count) + m + 2]
    excess, dared = -math.inf, 0
    for t in range(rounds):
        lottery = uniform(seed, run, t, POLICY, 0)
        code = oplb.decide(features, everything, flags, numbers, memory, sheet, work, flat, support, lottery)
        dared += code >= 0
        for j in range(m):
            excess = max(excess, mixed_cost(costs[j], safe_costs[j], support, shares) - thresholds[j])
        observe(action, truth, noise, seed, run, t, means, values)
        linear.learn_from(action, ELSEWHERE, 1.0, values, flags, numbers, memory, work)
    return excess, dared


@kernel
def run_arms(
    truth: Floats,
    thresholds: Floats,
    safe: int,
    flags: Ints,
    numbers: Floats,
    memory: Floats,
    flat: Floats,
    support: Ints,
    scratch: Floats,
    everything: Flags,
    seed: int,
    run: int,
    rounds: int,
) -> tuple[float, int]:
    """Draw from a mixture of Bernoulli arms in every round; what counts is the mixture's expected cost."""
    m, count = thresholds.size, truth.shape[1]
    values, work = scratch[: 1 + m], scratch[1 + m : 3 + 4 * m]
    shares = flat[first_share(m, count) : first_share(m, count) + m + 2]
    excess, dared = -math.inf, 0
    for t in range(rounds):
        lottery = uniform(seed, run, t, POLICY, 0)
        code = opb.decide(everything, flags, numbers, memory, work, flat, support, lottery)
        arm = code if code >= 0 else safe
        dared += code >= 0
        for j in range(m):
            excess = max(excess, mixed_cost(truth[1 + j], truth[1 + j, safe], support, shares) - thresholds[j])
        for signal in range(1 + m):
            stream, position = OUTCOME, signal
            values[signal] = 1.0 if uniform(seed, run, t, stream, position) < truth[signal, arm] else 0.0
        opb.absorb(arm, values, flags, numbers, memory)
    return excess, dared
