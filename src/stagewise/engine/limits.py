"""Limits of a policy, and what the safe action's bounds allow in a round.

Costs are signed so that less is better. The switches of a layout:

    DIRECTIONAL         choose with both bounds optimistic, then mix back to a safe choice
    INFLATED            add a bonus for the costs' uncertainty to the optimistic reward
    OFFERS_SAFE         there is a safe action; without it, the learner is unconstrained
    CERTIFIED           play the posterior sample's proposal if its regret is certified (see `rules.certified`)
    ENFORCES_LIMITS     if directional: mix back to a safe choice; without it, limits are violated (DOSLB)
    SAFE_COST_DECLARED  the safe action's costs are below declared bounds in every round, so exploration starts at once
    PER_ROUND_SAFE      every round has its own safe action, and bounds are clipped at what is declared of it
"""

from typing import NamedTuple

from stagewise.engine.compile import Floats, Ints, kernel
from stagewise.engine.layout import (
    ENFORCES_LIMITS,
    FIRST_THRESHOLD,
    INFLATED,
    LIMITS,
    PER_ROUND_SAFE,
    SAFE_COST_DECLARED,
    SWITCHES,
)
from stagewise.engine.workspace import CENTRE, HALF

# Reason codes for playing the safe action (see `stagewise.records.reason`). Codes from CONTRADICTED on encode which
# assumption of which cost the data contradict (see `encode_contradiction`). Policies set three codes themselves:
# HORIZON_EXCEEDED, NO_PLAUSIBLE_FUNCTION and SOLVER_FAILED.
NO_BETTER_ACTION, SAFE_ACTION_COST_UNCERTAIN, NO_CERTIFIED_ACTION, BOUNDS_NOT_FINITE, SAFE_ACTION_DRAWN = 1, 2, 3, 4, 5
SAFE_SHARE_TOO_SMALL, PROPOSAL_NOT_CERTIFIED, CONTRADICTED = 13, 14, 16
HORIZON_EXCEEDED, NO_PLAUSIBLE_FUNCTION, SOLVER_FAILED = 6, 11, 12
MEAN_COST_BOUND, SAFE_COST, NOISE, UNSAFE = 0, 1, 2, 3  # kinds of contradiction: bound, value at x₀, noise, x₀ unsafe,
MODEL = 4  # or the model itself
CONTRADICTION_KINDS = 5
REWARD_SCALE, COST_SCALE, ALARM = 0, 1, 2  # in the settings: α_r (0: the theorem's value), α_c ≥ 1, log 1/a


@kernel
def encode_contradiction(kind: int, constraint: int) -> int:
    """Return the reason code of a contradiction: its kind (MEAN_COST_BOUND, SAFE_COST, …) and its constraint."""
    return CONTRADICTED + CONTRADICTION_KINDS * constraint + kind


@kernel
def get_threshold(layout: Ints, settings: Floats, constraint: int) -> float:
    """Return τ, the threshold of a cost."""
    return settings[FIRST_THRESHOLD + constraint]


@kernel
def get_limit(layout: Ints, settings: Floats, constraint: int) -> float:
    """Return τ less a margin for rounding, which the arithmetic uses as the limit."""
    return settings[FIRST_THRESHOLD + layout[LIMITS] + constraint]


@kernel
def get_ceiling(layout: Ints, settings: Floats, constraint: int) -> float:
    """Return the a-priori bound on a mean cost; infinite: none."""
    return settings[FIRST_THRESHOLD + 2 * layout[LIMITS] + constraint]


class LimitTerms(NamedTuple):
    """Thresholds, limits and ceilings of all costs, (m,) each."""

    thresholds: Floats
    limits: Floats
    ceilings: Floats


@kernel
def get_limit_terms(layout: Ints, settings: Floats) -> LimitTerms:
    """Return thresholds, limits and ceilings, as views of the settings."""
    m, at = layout[LIMITS], FIRST_THRESHOLD
    return LimitTerms(settings[at : at + m], settings[at + m : at + 2 * m], settings[at + 2 * m : at + 3 * m])


@kernel
def has_switch(layout: Ints, switch: int) -> bool:
    return layout[SWITCHES] & switch != 0


@kernel
def clip_upper_bound(high: float, low: float, ceiling: float) -> float:
    """Return the upper bound clipped at the a-priori ceiling, but not below the lower bound."""
    return max(min(high, ceiling), low)


@kernel
def clip_at_ceilings(layout: Ints, settings: Floats, bounds: Floats, mixes: bool) -> None:
    """Clip the costs' bounds at their ceilings, so that no width or bonus counts what lies above them.

    Not along rays whose start is uncertain, where the width is that of the ellipsoid. A bound that lies wholly above
    its ceiling is left unchanged; `check_ceilings` reports it.
    """
    safe = bounds.shape[2] - 1
    for j in range(layout[LIMITS]):
        centre, half, ceiling = bounds[1 + j, CENTRE], bounds[1 + j, HALF], get_ceiling(layout, settings, j)
        if mixes or half[safe] == 0.0:
            for candidate in range(safe + 1):
                low, high = centre[candidate] - half[candidate], centre[candidate] + half[candidate]
                if low <= ceiling < high:
                    centre[candidate], half[candidate] = 0.5 * (low + ceiling), 0.5 * (ceiling - low)


@kernel
def compute_bonus_factors(layout: Ints, settings: Floats, bounds: Floats, factors: Floats) -> bool:
    """Write each cost's bonus factor; return whether the safe cost is certain enough to play other actions.

        factor_j = (1 + α_c) (1 − r₀)/(τ_j − c₀_j),    certain enough when (1 + α_c) h₀_j ≤ τ_j − c₀_j

    with the largest plausible 1 − r₀ and c₀ where they are unknown (docs/theory/unknown-baseline.md). The bonus of a
    candidate is the largest factor_j h_j over the costs. A declared c₀ < τ_j is certain enough at once (`declared`).
    """
    safe, scale, certain = bounds.shape[2] - 1, settings[COST_SCALE], True
    shortfall = 1.0 - bounds[0, CENTRE, safe]
    if bounds[0, HALF, safe] != 0.0:
        shortfall = max(0.0, shortfall + bounds[0, HALF, safe])
    for j in range(layout[LIMITS]):
        half = bounds[1 + j, HALF, safe]
        pessimistic_cost = min(bounds[1 + j, CENTRE, safe] + scale * half, get_ceiling(layout, settings, j))
        slack = get_limit(layout, settings, j) - pessimistic_cost
        factors[j] = 0.0
        declared = has_switch(layout, PER_ROUND_SAFE) or has_switch(layout, SAFE_COST_DECLARED)
        if not (slack > 0.0 and (declared or (1.0 + scale) * half <= slack)):
            certain = False
        elif has_switch(layout, INFLATED):
            theorem = (1.0 + scale) * shortfall / slack
            factors[j] = settings[REWARD_SCALE] - 1.0 if settings[REWARD_SCALE] > 0.0 else theorem
    return certain or not has_switch(layout, ENFORCES_LIMITS)


@kernel
def compute_safe_optimistic_reward(layout: Ints, bounds: Floats, factors: Floats) -> float:
    """Return the optimistic reward of the safe action."""
    safe, bonus = bounds.shape[2] - 1, 0.0
    for j in range(layout[LIMITS]):
        bonus = max(bonus, factors[j] * bounds[1 + j, HALF, safe])
    return bounds[0, CENTRE, safe] + bounds[0, HALF, safe] + bonus


@kernel
def compute_safe_cost(layout: Ints, settings: Floats, bounds: Floats, constraint: int) -> float:
    """Return the pessimistic cost of the safe action."""
    safe = bounds.shape[2] - 1
    centre, half = bounds[1 + constraint, CENTRE, safe], settings[COST_SCALE] * bounds[1 + constraint, HALF, safe]
    return clip_upper_bound(centre + half, centre - half, get_ceiling(layout, settings, constraint))


@kernel
def check_ceilings(layout: Ints, settings: Floats, bounds: Floats) -> int:
    """Return the code of a cost whose lower bound exceeds its ceiling, or its threshold at an unknown x₀; 0: none."""
    safe = bounds.shape[2] - 1
    for j in range(layout[LIMITS]):
        ceiling, centre, half = get_ceiling(layout, settings, j), bounds[1 + j, CENTRE], bounds[1 + j, HALF]
        above = False
        for candidate in range(safe + 1):
            above |= centre[candidate] - half[candidate] > ceiling
        if above:
            return encode_contradiction(MEAN_COST_BOUND, j)
        if half[safe] != 0.0 and centre[safe] - half[safe] > get_threshold(layout, settings, j):
            return encode_contradiction(UNSAFE, j)
    return 0


@kernel
def is_same_action(one: Floats, other: Floats) -> bool:
    """Return whether two actions are equal to the bit."""
    i = 0
    while i < one.size and one[i] == other[i]:
        i += 1
    return i == one.size


@kernel
def safe_step(slope: float, slack: float) -> float:
    """Return the largest s in [0, 1] with s · slope ≤ slack, for slack > 0."""
    return 1.0 if slope <= slack else slack / slope
