"""The best mixture under one limit: at most two actions, found at the price where a cheap and a dear one tie."""

import math
from typing import NamedTuple

from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.rules.tie import tie_floor

SAFE = -1
NOBODY = -2
ROUNDING = 2.0**-52
SMALLEST = 2.0**-1074
BLOCK = 128


class Pair(NamedTuple):
    """Play `dear` with probability `share`, else `cheap`; -1 is the safe action, and one action alone is (i, i, 0)."""

    cheap: int
    dear: int
    share: float


class Tied(NamedTuple):
    """The first action on each side of the limit among those that tie for the best, or NOBODY."""

    cheap: int
    dear: int


@kernel
def best_pair(reward: Floats, cost: Floats, safe_reward: float, safe_cost: float, limit: float) -> Pair:
    """Maximise Σ p_i reward_i subject to Σ p_i cost_i ≤ limit over mixtures p of the listed actions and the safe one.

        min_λ≥0 max_i reward_i + λ (limit − cost_i)        (the dual: no mixture is worth more)

    A cheap action that ties for the best at λ = 0 is the answer alone. At λ > 0 a cheap and a dear action that both
    tie for the best are the answer: mixed to cost the limit they are worth the dual value, less the tolerance of a tie.
    The search keeps one action on each side and moves λ to where they cross. The crossing rises with every exchange;
    when rounding stops it from rising the last pair stands. Requires safe_cost < limit; a reward of −∞ is never played.
    """
    tied = tied_at(0.0, reward, cost, safe_reward, safe_cost, limit)
    if tied.cheap != NOBODY:
        return Pair(tied.cheap, tied.cheap, 0.0)
    found = Tied(SAFE, tied.dear)
    cheap, dear, value = SAFE, tied.dear, -math.inf
    while True:
        cheap_reward, cheap_cost = of(cheap, reward, safe_reward), of(cheap, cost, safe_cost)
        price = (reward[dear] - cheap_reward) / (cost[dear] - cheap_cost)
        crossing = worth(cheap_reward, cheap_cost, price, limit)
        if not crossing > value:
            break
        value, found = crossing, Tied(cheap, dear)
        tied = tied_at(price, reward, cost, safe_reward, safe_cost, limit)
        if tied.cheap != NOBODY and tied.dear != NOBODY:
            found = tied
            break
        cheap = tied.cheap if tied.cheap != NOBODY else cheap
        dear = tied.dear if tied.dear != NOBODY else dear
    return pair_within(found.cheap, found.dear, of(found.cheap, cost, safe_cost), cost[found.dear], limit)


@kernel
def of(action: int, values: Floats, safe_value: float) -> float:
    """Return the value of a listed action, or of the safe one."""
    return safe_value if action == SAFE else values[action]


@kernel
def worth(reward: float, cost: float, price: float, limit: float) -> float:
    """Return reward + λ (limit − cost): what an action is worth when room under the limit has a price."""
    return reward + price * (limit - cost)


@kernel
def tied_at(price: float, reward: Floats, cost: Floats, safe_reward: float, safe_cost: float, limit: float) -> Tied:
    """Return the lowest index on each side of the limit that ties for the best at this price.

    The safe action stands on the cheap side, and only where no listed action of that side ties.
    """
    safe_worth = worth(safe_reward, safe_cost, price, limit)
    floor = tie_floor(max(safe_worth, largest_worth(reward, cost, price, limit)))
    cheap, dear = NOBODY, NOBODY
    for start in range(0, reward.size, BLOCK):
        stop = min(start + BLOCK, reward.size)
        if anybody_reaches(floor, reward[start:stop], cost[start:stop], price, limit, cheap == NOBODY, dear == NOBODY):
            for action in range(start, stop):
                if worth(reward[action], cost[action], price, limit) >= floor:
                    if cost[action] > limit and dear == NOBODY:
                        dear = action
                    if cost[action] <= limit and cheap == NOBODY:
                        cheap = action
            if cheap != NOBODY and dear != NOBODY:
                break
    if cheap == NOBODY and not safe_worth < floor:
        cheap = SAFE
    return Tied(cheap, dear)


@kernel
def largest_worth(reward: Floats, cost: Floats, price: float, limit: float) -> float:
    """Return max_i reward_i + λ (limit − cost_i), looking closely only at blocks that raise it."""
    largest = -math.inf
    for start in range(0, reward.size, BLOCK):
        stop = min(start + BLOCK, reward.size)
        if anybody_exceeds(largest, reward[start:stop], cost[start:stop], price, limit):
            for action in range(start, stop):
                largest = max(largest, worth(reward[action], cost[action], price, limit))
    return largest


@kernel
def anybody_exceeds(level: float, reward: Floats, cost: Floats, price: float, limit: float) -> bool:
    """Say whether any action is worth more: without fast-math this loop vectorises, while a maximum does not."""
    found = False
    for action in range(reward.size):
        found |= worth(reward[action], cost[action], price, limit) > level
    return found


@kernel
def anybody_reaches(
    floor: float, reward: Floats, cost: Floats, price: float, limit: float, cheap: bool, dear: bool
) -> bool:
    """Say whether any action of a side that is still looked for is worth the floor.

    Early on every action that was never played ties on the dear side: without the sides each block would be opened.
    """
    found = False
    for action in range(reward.size):
        wanted = cheap if cost[action] <= limit else dear
        found |= wanted & (worth(reward[action], cost[action], price, limit) >= floor)
    return found


@kernel
def pair_within(cheap: int, dear: int, cheap_cost: float, dear_cost: float, limit: float) -> Pair:
    """Return the pair with the largest share of the dear action, or the cheap action alone when there is no room."""
    share = safe_share(cheap_cost, dear_cost, limit)
    return Pair(cheap, dear, share) if share > 0.0 else Pair(cheap, cheap, 0.0)


@kernel
def safe_share(cheap_cost: float, dear_cost: float, limit: float) -> float:
    """Return s = (limit − cheap) / (dear − cheap), for cheap ≤ limit < dear, rounded so that the sum obeys the limit.

    (1 − s) · cheap + s · dear ≤ limit        (as computed in floating point)
    """
    guard = 0.0
    while True:
        share = (limit - cheap_cost - guard) / (dear_cost - cheap_cost)
        if not share > 0.0:
            return 0.0
        if (1.0 - share) * cheap_cost + share * dear_cost <= limit:
            return share
        guard = 2.0 * guard + ROUNDING * (abs(limit) + abs(cheap_cost)) + SMALLEST
