"""OPLB (Algorithm 2) in its tractable form: bounds for every action, then one linear program over mixtures."""

from stagewise.kernels.blend import Odds, choose, named_odds, stay
from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.linear import Sight, named_shape, named_sight, named_terms, reward_ridge, see
from stagewise.kernels.promise import WARMING, Promise, assess


@kernel
def fill_odds(sight: Sight, promise: Promise, lift: float, odds: Odds) -> None:
    """Write hoped = <x, θ̂> + β_r ‖x‖_r + lift ‖x‖_c and dearest, cheapest = <x, μ̂> ± α_c β ‖x‖_c for every action."""
    m, radii, start = promise.limits.size, sight.radii, sight.start
    rewards, own, other = sight.estimates[0], sight.reward_widths, sight.cost_widths
    for action in range(rewards.size):
        odds.hoped[action] = rewards[action] + (radii[0] * own[action] + lift * other[action])
    odds.safe_hoped[0] = start[0] + (radii[0] * start[1 + m] + lift * start[2 + m])
    for j in range(m):
        reach, ceiling = promise.cost_scale * radii[1 + j], promise.ceilings[j]
        costs, dearest, cheapest = sight.estimates[1 + j], odds.dearest[j], odds.cheapest[j]
        for action in range(costs.size):
            dearest[action] = min(costs[action] + reach * other[action], ceiling)
        odds.safe_dearest[j] = min(start[1 + j] + reach * start[2 + m], ceiling)
        odds.safe_cheapest[j] = start[1 + j] - reach * start[2 + m]
        if promise.directional:
            for action in range(costs.size):
                cheapest[action] = costs[action] - reach * other[action]


@kernel
def decide(
    features: Floats,
    eligible: Flags,
    flags: Ints,
    numbers: Floats,
    memory: Floats,
    sheet: Floats,
    work: Floats,
    flat: Floats,
    support: Ints,
    lottery: float,
) -> int:
    """Return the action drawn, or minus the reason for the safe one; write the mixture and the action played."""
    shape = named_shape(flags)
    terms = named_terms(shape, numbers)
    sight = named_sight(shape, sheet, features.shape[0])
    odds = named_odds(shape.constraints, features.shape[0], flat, support)
    see(features, shape, terms, reward_ridge(shape, memory), memory, sight, work)
    start = assess(terms.promise, sight.start, sight.radii)
    fill_odds(sight, terms.promise, start.lift, odds)
    if start.certified:
        action = choose(odds, terms.promise, eligible, lottery)
    else:
        stay(odds)
        action = -WARMING
    for i in range(shape.dimension):
        sight.action[i] = features[action, i] if action >= 0 else terms.safe[i]
    return action
