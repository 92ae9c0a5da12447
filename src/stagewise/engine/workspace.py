"""The bounds of a round in one table (1 + m, 4, K + 1), the limits, and what the safe action's bounds allow.

    bounds[signal, CENTRE, candidate] ± bounds[signal, HALF, candidate]        contains the true mean

CROSS curves the bounds along a ray whose start is uncertain: β² <x, V⁻¹x₀>. For x₀ itself it is β² ‖x₀‖², which
exceeds the square of its half-width where x₀ is known better than by the ellipsoid (see
`compute_clipped_width_along`). A half-width of 0 means that the value is known. Rules read only this table.
ESTIMATE is for reports and is not read by rules. Models write it whose intervals are clipped
or asymmetric; for others the centre is the estimate.

The answer of a decision is one flat array: step, optimistic reward, the safe action's, uncached flag |
pessimistic costs (m,) | shares (m + 2,) | candidate indices (m + 2,) | action (d,). Index −1 is the safe action.

Limits of a policy, and what the safe action's bounds allow in a round.

Costs are signed so that less is better. The switches of a layout:

    DIRECTIONAL         choose with both bounds optimistic, then mix back to a safe choice
    INFLATED            add a bonus for the costs' uncertainty to the optimistic reward
    OFFERS_SAFE         there is a safe action; without it, the learner is unconstrained
    CERTIFIED           play the posterior sample's proposal if its regret is certified (see `rules.certified`)
    ENFORCES_LIMITS     if directional: mix back to a safe choice; without it, limits are violated (DOSLB)
    SAFE_COST_DECLARED  the safe action's costs are below declared bounds in every round, so exploration starts at once
    PER_ROUND_SAFE      every round has its own safe action, and bounds are clipped at what is declared of it
"""

from typing import Any, NamedTuple

from stagewise.engine.compile import INDEX_TYPE, Floats, Ints, kernel
from stagewise.engine.layout import (
    ENFORCES_LIMITS,
    FEATURES,
    FIRST_THRESHOLD,
    INFLATED,
    LIMITS,
    PER_ROUND_SAFE,
    SAFE_COST_DECLARED,
    SAFE_INDEX,
    SWITCHES,
    pad_to_vector,
)

CENTRE, HALF, CROSS, ESTIMATE = 0, 1, 2, 3
SAMPLED = CROSS  # row that holds posterior draws; rules that read it treat bounds as straight lines
OPTIMISTIC_REWARDS, STEPS, PLAUSIBLE, COSTS = 0, 1, 2, 3  # rows of `Workspace.rule`
WEIGHTS = STEPS  # the row of a dense mixture: the probability of every action, the safe one last


class Workspace(NamedTuple):
    """Scratch arrays of a round, as views of one array that the caller owns."""

    bounds: Floats  # (1 + m, 4, K + 1)
    rule: Floats  # (3 + 2m, K + 1) optimistic rewards, steps, plausible steps, pessimistic costs, optimistic costs
    per_limit: Floats  # (2m + (m + 3)(m + 1),) bonus factors, safe costs, basis of a linear program
    work: Floats  # the rest, for the models


class PerLimit(NamedTuple):
    """Per-limit scratch of a rule, as views of the workspace."""

    factors: Floats  # (m,) how much a cost's half-width adds to the optimistic reward, or its price
    basis: Floats  # safe costs and basis of a linear program


@kernel
def per_limit_size(m: int) -> int:
    """Return the length of a rule's per-limit scratch."""
    return 2 * m + (m + 3) * (m + 1)


@kernel
def workspace_size(m: int, count: int) -> int:
    """Return the length of the workspace before the models' scratch, padded so that the latter is aligned."""
    return pad_to_vector((4 * (1 + m) + 3 + 2 * m) * (count + 1) + per_limit_size(m))


@kernel
def get_workspace(layout: Ints, count: int, scratch: Floats) -> Workspace:
    """Split the scratch array into the parts of the workspace for `count` candidates."""
    m, row = layout[LIMITS], count + 1
    bounds, rule = 4 * (1 + m) * row, (3 + 2 * m) * row
    per_limit = bounds + rule
    return Workspace(
        scratch[:bounds].reshape(1 + m, 4, row),
        scratch[bounds:per_limit].reshape(3 + 2 * m, row),
        scratch[per_limit : per_limit + per_limit_size(m)],
        scratch[pad_to_vector(per_limit + per_limit_size(m)) :],
    )


@kernel
def get_per_limit(layout: Ints, per_limit: Floats) -> PerLimit:
    """Split the per-limit scratch into its two parts."""
    return PerLimit(per_limit[: layout[LIMITS]], per_limit[layout[LIMITS] :])


@kernel
def get_pessimistic_cost_rows(layout: Ints, rule: Floats) -> Floats:
    """Return the pessimistic costs (m, K + 1) among the rows of a mixture rule."""
    return rule[COSTS : COSTS + layout[LIMITS]]


STEP, OPTIMISTIC_REWARD, SAFE_OPTIMISTIC_REWARD, UNCACHED, FIRST_COST = 0, 1, 2, 3, 4


@kernel
def answer_size(m: int, d: int) -> int:
    return FIRST_COST + m + 2 * (m + 2) + d


def get_played_action(layout: Ints, answer: Floats) -> Floats:
    """Return the action that is played (d,), as a view of the answer."""
    return answer[answer.size - layout.item(FEATURES) :]


def get_pessimistic_costs(layout: Ints, answer: Floats) -> Floats:
    """Return the pessimistic costs (m,), as a view of the answer."""
    return answer[FIRST_COST : FIRST_COST + layout.item(LIMITS)]


class DecisionViews(NamedTuple):
    """The array parts of an answer, as views of it."""

    shares: Floats  # (m + 2,) probabilities of the mixture
    places: Ints  # (m + 2,) index of the candidate that each share belongs to
    action: Floats  # (d,) the action that is played


@kernel
def get_decision_views(layout: Ints, answer: Floats) -> DecisionViews:
    """Return the mixture and the action in an answer, as views of it."""
    m = layout[LIMITS]
    shares, indices = FIRST_COST + m, FIRST_COST + 2 * m + 2
    return DecisionViews(
        answer[shares:indices],
        answer[indices : indices + m + 2].view(INDEX_TYPE),
        answer[answer.size - layout[FEATURES] :],
    )


@kernel
def fill_probabilities(layout: Ints, answer: Floats, probabilities: Floats) -> None:
    """Write the probability of every candidate; last, that of a safe action that is not listed."""
    views, safe_index, last = get_decision_views(layout, answer), layout[SAFE_INDEX], probabilities.size - 1
    for i in range(probabilities.size):
        probabilities[i] = 0.0
    for k in range(views.shares.size):
        index = views.places[k]
        if index < 0:
            index = safe_index if safe_index >= 0 else last
        probabilities[index] += views.shares[k]


@kernel
def compute_weighted_mean(row: Floats, weights: Floats) -> float:
    """Return Σ_i w_i value_i of a dense mixture, in the order of the actions, the safe one last."""
    total = 0.0
    for index in range(weights.size):
        if weights[index] != 0.0:
            total += weights[index] * row[index]
    return total


@kernel
def get_weights(layout: Ints, count: int, scratch: Floats) -> Floats:
    """Return the row WEIGHTS (K + 1,) of the workspace for `count` candidates."""
    first = (4 * (1 + layout[LIMITS]) + WEIGHTS) * (count + 1)
    return scratch[first : first + count + 1]


@kernel
def fill_dense_probabilities(layout: Ints, weights: Floats, probabilities: Floats) -> None:
    """Write the probability of every candidate of a dense mixture; last, that of a safe action that is not listed."""
    safe_index, last = layout[SAFE_INDEX], probabilities.size - 1
    for i in range(probabilities.size):
        probabilities[i] = weights[i]
    if safe_index >= 0:
        probabilities[safe_index], probabilities[last] = weights[last], 0.0


@kernel
def clip_to_bounds(block: Any, bounds: Floats) -> None:
    for signal in range(block.first, block.first + block.signals):
        centre, half, drawn = bounds[signal, CENTRE], bounds[signal, HALF], bounds[signal, SAMPLED]
        for candidate in range(drawn.size):
            drawn[candidate] = min(
                max(drawn[candidate], centre[candidate] - half[candidate]), centre[candidate] + half[candidate]
            )


BLOCK = 128  # candidates per chunk: enough for full vector registers, small enough for the L1 cache


@kernel
def bounds_work_size(size: int, count: int) -> int:
    """Return the length of the scratch array for the bounds of `count` candidates."""
    return 2 * (count + 1) + (size + 3) * BLOCK + 2 * size


@kernel
def work_size(limits: int, count: int, size: int, known: bool) -> int:
    """Return the length of the models' scratch: n coordinates, K candidates; `known`: all of them are cached."""
    cached_width = pad_to_vector(max(count, 0) + 1)
    least = max(2 * cached_width, cached_width + 3 * size + 1 + limits, (3 + limits) * size)
    return least if known else max(least, bounds_work_size(size, count))


@kernel
def scratch_size(limits: int, count: int, size: int, known: bool) -> int:
    """Return the length of the scratch array of a round (see `Workspace`)."""
    return workspace_size(limits, count) + work_size(limits, count, size, known)


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
