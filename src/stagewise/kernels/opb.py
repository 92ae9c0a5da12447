"""OPB (Algorithm 3) and UCB: bounds for every arm, then one linear program over mixtures, or the largest bound."""

import math
from typing import NamedTuple

from stagewise.kernels.blend import Odds, choose, named_odds, stay
from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.counts import Tally, named_tally
from stagewise.kernels.promise import NOT_FINITE, WARMING, Promise, Start, assess, named_promise
from stagewise.kernels.tie import first_best


class Terms(NamedTuple):
    """The settings, named."""

    arms: int  # K
    safe: int  # the safe arm; −1: none
    noise: Floats  # (1 + m,) R
    known: Floats  # (1 + m,) what is known at the safe arm
    promise: Promise


@kernel
def named_terms(flags: Ints, numbers: Floats) -> Terms:
    """Name the settings: R | known | the promise."""
    m, known = flags[1], 1 + flags[1]
    promise = named_promise(numbers, m, flags[5] != 0, flags[6] != 0, flags[3] != 0, flags[4] != 0, flags[2] >= 0)
    return Terms(flags[0], flags[2], numbers[:known], numbers[known : 2 * known], promise)


@kernel
def fill_start(terms: Terms, tally: Tally, start: Floats) -> None:
    """Write the safe arm's reward, costs, reward width and cost width: what is known of it has no width."""
    m, safe = terms.promise.limits.size, terms.safe
    for signal in range(1 + m):
        known = terms.promise.reward_known if signal == 0 else terms.promise.cost_known
        start[signal] = terms.known[signal] if known else tally.means[signal, safe]
    start[1 + m] = 0.0 if terms.promise.reward_known else tally.widths[safe]
    start[2 + m] = 0.0 if terms.promise.cost_known else tally.widths[safe]


@kernel
def fill_odds(terms: Terms, tally: Tally, lift: float, first: int, last: int, odds: Odds) -> None:
    """Write hoped = r̂ + (R + lift) w and dearest, cheapest = ĉ ± α_c R w for the arms from `first` to `last`.

    Costs are clipped at their ceiling. Rewards are not: optimism rests on the excess (docs/errata.md).
    """
    promise, widths, m = terms.promise, tally.widths, terms.promise.limits.size
    rewards, bonus = tally.means[0], terms.noise[0] + lift
    for arm in range(first, last):
        odds.hoped[arm] = rewards[arm] + bonus * widths[arm]
    for j in range(m):
        reach, ceiling = promise.cost_scale * terms.noise[1 + j], promise.ceilings[j]
        costs, dearest, cheapest = tally.means[1 + j], odds.dearest[j], odds.cheapest[j]
        for arm in range(first, last):
            dearest[arm] = min(costs[arm] + reach * widths[arm], ceiling)
        if promise.directional:
            for arm in range(first, last):
                cheapest[arm] = costs[arm] - reach * widths[arm]
    if terms.safe >= 0:
        odds.hoped[terms.safe] = -math.inf  # it stands beside the list, as every safe action does


@kernel
def fill_safe_odds(terms: Terms, lift: float, start: Floats, odds: Odds) -> None:
    """Write the same for the safe arm."""
    promise, m = terms.promise, terms.promise.limits.size
    for j in range(m):
        reach = promise.cost_scale * terms.noise[1 + j]
        odds.safe_dearest[j] = min(start[1 + j] + reach * start[2 + m], promise.ceilings[j])
        odds.safe_cheapest[j] = start[1 + j] - reach * start[2 + m]
    if terms.safe >= 0:
        odds.safe_hoped[0] = start[0] + terms.noise[0] * start[1 + m] + lift * start[2 + m]


@kernel
def decide(
    eligible: Flags,
    flags: Ints,
    numbers: Floats,
    memory: Floats,
    start: Floats,
    flat: Floats,
    support: Ints,
    lottery: float,
) -> int:
    """Return the arm drawn, or minus the reason for the safe one; write the mixture. `start` is (m + 3,) work."""
    terms = named_terms(flags, numbers)
    m = terms.promise.limits.size
    tally = named_tally(m, terms.arms, memory)
    odds = named_odds(m, terms.arms, flat, support)
    return take(eligible, terms, tally, odds, start, lottery)


@kernel
def take(eligible: Flags, terms: Terms, tally: Tally, odds: Odds, start: Floats, lottery: float) -> int:
    """Decide."""
    fill_start(terms, tally, start)
    assessed = assess(terms.promise, start, terms.noise)
    fill_odds(terms, tally, assessed.lift, 0, terms.arms, odds)
    return conclude(eligible, terms, assessed, start, odds, lottery)


@kernel
def take_again(
    eligible: Flags, terms: Terms, tally: Tally, odds: Odds, start: Floats, lottery: float, pulled: int, lift: float
) -> tuple[int, float]:
    """Decide as `take` does where the odds are as the last decision left them; return the lift too.

    Only the arm that was pulled since has other bounds, unless the lift is another. No arm: fill in all.
    """
    fill_start(terms, tally, start)
    assessed = assess(terms.promise, start, terms.noise)
    if pulled < 0 or assessed.lift != lift:
        fill_odds(terms, tally, assessed.lift, 0, terms.arms, odds)
    else:
        fill_odds(terms, tally, assessed.lift, pulled, pulled + 1, odds)
    return conclude(eligible, terms, assessed, start, odds, lottery), assessed.lift


@kernel
def conclude(eligible: Flags, terms: Terms, assessed: Start, start: Floats, odds: Odds, lottery: float) -> int:
    """Return the arm drawn, or minus the reason for the safe one."""
    fill_safe_odds(terms, assessed.lift, start, odds)
    if not assessed.certified:
        stay(odds)
        return -WARMING
    return choose(odds, terms.promise, eligible, lottery)


@kernel
def decide_unconstrained(eligible: Flags, flags: Ints, numbers: Floats, memory: Floats, hoped: Floats) -> int:
    """Return the arm with the largest r̂ + Rw; write these bounds."""
    terms = named_terms(flags, numbers)
    tally = named_tally(0, terms.arms, memory)
    return take_unconstrained(eligible, terms, tally, hoped)


@kernel
def take_unconstrained(eligible: Flags, terms: Terms, tally: Tally, hoped: Floats) -> int:
    """Decide where nothing limits."""
    for arm in range(terms.arms):
        hoped[arm] = tally.means[0, arm] + terms.noise[0] * tally.widths[arm]
        if eligible.size > 0 and not eligible[arm]:
            hoped[arm] = -math.inf
    best = first_best(hoped)
    return best if best >= 0 else -NOT_FINITE
