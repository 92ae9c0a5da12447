"""What a policy was promised, and what the safe action's own bounds allow in a round.

Costs are signed so that less is better. The switches of a layout:

    DIRECTIONAL   choose with both bounds optimistic, then come back to what is safe
    INFLATED      let the costs' uncertainty raise the hoped reward
    OFFERS_SAFE   there is a safe action; without it, an unconstrained learner
    CERTIFIED     play what a draw proposes if its regret is certified (see `certified`)
    RETURNS       where directional: come back to what is safe; without it, limits are broken (DOSLB)
    DECLARED      the safe action's costs are below what was declared, in every round: there is nothing to wait for
    ROVING        the safe action is another one in every round, and bounds are cut at what is declared of it
"""

from typing import NamedTuple

from stagewise.kernels.bounds import CENTRE, HALF
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.layout import DECLARED, FIRST_TERM, INFLATED, LIMITS, RETURNS, ROVING, SWITCHES

# Why the safe action is played; `Decision.fallback` puts all but DRAWN into words. From DISPUTED on the reason is what
# the data contradict, and of which cost (see `disputed`). Policies find three reasons themselves: the horizon is OVER,
# what was seen is UNEXPLAINED by any function of a class, or a program is UNSOLVED.
PREFERRED, WARMING, NOTHING_SAFE, NOT_FINITE, DRAWN, TOO_LITTLE, DISPUTED = 1, 2, 3, 4, 5, 13, 16
OVER, UNEXPLAINED, UNSOLVED = 6, 11, 12
CEILING, BASELINE, NOISE, UNSAFE = 0, 1, 2, 3  # its bound, its value at the safe action, its noise, x₀ being safe,
MODEL = 4  # or that it is what its model says
KINDS = 5
REWARD_SCALE, COST_SCALE, ALARM = 0, 1, 2  # in the settings: α_r (0: the theorem's own choice), α_c ≥ 1, and log 1/a


@kernel
def disputed(what: int, constraint: int) -> int:
    """Return the reason that CEILING, BASELINE, NOISE, UNSAFE or MODEL of a constraint stands for."""
    return DISPUTED + KINDS * constraint + what


@kernel
def threshold_of(layout: Ints, settings: Floats, constraint: int) -> float:
    """Return τ, the threshold of a cost."""
    return settings[FIRST_TERM + constraint]


@kernel
def limit_of(layout: Ints, settings: Floats, constraint: int) -> float:
    """Return τ less a margin for rounding: what the arithmetic aims at."""
    return settings[FIRST_TERM + layout[LIMITS] + constraint]


@kernel
def ceiling_of(layout: Ints, settings: Floats, constraint: int) -> float:
    """Return the a-priori bound on a mean cost; infinite: none."""
    return settings[FIRST_TERM + 2 * layout[LIMITS] + constraint]


class Terms(NamedTuple):
    """What every cost is held to, (m,) each."""

    thresholds: Floats
    limits: Floats
    ceilings: Floats


@kernel
def terms_of(layout: Ints, settings: Floats) -> Terms:
    """Return thresholds, limits and ceilings, as views of the settings."""
    m, at = layout[LIMITS], FIRST_TERM
    return Terms(settings[at : at + m], settings[at + m : at + 2 * m], settings[at + 2 * m : at + 3 * m])


@kernel
def has(layout: Ints, switch: int) -> bool:
    """Say whether a switch is on."""
    return layout[SWITCHES] & switch != 0


@kernel
def capped(high: float, low: float, ceiling: float) -> float:
    """Return an upper bound that no a-priori ceiling cuts below the lower one."""
    return max(min(high, ceiling), low)


@kernel
def cut_at_ceilings(layout: Ints, settings: Floats, bounds: Floats, mixes: bool) -> None:
    """Cut the costs' bounds at their ceilings, so that no width, and no bonus, counts what lies above.

    Not along rays whose start is uncertain: what bends is the ellipsoid's own width. Where all of a bound lies above
    its ceiling it is left as it is, and `watch.overrun` says so.
    """
    safe = bounds.shape[2] - 1
    for j in range(layout[LIMITS]):
        centre, half, ceiling = bounds[1 + j, CENTRE], bounds[1 + j, HALF], ceiling_of(layout, settings, j)
        if mixes or half[safe] == 0.0:
            for candidate in range(safe + 1):
                low, high = centre[candidate] - half[candidate], centre[candidate] + half[candidate]
                if low <= ceiling < high:
                    centre[candidate], half[candidate] = 0.5 * (low + ceiling), 0.5 * (ceiling - low)


@kernel
def weigh(layout: Ints, settings: Floats, bounds: Floats, factors: Floats) -> bool:
    """Write what a unit of each cost's half-width adds to the hoped reward; say whether the safe action may be left.

        factor_j = (1 + α_c) (1 − r₀)/(τ_j − c₀_j),    certain enough when (1 + α_c) h₀_j ≤ τ_j − c₀_j

    with the largest plausible 1 − r₀ and c₀ where they are unknown (docs/theory/unknown-baseline.md). The largest
    factor_j h_j over the costs is the bonus of a candidate. A declared c₀ < τ_j is certain enough at once (`declared`).
    """
    safe, scale, certain = bounds.shape[2] - 1, settings[COST_SCALE], True
    shortfall = 1.0 - bounds[0, CENTRE, safe]
    if bounds[0, HALF, safe] != 0.0:
        shortfall = max(0.0, shortfall + bounds[0, HALF, safe])
    for j in range(layout[LIMITS]):
        half = bounds[1 + j, HALF, safe]
        dearest = min(bounds[1 + j, CENTRE, safe] + scale * half, ceiling_of(layout, settings, j))
        slack = limit_of(layout, settings, j) - dearest
        factors[j] = 0.0
        declared = has(layout, ROVING) or has(layout, DECLARED)
        if not (slack > 0.0 and (declared or (1.0 + scale) * half <= slack)):
            certain = False
        elif has(layout, INFLATED):
            theorem = (1.0 + scale) * shortfall / slack
            factors[j] = settings[REWARD_SCALE] - 1.0 if settings[REWARD_SCALE] > 0.0 else theorem
    return certain or not has(layout, RETURNS)


@kernel
def safe_hope(layout: Ints, bounds: Floats, factors: Floats) -> float:
    """Return the hoped reward of the safe action."""
    safe, bonus = bounds.shape[2] - 1, 0.0
    for j in range(layout[LIMITS]):
        bonus = max(bonus, factors[j] * bounds[1 + j, HALF, safe])
    return bounds[0, CENTRE, safe] + bounds[0, HALF, safe] + bonus


@kernel
def safe_cost(layout: Ints, settings: Floats, bounds: Floats, constraint: int) -> float:
    """Return the pessimistic cost of the safe action."""
    safe = bounds.shape[2] - 1
    centre, half = bounds[1 + constraint, CENTRE, safe], settings[COST_SCALE] * bounds[1 + constraint, HALF, safe]
    return capped(centre + half, centre - half, ceiling_of(layout, settings, constraint))
