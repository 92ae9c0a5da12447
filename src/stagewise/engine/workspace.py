"""Bounds of every candidate and, last, of the safe action, in one table (1 + m, 4, K + 1).

    bounds[signal, CENTRE, candidate] ± bounds[signal, HALF, candidate]        contains the true mean

CROSS curves the bounds along a ray whose start is uncertain: β² <x, V⁻¹x₀>. For x₀ itself it is β² ‖x₀‖², which
exceeds the square of its half-width where x₀ is known better than by the ellipsoid (see
`compute_clipped_width_along`). A half-width of 0 means that the value is known. Rules read only this table.
ESTIMATE is for reports and is not read by rules. Models write it whose intervals are clipped
or asymmetric; for others the centre is the estimate.

The answer of a decision is one flat array: step, optimistic reward, the safe action's, uncached flag |
pessimistic costs (m,) | shares (m + 2,) | candidate indices (m + 2,) | action (d,). Index −1 is the safe action.
"""

from typing import Any, NamedTuple

from stagewise.engine.compile import INDEX_TYPE, Floats, Ints, kernel
from stagewise.engine.layout import FEATURES, LIMITS, SAFE_INDEX, pad_to_vector

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
