"""One safe mixture: the best under the pessimistic costs, or the most hopeful one mixed back to what is safe."""

import math
from typing import NamedTuple

from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.mixture import best_pair
from stagewise.kernels.promise import DRAWN, NOT_FINITE, NOTHING_SAFE, PREFERRED, TOO_LITTLE, Promise
from stagewise.kernels.simplex import best_mixture
from stagewise.kernels.tie import tie_floor


class Odds(NamedTuple):
    """The bounds of K actions and of the safe one, and room for the mixture made of them."""

    hoped: Floats  # (K,) optimistic rewards; −∞: not eligible
    dearest: Floats  # (m, K) pessimistic costs
    cheapest: Floats  # (m, K) optimistic costs; only directional mixtures read them
    safe_dearest: Floats  # (m,)
    safe_cheapest: Floats  # (m,)
    total: Floats  # (1 + m,) out: hoped reward and pessimistic costs of the mixture
    safe_hoped: Floats  # (1,)
    support: Ints  # (m + 2,) out: which actions are mixed, −1 for the safe one,
    shares: Floats  # (m + 2,) out: and with which probabilities
    basis: Floats  # (m + 3, m + 1) scratch
    gains: Floats  # (K,) scratch


def odds_size(m: int, count: int) -> int:
    """Return the length of the array behind the odds of `count` actions."""
    return (2 + 2 * m) * count + 3 * m + 2 + (m + 2) + (m + 3) * (m + 1)


@kernel
def named_odds(m: int, count: int, flat: Floats, support: Ints) -> Odds:
    """Name the odds: hoped | gains | dearest | cheapest | safe's | total | shares | basis."""
    rows = flat[: (2 + 2 * m) * count].reshape(2 + 2 * m, count)
    safe = rows.size
    total = safe + 2 * m + 1
    shares = total + 1 + m
    basis = shares + m + 2
    return Odds(
        rows[0],
        rows[2 : 2 + m],
        rows[2 + m :],
        flat[safe : safe + m],
        flat[safe + m : safe + 2 * m],
        flat[total:shares],
        flat[safe + 2 * m : total],
        support,
        flat[shares:basis],
        flat[basis : basis + (m + 3) * (m + 1)].reshape(m + 3, m + 1),
        rows[1],
    )


@kernel
def solve(odds: Odds, costs: Floats, safe_costs: Floats, limits: Floats) -> None:
    """Maximise Σ p_i hoped_i subject to Σ p_i cost_ji ≤ limit_j, into support and shares."""
    m = limits.size
    odds.support[:] = -1
    odds.shares[:] = 0.0
    if m == 1:
        pair = best_pair(odds.hoped, costs[0], odds.safe_hoped[0], safe_costs[0], limits[0])
        odds.support[0], odds.support[1] = pair.cheap, pair.dear
        odds.shares[0], odds.shares[1] = 1.0 - pair.share, pair.share
    else:
        best_mixture(
            odds.hoped,
            costs,
            odds.safe_hoped[0],
            safe_costs,
            limits,
            odds.support[: m + 1],
            odds.shares[: m + 1],
            odds.basis,
            odds.gains,
        )


@kernel
def add_up(odds: Odds) -> None:
    """Write the hoped reward and the pessimistic costs of the mixture."""
    odds.total[:] = 0.0
    for place in range(odds.support.size):
        share, action = odds.shares[place], odds.support[place]
        if share == 0.0:
            continue
        odds.total[0] += share * (odds.safe_hoped[0] if action < 0 else odds.hoped[action])
        for j in range(odds.safe_dearest.size):
            odds.total[1 + j] += share * (odds.safe_dearest[j] if action < 0 else odds.dearest[j, action])


@kernel
def mix_back(odds: Odds, limits: Floats) -> None:
    """Move as little weight to the safe action as makes the mixture safe: η = min_j (τ_j − c₀_j)/(C_j − c₀_j)."""
    add_up(odds)
    weight = 1.0
    for j in range(limits.size):
        rise, slack = odds.total[1 + j] - odds.safe_dearest[j], limits[j] - odds.safe_dearest[j]
        if rise > slack:
            weight = min(weight, slack / rise)
    if weight < 1.0:
        for place in range(odds.shares.size):
            odds.shares[place] *= weight
        last = odds.shares.size - 1
        odds.support[last] = -1
        odds.shares[last] += 1.0 - weight


@kernel
def drawn(odds: Odds, lottery: float) -> int:
    """Return the action that a uniform number in (0, 1) picks from the mixture."""
    passed, action = 0.0, -1
    for place in range(odds.support.size):
        if odds.shares[place] > 0.0:
            passed += odds.shares[place]
            action = odds.support[place]
            if lottery < passed:
                return action
    return action


@kernel
def choose(odds: Odds, promise: Promise, eligible: Flags, lottery: float) -> int:
    """Return the action drawn from the best safe mixture, or minus the reason for the safe action alone.

    Maximise E hoped subject to E dearest ≤ τ. Directional: subject to E cheapest ≤ τ, then mixed back to the safe
    action until E dearest ≤ τ (docs/theory/tractable-oplb.md). An empty `eligible` means all.
    """
    for action in range(eligible.size):
        if not eligible[action]:
            odds.hoped[action] = -math.inf
    if promise.directional:
        solve(odds, odds.cheapest, odds.safe_cheapest, promise.limits)
        if promise.returns:
            mix_back(odds, promise.limits)
    else:
        solve(odds, odds.dearest, odds.safe_dearest, promise.limits)
    add_up(odds)
    if not math.isfinite(odds.total[0]):
        stay(odds)
        return -NOT_FINITE
    for j in range(promise.limits.size):
        if promise.returns and not odds.total[1 + j] <= promise.thresholds[j]:
            stay(odds)
            return -NOTHING_SAFE
    if only_safe(odds):
        return -TOO_LITTLE if outdone(odds) else -PREFERRED
    action = drawn(odds, lottery)
    return action if action >= 0 else -DRAWN


@kernel
def only_safe(odds: Odds) -> bool:
    listed = 0.0
    for place in range(odds.support.size):
        if odds.support[place] >= 0:
            listed += odds.shares[place]
    return listed == 0.0


@kernel
def outdone(odds: Odds) -> bool:
    """Say whether a listed action promises more than the safe one, ties apart.

    Beside a slack above 0 some share of it would then be safe, and better: the safe action alone is never optimal.
    """
    largest = -math.inf
    for action in range(odds.hoped.size):
        largest = max(largest, odds.hoped[action])
    return tie_floor(largest) > odds.safe_hoped[0]


@kernel
def stay(odds: Odds) -> None:
    """Put the whole weight on the safe action."""
    odds.support[:] = -1
    odds.shares[:] = 0.0
    odds.shares[0] = 1.0
    add_up(odds)
