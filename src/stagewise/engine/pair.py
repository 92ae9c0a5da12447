"""Tie rule: values within a billionth of the best are equal, and the lowest index wins.

First rounds are exact ties, because unplayed actions share their bounds; without a rule, rounding would decide.

The best mixture under one limit: at most two actions, found at the price where a cheap and a costly one tie.
"""

import math
from typing import NamedTuple

from stagewise.engine.compile import Floats, kernel

TIE = 1e-9


@kernel
def tie_floor(best: float) -> float:
    """Return the smallest value that still ties with the best: best − TIE · |best|."""
    return best - TIE * abs(best)


@kernel
def first_best(values: Floats) -> int:
    """Return the lowest index whose value ties with the largest, or -1 when no value is above −∞."""
    best = -math.inf
    for index in range(values.size):
        best = max(best, values[index])
    if best == -math.inf:
        return -1
    floor = tie_floor(best)
    for index in range(values.size):
        if values[index] >= floor:
            return index
    return -1


SAFE = -1
NO_ACTION = -2
ROUNDING = 2.0**-52
SMALLEST = 2.0**-1074
BLOCK = 128


class Pair(NamedTuple):
    """Play `costly` with probability `share`, else `cheap`; -1 is the safe action; a single action is (i, i, 0)."""

    cheap: int
    costly: int
    share: float


class Ties(NamedTuple):
    """The first action on each side of the limit among those that tie for the best, or NO_ACTION."""

    cheap: int
    costly: int


@kernel
def find_best_pair(reward: Floats, cost: Floats, safe_reward: float, safe_cost: float, limit: float) -> Pair:
    """Maximise Σ p_i reward_i subject to Σ p_i cost_i ≤ limit over mixtures p of the listed actions and the safe one.

        min_λ≥0 max_i reward_i + λ (limit − cost_i)        (the dual: no mixture is worth more)

    A cheap action that ties for the best at λ = 0 is the answer alone. At λ > 0 a cheap and a costly action that both
    tie for the best are the answer: mixed to cost the limit they attain the dual value, less the tolerance of a tie.
    The search keeps one action on each side and moves λ to where they cross. The crossing rises with every exchange;
    when rounding stops it from rising, the last pair is used. Requires safe_cost < limit; a reward of −∞ is never
    played.
    """
    tied = find_ties(0.0, reward, cost, safe_reward, safe_cost, limit)
    if tied.cheap != NO_ACTION:
        return Pair(tied.cheap, tied.cheap, 0.0)
    found = Ties(SAFE, tied.costly)
    cheap, costly, value = SAFE, tied.costly, -math.inf
    while True:
        cheap_reward, cheap_cost = get_value(cheap, reward, safe_reward), get_value(cheap, cost, safe_cost)
        price = (reward[costly] - cheap_reward) / (cost[costly] - cheap_cost)
        crossing = compute_lagrangian(cheap_reward, cheap_cost, price, limit)
        if not crossing > value:
            break
        value, found = crossing, Ties(cheap, costly)
        tied = find_ties(price, reward, cost, safe_reward, safe_cost, limit)
        if tied.cheap != NO_ACTION and tied.costly != NO_ACTION:
            found = tied
            break
        cheap = tied.cheap if tied.cheap != NO_ACTION else cheap
        costly = tied.costly if tied.costly != NO_ACTION else costly
    return build_pair(found.cheap, found.costly, get_value(found.cheap, cost, safe_cost), cost[found.costly], limit)


@kernel
def get_value(action: int, values: Floats, safe_value: float) -> float:
    """Return the value of a listed action, or of the safe one."""
    return safe_value if action == SAFE else values[action]


@kernel
def compute_lagrangian(reward: float, cost: float, price: float, limit: float) -> float:
    """Return reward + λ (limit − cost): the value of an action when slack under the limit has the price λ."""
    return reward + price * (limit - cost)


@kernel
def find_ties(price: float, reward: Floats, cost: Floats, safe_reward: float, safe_cost: float, limit: float) -> Ties:
    """Return the lowest index on each side of the limit that ties for the best at this price.

    The safe action counts on the cheap side, and only where no listed action of that side ties.
    """
    safe_lagrangian = compute_lagrangian(safe_reward, safe_cost, price, limit)
    floor = tie_floor(max(safe_lagrangian, compute_largest_lagrangian(reward, cost, price, limit)))
    cheap, costly = NO_ACTION, NO_ACTION
    for start in range(0, reward.size, BLOCK):
        stop = min(start + BLOCK, reward.size)
        if any_reaches(
            floor, reward[start:stop], cost[start:stop], price, limit, cheap == NO_ACTION, costly == NO_ACTION
        ):
            for action in range(start, stop):
                if compute_lagrangian(reward[action], cost[action], price, limit) >= floor:
                    if cost[action] > limit and costly == NO_ACTION:
                        costly = action
                    if cost[action] <= limit and cheap == NO_ACTION:
                        cheap = action
            if cheap != NO_ACTION and costly != NO_ACTION:
                break
    if cheap == NO_ACTION and not safe_lagrangian < floor:
        cheap = SAFE
    return Ties(cheap, costly)


@kernel
def compute_largest_lagrangian(reward: Floats, cost: Floats, price: float, limit: float) -> float:
    """Return max_i reward_i + λ (limit − cost_i), examining only chunks that raise it."""
    largest = -math.inf
    for start in range(0, reward.size, BLOCK):
        stop = min(start + BLOCK, reward.size)
        if any_exceeds(largest, reward[start:stop], cost[start:stop], price, limit):
            for action in range(start, stop):
                largest = max(largest, compute_lagrangian(reward[action], cost[action], price, limit))
    return largest


@kernel
def any_exceeds(level: float, reward: Floats, cost: Floats, price: float, limit: float) -> bool:
    """Return whether any action exceeds a level: without fast-math this loop vectorises, while a maximum does not."""
    found = False
    for action in range(reward.size):
        found |= compute_lagrangian(reward[action], cost[action], price, limit) > level
    return found


@kernel
def any_reaches(
    floor: float, reward: Floats, cost: Floats, price: float, limit: float, cheap: bool, costly: bool
) -> bool:
    """Return whether any action on a side that is still searched reaches the floor.

    At first every unplayed action ties on the costly side; without the sides every chunk would be examined.
    """
    found = False
    for action in range(reward.size):
        searched = cheap if cost[action] <= limit else costly
        found |= searched & (compute_lagrangian(reward[action], cost[action], price, limit) >= floor)
    return found


@kernel
def build_pair(cheap: int, costly: int, cheap_cost: float, costly_cost: float, limit: float) -> Pair:
    """Return the pair with the largest safe share of the costly action, or the cheap action alone if that is 0."""
    share = safe_share(cheap_cost, costly_cost, limit)
    return Pair(cheap, costly, share) if share > 0.0 else Pair(cheap, cheap, 0.0)


@kernel
def safe_share(cheap_cost: float, costly_cost: float, limit: float) -> float:
    """Return s = (limit − cheap) / (costly − cheap), for cheap ≤ limit < costly, rounded to keep the limit.

    (1 − s) · cheap + s · costly ≤ limit        (as computed in floating point)
    """
    guard = 0.0
    while True:
        share = (limit - cheap_cost - guard) / (costly_cost - cheap_cost)
        if not share > 0.0:
            return 0.0
        if (1.0 - share) * cheap_cost + share * costly_cost <= limit:
            return share
        guard = 2.0 * guard + ROUNDING * (abs(limit) + abs(cheap_cost)) + SMALLEST
