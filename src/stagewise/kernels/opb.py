"""OPB (Algorithm 3) and UCB: an interval for every arm, then one linear program over mixtures, or the largest end."""

import math
from typing import NamedTuple

from stagewise.kernels.blend import Odds, choose, named_odds, stay
from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.counts import Radius, Tally, count_pull, named_tally
from stagewise.kernels.promise import (
    NOT_FINITE,
    WARMING,
    Promise,
    capped,
    factor_of,
    named_promise,
    shortfall_of,
    slack_of,
    suffices,
)
from stagewise.kernels.tie import first_best
from stagewise.kernels.watch_arms import mistold_arms


class Terms(NamedTuple):
    """The settings, named."""

    arms: int  # K
    safe: int  # the safe arm; −1: none
    radius: Radius
    known: Floats  # (1 + m,) what is known at the safe arm
    promise: Promise


class Home(NamedTuple):
    """The safe arm in a round, and what its slack makes of the costs' uncertainty."""

    centres: Floats  # (1 + m,) reward and costs
    halves: Floats  # (1 + m,) 0: known
    factors: Floats  # (m,) what a unit of a cost's half-width adds to the hoped reward


@kernel
def named_terms(flags: Ints, numbers: Floats) -> Terms:
    """Name the settings: log 1/δ' | R | lows | known | the promise."""
    m, k = flags[1], 1 + flags[1]
    promise = named_promise(numbers, m, flags[5] != 0, flags[6] != 0, flags[3] != 0, flags[4] != 0, flags[2] >= 0)
    radius = Radius(flags[7], numbers[0], numbers[1 : 1 + k], numbers[1 + k : 1 + 2 * k])
    return Terms(flags[0], flags[2], radius, numbers[1 + 2 * k : 1 + 3 * k], promise)


@kernel
def home_size(m: int) -> int:
    """Return the length of the work array behind `Home`."""
    return 2 + 3 * m


@kernel
def named_home(m: int, work: Floats) -> Home:
    return Home(work[: 1 + m], work[1 + m : 2 + 2 * m], work[2 + 2 * m : 2 + 3 * m])


@kernel
def fill_home(terms: Terms, tally: Tally, home: Home) -> None:
    """Write the safe arm's interval: what is known of it has no width."""
    for signal in range(home.centres.size):
        known = terms.promise.reward_known if signal == 0 else terms.promise.cost_known
        home.centres[signal] = terms.known[signal] if known else tally.centres[signal, terms.safe]
        home.halves[signal] = 0.0 if known else tally.halves[signal, terms.safe]


@kernel
def weigh(promise: Promise, home: Home) -> tuple[bool, bool]:
    """Write the factors; return whether the safe arm is certain enough to be left, and whether a factor changed."""
    shortfall = shortfall_of(promise, home.centres[0], home.halves[0])
    certified, changed = True, False
    for j in range(home.factors.size):
        doubt = home.halves[1 + j]
        slack, factor = slack_of(promise, j, home.centres[1 + j], doubt), 0.0
        if not suffices(promise, slack, doubt):
            certified = False
        elif promise.inflated:
            factor = factor_of(promise, shortfall, slack)
        changed |= factor != home.factors[j]
        home.factors[j] = factor
    return certified, changed


@kernel
def fill_odds(terms: Terms, tally: Tally, home: Home, first: int, last: int, odds: Odds) -> None:
    """Write hoped = r̂ + h_r + max_j factor_j h_j and dearest, cheapest = ĉ ± α_c h for the arms `first` to `last`.

    Costs are clipped at their ceiling. The bonus is not: optimism rests on it (docs/errata.md).
    """
    promise, hoped = terms.promise, odds.hoped
    for arm in range(first, last):
        hoped[arm] = 0.0
    for j in range(home.factors.size):
        scale, ceiling, factor = promise.cost_scale, promise.ceilings[j], home.factors[j]
        centres, halves, dearest, cheapest = (
            tally.centres[1 + j],
            tally.halves[1 + j],
            odds.dearest[j],
            odds.cheapest[j],
        )
        for arm in range(first, last):
            hoped[arm] = max(hoped[arm], factor * halves[arm])
            dearest[arm] = min(centres[arm] + scale * halves[arm], ceiling)
        if promise.directional:
            for arm in range(first, last):
                cheapest[arm] = centres[arm] - scale * halves[arm]
    centres, halves = tally.centres[0], tally.halves[0]
    for arm in range(first, last):
        hoped[arm] += centres[arm] + halves[arm]
    if terms.safe >= 0:
        hoped[terms.safe] = -math.inf  # it stands beside the list, as every safe action does


@kernel
def fill_safe_odds(terms: Terms, home: Home, odds: Odds) -> None:
    """Write the same for the safe arm."""
    promise, bonus = terms.promise, 0.0
    for j in range(home.factors.size):
        centre, half = home.centres[1 + j], home.halves[1 + j]
        odds.safe_cheapest[j] = centre - promise.cost_scale * half
        odds.safe_dearest[j] = capped(centre + promise.cost_scale * half, odds.safe_cheapest[j], promise.ceilings[j])
        bonus = max(bonus, home.factors[j] * half)
    odds.safe_hoped[0] = home.centres[0] + home.halves[0] + bonus


@kernel
def absorb(arm: int, values: Floats, flags: Ints, numbers: Floats, memory: Floats) -> None:
    """Take in the reward and the costs (1 + m,) of one pull."""
    terms = named_terms(flags, numbers)
    tally = named_tally(terms.radius.kind, values.size - 1, terms.arms, memory)
    count_pull(tally, arm, values, terms.radius)


@kernel
def decide(
    eligible: Flags,
    flags: Ints,
    numbers: Floats,
    memory: Floats,
    work: Floats,
    flat: Floats,
    support: Ints,
    lottery: float,
) -> int:
    """Return the arm drawn, or minus the reason for the safe one; write the mixture. `work` is (home_size,)."""
    terms = named_terms(flags, numbers)
    m = terms.promise.limits.size
    tally = named_tally(terms.radius.kind, m, terms.arms, memory)
    odds = named_odds(m, terms.arms, flat, support)
    return take(eligible, terms, tally, odds, named_home(m, work), lottery, -1)


@kernel
def take(eligible: Flags, terms: Terms, tally: Tally, odds: Odds, home: Home, lottery: float, pulled: int) -> int:
    """Decide. `pulled`: the only arm whose interval changed since the last decision left odds and home; −1: all may."""
    fill_home(terms, tally, home)
    certified, changed = weigh(terms.promise, home)
    if pulled < 0 or changed:
        fill_odds(terms, tally, home, 0, terms.arms, odds)
    else:
        fill_odds(terms, tally, home, pulled, pulled + 1, odds)
    fill_safe_odds(terms, home, odds)
    doubt = mistold_arms(terms.promise, terms.radius, tally, terms.safe, terms.known)
    if doubt > 0 or not certified:
        stay(odds)
        return -doubt if doubt > 0 else -WARMING
    return choose(odds, terms.promise, eligible, lottery)


@kernel
def decide_unconstrained(eligible: Flags, flags: Ints, numbers: Floats, memory: Floats, hoped: Floats) -> int:
    """Return the arm with the largest r̂ + h; write these bounds."""
    terms = named_terms(flags, numbers)
    tally = named_tally(terms.radius.kind, 0, terms.arms, memory)
    return take_unconstrained(eligible, terms, tally, hoped)


@kernel
def take_unconstrained(eligible: Flags, terms: Terms, tally: Tally, hoped: Floats) -> int:
    """Decide where nothing limits."""
    for arm in range(terms.arms):
        hoped[arm] = tally.centres[0, arm] + tally.halves[0, arm]
        if eligible.size > 0 and not eligible[arm]:
            hoped[arm] = -math.inf
    best = first_best(hoped)
    return best if best >= 0 else -NOT_FINITE
