"""OPLB (Algorithm 2) in its tractable form: bounds for every action, then one linear program over mixtures."""

from stagewise.kernels.blend import Odds, choose, named_odds, stay
from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.following import copy_estimates, recognised
from stagewise.kernels.linear import Mind, mistold, named_mind, see
from stagewise.kernels.promise import WARMING, Promise, assess, capped
from stagewise.kernels.sight import Sight, named_sight
from stagewise.kernels.watch import overrun


@kernel
def fill_odds(sight: Sight, promise: Promise, lift: float, odds: Odds) -> None:
    """Write hoped = <x, θ̂> + β_r ‖x‖_r + lift ‖x‖_c and dearest, cheapest = <x, μ̂> ± α_c β ‖x‖_c for every action."""
    m, radii, start = promise.limits.size, sight.radii, sight.start
    rewards, own, other = sight.rewards, sight.reward_widths, sight.cost_widths
    for action in range(rewards.size):
        odds.hoped[action] = rewards[action] + (radii[0] * own[action] + lift * other[action])
    odds.safe_hoped[0] = start[0] + (radii[0] * start[1 + m] + lift * start[2 + m])
    for j in range(m):
        reach, ceiling = promise.cost_scale * radii[1 + j], promise.ceilings[j]
        costs, dearest, cheapest = sight.costs[j], odds.dearest[j], odds.cheapest[j]
        for action in range(costs.size):
            dearest[action] = min(costs[action] + reach * other[action], ceiling)
        odds.safe_cheapest[j] = start[1 + j] - reach * start[2 + m]
        odds.safe_dearest[j] = capped(start[1 + j] + reach * start[2 + m], odds.safe_cheapest[j], ceiling)
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
    mind = named_mind(flags, numbers, memory)
    sight, known = named_sight(mind.shape, sheet, features.shape[0]), recognised(features, mind.followed)
    odds = named_odds(mind.shape.constraints, features.shape[0], flat, support)
    if known:
        copy_estimates(mind, sight)
    return take(features, known, eligible, mind, sight, odds, work, lottery)


@kernel
def take(
    features: Floats,
    known: bool,
    eligible: Flags,
    mind: Mind,
    sight: Sight,
    odds: Odds,
    work: Floats,
    lottery: float,
) -> int:
    """Decide; `known`: these are the followed actions."""
    see(features, known, mind, sight, work)
    return draw_seen(features, eligible, mind.promise, mind.safe, sight, odds, lottery, mistold(mind))


@kernel
def draw_seen(
    features: Floats,
    eligible: Flags,
    promise: Promise,
    safe: Floats,
    sight: Sight,
    odds: Odds,
    lottery: float,
    doubt: int,
) -> int:
    """Return the action drawn from the best safe mixture of what was seen, or minus the reason for the safe one.

    `doubt`: what was declared and is contradicted, or 0.
    """
    start = assess(promise, sight.start, sight.radii)
    fill_odds(sight, promise, start.lift, odds)
    if doubt == 0:
        doubt = overrun(promise, sight.costs, sight.cost_widths, sight.start, sight.radii)
    if doubt > 0:
        stay(odds)
        action = -doubt
    elif start.certified:
        action = choose(odds, promise, eligible, lottery)
    else:
        stay(odds)
        action = -WARMING
    for i in range(safe.size):
        sight.action[i] = features[action, i] if action >= 0 else safe[i]
    return action
